package engine

import "github.com/joiner-autoscaler/joiner/internal/engine/cluster"

// WhyDue is Why for nodes that are to go whatever they cost, or go already; false for all others. It does not ask
// whether a method of disruption chooses the node, so it is for clusters in which none of them chooses anything.
func WhyDue(s *cluster.Snapshot, terms Terms, node *cluster.Node) (Standing, bool) {
	if node.Deleting {
		return whyGoing(s, terms, node)
	}
	reason := renewal(s, node)
	if node.Claim == "" || reason == "" {
		return Standing{}, false
	}
	for _, look := range []func(*cluster.Snapshot, Terms, *cluster.Node) (Standing, bool){whyNotReady, whyForbidden,
		whyDue} {
		if found, done := look(s, terms, node); done {
			if found.Wanted == "" {
				found.Wanted = reason
			}
			return found, true
		}
	}
	return Standing{}, false
}
