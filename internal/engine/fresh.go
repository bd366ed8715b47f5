package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file steers replacements towards a fresh plan (B-17): what would be launched for the same pods if there were no
// nodes yet. Such a plan cannot be carried out at once, nor piece by piece, since its nodes take their pods from
// everywhere. But it shows which nodes cost more than their pods need, and these are replaced first.

// freshPods bounds the pods of a fresh plan. If there are more, it is about the nodes that could save most.
const freshPods = 4000

// firstWith returns the first nodes of a list that have at most so many pods together.
func firstWith(nodes []*cluster.Node, pods int) []*cluster.Node {
	for n, node := range nodes {
		if pods -= len(node.Pods); pods < 0 {
			return nodes[:n]
		}
	}
	return nodes
}

// excessOf returns by how much nodes of the future cost more than a fresh plan pays for their pods that have to move.
// It leaves out nodes with a pod that has no place in that plan.
func (d *disruption) excessOf(nodes []*cluster.Node) map[*cluster.Node]resources.Money {
	s, on := d.emptyFor(nodes)
	p := pack.SketchThriftily(s, s.Pending)
	paid := d.paidFor(s, p)
	excess := make(map[*cluster.Node]resources.Money, len(nodes))
	for _, node := range nodes {
		excess[node] = d.cost(node)
	}
	for uid, node := range on {
		excess[node] -= paid[uid]
	}
	for _, u := range p.Unplaced {
		delete(excess, on[u.Pod.UID])
	}
	return excess
}

// isFar reports whether the nodes of excess together cost far more than a fresh plan pays for their pods. excess says
// how much more each costs.
func (d *disruption) isFar(excess map[*cluster.Node]resources.Money) bool {
	cost, beyond := resources.Money(0), resources.Money(0)
	for node, more := range excess {
		cost += d.cost(node)
		beyond += more
	}
	return beyond*100 > (cost-beyond)*farPercent
}

// emptyFor returns a snapshot of the pools without nodes and limits, in which the pods of these nodes that have to
// move are pending; on has the node of each, by UID. There is no price tolerance: it would take time, and favour nodes
// that cost too much.
func (d *disruption) emptyFor(nodes []*cluster.Node) (s *cluster.Snapshot, on map[string]*cluster.Node) {
	parts := cluster.Snapshot{Version: d.base.Version, Names: d.base.Names, Daemons: d.base.Daemons,
		Namespaces: d.base.Namespaces, Commitments: d.uncommitted(nodes), Reserving: d.holders(nodes)}
	for _, pool := range d.base.Pools {
		own := *pool
		own.Limits, own.Used, own.FreeSlots, own.PriceTolerance = limit.Unlimited(), limit.Usage{}, nil, 0
		parts.Pools = append(parts.Pools, &own)
	}
	on = map[string]*cluster.Node{}
	for _, node := range nodes {
		for _, pod := range node.Pods {
			if pod.Moves() {
				own := *pod
				own.Node, own.Promised = "", ""
				parts.Pending = append(parts.Pending, &own)
				on[pod.UID] = node
			}
		}
	}
	return cluster.New(parts), on
}

// holders returns the nodes beside these that hold reservations or may come to, and those that were chosen before.
func (d *disruption) holders(nodes []*cluster.Node) []*cluster.Node {
	list := slices.Clone(d.future.Reserving)
	for _, node := range d.future.Nodes {
		if node.MayBeReserved() && !slices.Contains(nodes, node) {
			list = append(list, node)
		}
	}
	return list
}

// paidFor returns, by UID, what a plan pays for each pending pod of s: its part of the price of its node, by its
// larger share of CPU or memory.
func (d *disruption) paidFor(s *cluster.Snapshot, p plan.Plan) map[string]resources.Money {
	requests := make(map[string]resources.Vector, len(s.Pending))
	for _, pod := range s.Pending {
		requests[pod.UID] = pod.Shape.Requests
	}
	paid := make(map[string]resources.Money, len(s.Pending))
	for _, l := range p.Launches {
		price := float64(l.Cheapest.Price + d.base.Overhead(l.Pool))
		all := virtual(s.Pool(l.Pool), l, "").Allocatable
		parts, sum := make([]float64, len(l.Pods)), 0.0
		for i, pod := range l.Pods {
			for _, component := range []int{resources.CPU, resources.Memory} {
				if most := all.At(component); most > 0 {
					parts[i] = max(parts[i], float64(requests[pod.UID].At(component))/float64(most))
				}
			}
			sum += parts[i]
		}
		for i, pod := range l.Pods {
			if sum > 0 {
				paid[pod.UID] = resources.Money(price * parts[i] / sum)
			}
		}
	}
	return paid
}
