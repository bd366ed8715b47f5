package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Trim plans the removal of nodes above the node limits of their pools, hard or soft, and above the replicas of static
// pools (L-40 to L-42, D-12). Budgets limit it in gentle pools only, see [gently]. What is leaving already, for
// whatever reason, counts as gone: only the excess is chosen, never one more. Pools whose specification cannot be
// understood, held and dormant ones are left alone.
func Trim(s *cluster.Snapshot, budgets map[string][]Budget) plan.Plan {
	result := plan.Plan{BasedOn: s.Version, Names: s.Names}
	for _, pool := range s.Pools {
		if pool.Invalid || pool.Dormant || pool.Held {
			continue
		}
		staying, leaving := Leaving(s, pool.Name)
		count := int64(len(staying) + len(leaving))
		if excess := pool.Limits.Excess(pool.Kept(), count, int64(len(leaving))); excess > 0 {
			slices.SortFunc(staying, CompareTrim)
			reason, why := Excessive(pool, count)
			chosen := staying[:excess]
			if pool.Gentle {
				chosen = gently(hear(s, 0), reason, staying, int(excess), Taken(s)[pool.Name], budgets[pool.Name])
			}
			for _, node := range chosen {
				result.Removes = append(result.Removes, removal(node, reason, why))
			}
		}
	}
	slices.SortFunc(result.Removes, func(a, b plan.Remove) int { return strings.Compare(a.Claim, b.Claim) })
	saveLess(s, result.Removes)
	return result
}

// gently returns which of the staying nodes may go now, in their order: at most excess, and as many as the budgets
// allow. taken nodes use the budgets up already. What must not be disrupted stays, as in every voluntary disruption.
func gently(h *hearing, reason plan.DisruptionReason, staying []*cluster.Node, excess, taken int,
	budgets []Budget) []*cluster.Node {
	r := ruleOf(reason)
	var chosen []*cluster.Node
	for _, node := range staying {
		bound, _ := r.takes(node, true)
		if len(chosen) < excess && h.objection(r, node, false) == "" && taken+len(chosen) < Allowed(budgets, bound) {
			chosen = append(chosen, node)
		}
	}
	return chosen
}

// trimBudget returns the reason whose budgets bound the removal of a node of a gentle pool: Empty for an empty node,
// Underutilized for one whose pods have to move.
func trimBudget(node *cluster.Node) plan.DisruptionReason {
	if _, pods := DisruptionCost(node); pods == 0 {
		return plan.Empty
	}
	return plan.Underutilized
}

// Leaving divides the nodes of a pool that have claims (L-13) into those that stay, as far as is known, and those that
// go: being removed, marked to go, or named by a claim that replaces them.
func Leaving(s *cluster.Snapshot, pool string) (staying, leaving []*cluster.Node) {
	replaced := map[string]bool{}
	for _, node := range s.Nodes {
		if !node.Deleting { // of whatever pool: a node of another one may be cheaper
			for _, claim := range node.Replaces {
				replaced[claim] = true
			}
		}
	}
	for _, node := range s.Nodes {
		switch {
		case node.Pool != pool || node.Claim == "":
		case node.Deleting || node.Disrupting || replaced[node.Claim]:
			leaving = append(leaving, node)
		default:
			staying = append(staying, node)
		}
	}
	return staying, leaving
}

// Excessive says which bound of the pool count is above. It returns the reason of the removals and, in words, count
// and bound.
func Excessive(pool *cluster.Pool, count int64) (plan.DisruptionReason, string) {
	most, hard := pool.Limits.Nodes()
	if pool.Static && (most == limit.None || pool.Replicas < most) {
		return plan.ReplicasExceeded, fmt.Sprintf("%d nodes, %d replicas", count, pool.Replicas)
	}
	return plan.NodeLimitExceeded, fmt.Sprintf("%d nodes, limit %d (%s limit)", count, most, limit.Kind(hard))
}

// CompareTrim is the order in which nodes are chosen to go (L-41). What must not be disrupted comes last of all.
// Otherwise claims made by hand come first (L-15), then those not launched, not registered, not initialized yet, then
// empty nodes. The others are ordered by the cost of their removal: pods by number, priority and deletion cost. Of
// equals, drifted and older ones come first; then the name of the claim decides.
func CompareTrim(a, b *cluster.Node) int {
	costA, podsA := DisruptionCost(a)
	costB, podsB := DisruptionCost(b)
	return cmp.Or(
		cmp.Compare(number(protected(a)), number(protected(b))),
		cmp.Compare(number(b.Foreign), number(a.Foreign)),
		cmp.Compare(stage(a), stage(b)),
		cmp.Compare(min(podsA, 1), min(podsB, 1)),
		cmp.Compare(costA, costB), cmp.Compare(podsA, podsB),
		cmp.Compare(number(b.Drifted), number(a.Drifted)),
		cmp.Compare(a.Created, b.Created), strings.Compare(a.Claim, b.Claim),
	)
}

// protected reports whether the node, its claim or a pod on it asks not to be disrupted.
func protected(node *cluster.Node) bool {
	return node.DoNotDisrupt || slices.ContainsFunc(node.Pods,
		func(p *cluster.Pod) bool { return p.DoNotDisrupt && !p.Terminating })
}

// stage orders claims by how far they have come.
func stage(node *cluster.Node) int {
	return number(node.Launched) + number(node.Registered) + number(node.Initialized)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
