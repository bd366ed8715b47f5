package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// WhyForbidden says what forbids that a node goes, whatever for, in the words of Why. It is false when nothing does,
// or when Why has something to say before that: that the node goes already, is not ready, or is still needed.
func WhyForbidden(s *cluster.Snapshot, node *cluster.Node) (Standing, bool) {
	for _, look := range []func(*cluster.Snapshot, Terms, *cluster.Node) (Standing, bool){whyGoing, whyNotReady} {
		if found, done := look(s, Terms{}, node); done {
			return found, found.Cause == cause.PoolGone
		}
	}
	found, done := whyForbidden(s, Terms{}, node)
	return found, done && found.Cause != cause.IsReplacement && found.Cause != cause.PodsComing
}

// WhyNotCheaper says of nodes that may go, and that no method of disruption has chosen, why they stay, in the words of
// Why. It is for many nodes: what they have in common is asked once.
func WhyNotCheaper(s *cluster.Snapshot, terms Terms, nodes []*cluster.Node) []Standing {
	list := make([]Standing, len(nodes))
	future := beginFrom(s, s, Terms{})
	for i, node := range nodes {
		found, done := whyQuiet(s, terms, node)
		if !done {
			found = whyNotCheaper(terms, future, node)
		} else {
			found = found.although(s, terms, node, future)
		}
		list[i] = found
	}
	return list
}
