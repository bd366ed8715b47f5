package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// WhyBlocked says in the words of Why what keeps a node that something wants gone at now (Unix seconds): what users
// forbid, or that its NodePool is gone (D-02). It is false when nothing keeps the node, and when nothing wants it
// gone. It is also false when Why says something else first: that the node goes already, is not ready, or is still
// needed.
func WhyBlocked(s *cluster.Snapshot, now int64, node *cluster.Node) (Standing, bool) {
	switch unfit(s, node) {
	case "":
	case cause.PoolGone:
		found, _ := whyNotReady(s, Terms{}, node)
		return found, node.Pool != "" && node.Name != "" && node.Initialized
	default:
		return Standing{}, false
	}
	h := hear(s, now)
	reason := h.wanted(node, plan.Drifted, plan.Expired, plan.Empty, plan.Underutilized)
	if reason == "" || h.kept(node, byReplaced) != "" {
		return Standing{}, false
	}
	r := ruleOf(reason)
	for found := range h.keeping(node, r.keepers(node, false)&byUsers) {
		if r.room == anyPrice { // what costs too much is wanted gone only if that saves something: not asked here
			found.Wanted = reason
		}
		return found, true
	}
	return Standing{}, false
}

// WhyNotCheaper returns, in the words of Why, what keeps these nodes, in their order: they may go, and no method of
// disruption has chosen them. It is for many nodes: what they have in common is asked once.
func WhyNotCheaper(s *cluster.Snapshot, terms Terms, nodes []*cluster.Node) []Standing {
	list := make([]Standing, len(nodes))
	future := beginFrom(s, s, terms)
	for i, node := range nodes {
		found, done := whyQuiet(s, terms, node)
		if !done {
			found = whyNotCheaper(future, node)
		} else {
			found = found.although(s, terms, node, future)
		}
		list[i] = found
	}
	return list
}
