package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Budget is a disruption budget that is active now, for one pool (V-07, D-08).
type Budget struct {
	Reasons []plan.DisruptionReason // nil: every reason
	// nodes that may be disrupting or not ready at a time; percentages are already counted out
	Max int
}

// Emptiness plans the removal of nodes that no pod needs (D-01 to D-03). Such a node is initialized, and quiet for
// as long as its pool asks (consolidateAfter). No pod on it would have to move, none was promised a place there, and
// the plan places neither a pending pod nor the room of a CapacityBuffer on it (K-39), nor a pod of a node that is
// marked and still waits to go (D-09). Pods do not keep to what they were promised: one that waits may need a node
// that nobody was promised (D-15).
//
// now is in Unix seconds. budgets holds the active budgets of every pool by its name; a pool without an entry is not
// limited. Other nodes of a pool that are disrupting or not ready use up its budget. Of more candidates than a budget
// allows, the most expensive go first.
//
// Nodes of static pools stay, empty or not (D-12). So do nodes that still await pods of what they replace, and as many
// as a pool always keeps (K-54).
func Emptiness(s *cluster.Snapshot, now int64, budgets map[string][]Budget) plan.Plan {
	result := plan.Plan{BasedOn: s.Version, Names: s.Names}
	taken, h, candidates := Taken(s), hear(s, now), []*cluster.Node(nil)
	for _, node := range s.Nodes {
		if h.mayGo(node, plan.Empty) {
			candidates = append(candidates, node)
		}
	}
	after := afterMoves(s, candidates)
	if len(candidates) > 0 && len(after.Pending)+len(after.Buffers) > 0 {
		p := Provision(after)
		placed := placements(after, p)
		bufferPlaces(after, p, placed)
		candidates = slices.DeleteFunc(candidates, func(node *cluster.Node) bool { return len(placed[node]) > 0 })
	}
	cost := s.Costs()
	slices.SortFunc(candidates, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(cost(b), cost(a)), cmp.Compare(a.Created, b.Created),
			strings.Compare(a.Claim, b.Claim))
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

// afterMoves returns the cluster for which empty nodes are kept: s, or s without the nodes that are marked and wait to
// go, if their pods need one of the empty nodes. Nearly always they have other places. To hold empty nodes all the
// same would make a shrink take twice as long (B-11).
func afterMoves(s *cluster.Snapshot, empty []*cluster.Node) *cluster.Snapshot {
	marked := underway(s)
	if len(empty) == 0 || len(marked) == 0 {
		return s
	}
	without, waiting := s.Without(marked...), map[string]bool{}
	for _, pod := range s.Pending {
		waiting[pod.UID] = true
	}
	moving := slices.DeleteFunc(slices.Clone(without.Pending), func(p *cluster.Pod) bool { return waiting[p.UID] })
	if _, fits := pack.Fit(without.Without(empty...), moving); fits {
		return s
	}
	return without
}

// IsEmpty reports whether a node may go because only daemons and finished pods are on it. It is initialized and quiet
// for long enough at now (Unix seconds), and neither an annotation nor a PodDisruptionBudget of daemons forbids it.
func IsEmpty(node *cluster.Node, now int64) bool {
	return inUse(node).Text == "" && node.ConsolidatableAt <= now && hear(nil, now).kept(node, byUsers) == ""
}

// Allowed returns how many nodes of a pool may be disrupting at once for a reason: the smallest active budget for that
// reason (V-07). Without one the number is not limited.
func Allowed(budgets []Budget, reason plan.DisruptionReason) int {
	allowed := int(^uint(0) >> 1)
	for _, b := range budgets {
		if b.Reasons == nil || slices.Contains(b.Reasons, reason) {
			allowed = min(allowed, b.Max)
		}
	}
	return allowed
}
