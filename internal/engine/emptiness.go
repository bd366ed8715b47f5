package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Budget is a disruption budget that is active now, for one pool (V-07, D-08).
type Budget struct {
	Reasons []plan.DisruptionReason // nil: every reason
	Max     int                     // nodes that may be disrupting or not ready at a time; percentages are already counted out
}

// Emptiness plans the removal of nodes that no pod needs: initialized, quiet for as long as the pool asks
// (consolidateAfter), without a pod that would have to move, promised to none, no place for one that is pending (D-01 to
// D-03), and without room that a CapacityBuffer keeps (K-39). Pods do not keep to what they were promised, and then one that
// waits needs a node that nobody was promised (D-15). now is in Unix seconds. budgets holds the active budgets of every pool
// by its name; a pool without an entry is not limited. Nodes that are already disrupting or not ready use up their pool's
// budget, each for others. Of more candidates than a budget allows the dearest go first. Nodes of static pools stay, empty or
// not (D-12), and so do nodes whose pods are still to come from what they replace, and as many as a pool always keeps (K-54).
func Emptiness(s *cluster.Snapshot, now int64, budgets map[string][]Budget) plan.Plan {
	result := plan.Plan{BasedOn: s.Version, Names: s.Names}
	taken, h, candidates := Taken(s), hear(s, now), []*cluster.Node(nil)
	for _, node := range s.Nodes {
		if h.mayGo(node, plan.Empty) {
			candidates = append(candidates, node)
		}
	}
	if len(candidates) > 0 && len(s.Pending)+len(s.Buffers) > 0 {
		p := Provision(s)
		placed := placements(s, p)
		bufferPlaces(s, p, placed)
		candidates = slices.DeleteFunc(candidates, func(node *cluster.Node) bool { return len(placed[node]) > 0 })
	}
	cost := s.Costs()
	slices.SortFunc(candidates, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(cost(b), cost(a)), cmp.Compare(a.Created, b.Created), strings.Compare(a.Claim, b.Claim))
	})
	gone := map[string]int{}
	for _, node := range candidates {
		if gone[node.Pool] >= h.spare(node.Pool) {
			continue
		}
		others := beside(taken, node)
		if others >= Allowed(budgets[node.Pool], plan.Empty) {
			if result.Held == nil {
				result.Held = map[string]int{}
			}
			result.Held[node.Pool]++
			continue
		}
		taken[node.Pool] = others + 1
		gone[node.Pool]++
		result.Removes = append(result.Removes, removal(node, plan.Empty, ""))
	}
	slices.SortFunc(result.Removes, func(a, b plan.Remove) int { return strings.Compare(a.Claim, b.Claim) })
	saveLess(s, result.Removes)
	return result
}

// IsEmpty reports whether a node may go because nothing runs on it but daemons and finished pods: initialized, quiet
// since long enough at now (Unix seconds), and without an annotation that forbids it.
func IsEmpty(node *cluster.Node, now int64) bool {
	return inUse(node).Text == "" && node.ConsolidatableAt <= now && hear(nil, now).kept(node, byNode|byPods) == ""
}

// Allowed returns how many nodes of a pool may be disrupting at once for a reason: the smallest of the active budgets
// that are about it (V-07). Without any the number is not limited.
func Allowed(budgets []Budget, reason plan.DisruptionReason) int {
	allowed := int(^uint(0) >> 1)
	for _, b := range budgets {
		if b.Reasons == nil || slices.Contains(b.Reasons, reason) {
			allowed = min(allowed, b.Max)
		}
	}
	return allowed
}
