package engine

import (
	"iter"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// keeper is a set of things that keep a node which is due to go.
type keeper uint8

// What may keep a node, in the order in which it is said.
const (
	byReplaced keeper = 1 << iota // a claim that it was made to replace is still there (D-10)
	byNode                        // do-not-disrupt, on the node or its claim (D-02)
	byPods                        // do-not-disrupt, on a pod or a daemon
	byGuards                      // a PodDisruptionBudget, or whatever else holds its pods
	byPromise                     // a pending pod was promised a place on it
	byFloor                       // its pool has no more nodes than it always keeps (K-54)
)

// byUsers is what users control.
const byUsers = byNode | byPods | byGuards

// kept says which of these keeps a node, the first one; "" when none does.
func (h *hearing) kept(node *cluster.Node, of keeper) string {
	for found := range h.keeping(node, of) {
		return found.Text
	}
	return ""
}

// keeping yields all of these that keep a node.
func (h *hearing) keeping(node *cluster.Node, of keeper) iter.Seq[Standing] {
	return func(yield func(Standing) bool) {
		say := func(code cause.Code, text string, pod plan.PodRef) bool {
			return yield(Standing{Cause: code, Text: text, Pod: pod})
		}
		if of&byReplaced != 0 && replacing(h.s, node) && !say(cause.IsReplacement,
			"it replaces "+strings.Join(node.Replaces, ", ")+", whose pods will come here", plan.PodRef{}) {
			return
		}
		if of&byNode != 0 && node.DoNotDisrupt && !say(cause.DoNotDisruptNode,
			"karpenter.sh/do-not-disrupt is set on the node or its NodeClaim", plan.PodRef{}) {
			return
		}
		if of&byPods != 0 {
			for _, pod := range node.Pods {
				if pod.DoNotDisrupt && !pod.Terminating &&
					!say(cause.DoNotDisruptPod, "karpenter.sh/do-not-disrupt is set on pod "+pod.Ref(),
						ref(pod)) {
					return
				}
			}
		}
		if of&byGuards != 0 && node.Held != "" && !say(cause.PodDisruptionBudget, node.Held, plan.PodRef{}) {
			return
		}
		if of&byPromise != 0 {
			if pod := h.comingTo(node); pod != nil &&
				!say(cause.PodsComing, "pod "+pod.Ref()+" is planned onto it", ref(pod)) {
				return
			}
		}
		if of&byFloor == 0 {
			return
		}
		if text := h.floorKeeps(node); text != "" {
			say(cause.MinNodes, text, plan.PodRef{})
		}
	}
}

// Keeps says what keeps a node from going for a reason, in the words of Why, apart from room and budgets; "" when
// nothing does.
func Keeps(s *cluster.Snapshot, node *cluster.Node, reason plan.DisruptionReason) string {
	pool := s.Pool(node.Pool)
	return hear(s, 0).kept(node, ruleOf(reason).keepers(node, pool != nil && pool.Gentle))
}

// replacing reports whether a claim that the node was made to replace is still there. Its pods will come here, so
// the node is needed even if it is empty (D-10).
func replacing(s *cluster.Snapshot, node *cluster.Node) bool {
	return len(node.Replaces) > 0 && slices.ContainsFunc(s.Nodes, func(other *cluster.Node) bool {
		return other.Claim != "" && slices.Contains(node.Replaces, other.Claim)
	})
}
