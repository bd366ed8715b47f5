package engine

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file moves nodes into reservations that have free places (D-04). These are paid for, so each counts. A fresh
// plan does not show which nodes could take them: it puts other pods there, which may be bound to where they are, or
// to a pool that keeps its nodes. So single nodes are tried, too, whatever the fresh plan says of them.

const (
	// vacantTries bounds how many nodes are tried in vain for the places of a reservation in a round, and vacantMost
	// how many for all reservations.
	vacantTries = 10
	vacantMost  = 100
)

// fillReservations replaces nodes by ones in reservations with free places, the dearest first.
func (d *disruption) fillReservations(candidates []*cluster.Node) {
	all := vacantMost
	for _, vacancy := range pack.Vacancies(d.future) {
		var list []*cluster.Node
		costs := map[*cluster.Node]resources.Money{}
		for _, node := range candidates {
			if now := d.future.Node(node); now != nil && d.replaceable(now) && vacancy.Takes(now) &&
				capacityType(now) != catalog.Reserved {
				list, costs[node] = append(list, node), d.cost(now)
			}
		}
		slices.SortStableFunc(list, func(a, b *cluster.Node) int { return cmp.Compare(costs[b], costs[a]) })
		for tries := min(vacantTries, all); len(list) > 0 && tries > 0 && vacancy.Left > 0; list = list[1:] {
			group := d.within(list[:1])
			switch {
			case len(group) == 0: // its pool's budget is used up
			case d.replaceBy(group, usesReservation):
				vacancy.Left--
			default:
				tries--
				all--
			}
		}
	}
}

func usesReservation(launches []plan.Launch) bool {
	return slices.ContainsFunc(launches, func(l plan.Launch) bool {
		return l.Cheapest.CapacityType == catalog.Reserved
	})
}

// replaceable reports whether a node may be replaced to save money as far as time and its pods go. One that has just
// replaced others rests (D-15). A node on which a pod is ending waits: a workload that shrinks takes many pods one
// after another, and what is launched for the others is not needed a moment later.
func (d *disruption) replaceable(node *cluster.Node) bool {
	return node.ReplaceableAt() <= d.terms.Now &&
		!slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool { return p.Terminating && !p.Fixed })
}
