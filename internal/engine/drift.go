package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Drift plans to replace drifted nodes, as many at once as the budgets and hard limits allow (D-06, L-30): empty ones first,
// then the oldest. What their pods need beyond the rest of the cluster is launched, at whatever price. A node whose pods
// would find no place, because a limit or the market leaves none, stays and holds up no other. Static pools are not looked
// at.
func Drift(s *cluster.Snapshot, terms Terms) plan.Plan {
	mayGo := func(node *cluster.Node) bool {
		pool := s.Pool(node.Pool)
		return node.Drifted && pool != nil && !pool.Static && Disruptable(s, node)
	}
	if !slices.ContainsFunc(s.Nodes, mayGo) { // so it is nearly always; pods that wait need not be planned to know it
		return plan.Plan{BasedOn: s.Version, Names: s.Names}
	}
	d := begin(s, terms)
	var list []*cluster.Node
	for _, node := range d.future.Nodes {
		if mayGo(node) { // with the pods that come onto it
			list = append(list, node)
		}
	}
	slices.SortFunc(list, func(a, b *cluster.Node) int {
		_, podsA := DisruptionCost(a)
		_, podsB := DisruptionCost(b)
		return cmp.Or(cmp.Compare(min(podsA, 1), min(podsB, 1)), cmp.Compare(a.Created, b.Created), strings.Compare(a.Claim, b.Claim))
	})
	var group []*cluster.Node
	wanted := map[string]int{}
	for _, node := range list {
		if wanted[node.Pool] < d.left(node.Pool, plan.Drifted) {
			wanted[node.Pool]++
			group = append(group, node)
		}
	}
	d.roll(group)
	d.dropUntilTogether(settles)
	return d.done(s)
}

// roll replaces a group of drifted nodes together, or else in halves, down to single nodes.
func (d *disruption) roll(group []*cluster.Node) {
	if len(group) == 0 {
		return
	}
	current := make([]*cluster.Node, len(group))
	for i, node := range group {
		current[i] = d.now(node)
	}
	without := d.future.Without(current...)
	if p := pack.Solve(without, without.Pending); len(p.Unplaced) == 0 {
		d.adopt(without, current, p, plan.Drifted, "")
		return
	}
	if half := len(group) / 2; half > 0 {
		d.roll(group[:half])
		d.roll(group[half:])
	}
}
