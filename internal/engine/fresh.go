package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file steers replacements towards a fresh plan (B-17): what would be launched for the same pods were there no node
// yet. Such a plan cannot be carried out at once, nor piece by piece, since its nodes take their pods from everywhere. But
// it tells which nodes cost more than their pods have to, and these are replaced first.

// freshPods bounds how many pods a fresh plan is made for. Of more, those nodes are looked at that could save most.
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

// excessOf returns what nodes of the future cost more than a fresh plan pays for their pods that have to move. A node of which some
// pod has no place in that plan is left out.
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

// isFar reports whether these nodes cost far more in all than a fresh plan pays for their pods; excess has what each of them costs
// more.
func (d *disruption) isFar(excess map[*cluster.Node]resources.Money) bool {
	cost, beyond := resources.Money(0), resources.Money(0)
	for node, more := range excess {
		cost += d.cost(node)
		beyond += more
	}
	return beyond*100 > (cost-beyond)*farPercent
}

// emptyFor returns the pools without any node, without limits, and with the pods of these nodes that have to move; on says where
// each of them runs, by UID. Nodes are the cheapest there, however many: a tolerance would take time, and favour nodes
// that cost too much.
func (d *disruption) emptyFor(nodes []*cluster.Node) (s *cluster.Snapshot, on map[string]*cluster.Node) {
	parts := cluster.Snapshot{Version: d.base.Version, Names: d.base.Names, Daemons: d.base.Daemons, Namespaces: d.base.Namespaces,
		Commitments: d.uncommitted(nodes)}
	for _, pool := range d.base.Pools {
		own := *pool
		own.Limits, own.Used, own.FreeSlots, own.PriceTolerance = limit.Unlimited(), limit.Usage{}, nil, 0
		parts.Pools = append(parts.Pools, &own)
	}
	on = map[string]*cluster.Node{}
	for _, node := range nodes {
		for _, pod := range node.Pods {
			if !pod.Fixed && !pod.Terminating {
				own := *pod
				own.Node, own.Promised = "", ""
				parts.Pending = append(parts.Pending, &own)
				on[pod.UID] = node
			}
		}
	}
	return cluster.New(parts), on
}

// paidFor returns, by UID, what a plan for the pending pods of s pays for each: its part of the price of its node, by the larger
// of its shares of CPU and memory.
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
