package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file places tied pods where they add least to the price (P-22, ADR 0040). The first planned node that takes a
// pod may have to double its size for it. A small node of the pod's own would cost next to nothing.

const (
	// thrift bounds how much dearer a planned node may get for a pod: this many times the price of a new node. Nodes
	// are not for free.
	thrift = 5
	// enoughCost is how many times the least cost a plan may have so that nothing else is tried.
	enoughCost = 1.05
)

// SketchThriftily is [Sketch], or a plan with tied pods where they add least to the price, if that is the better one.
func SketchThriftily(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	return thriftier(snapshot, pods, mix.Sketch, Sketch(snapshot, pods), false)
}

// thriftier plans thriftily, and returns the best of these plans and another one. Pods that only need room come last,
// with bothOrders also first. It does not try if the other plan launches for one pod only, or for no tied ones, or
// costs hardly more than it must. Nor does it try if something is paid for already: that comes first, whatever it
// adds.
func thriftier(snapshot *cluster.Snapshot, pods []*cluster.Pod, packing mix.Way, than plan.Plan,
	bothOrders bool) plan.Plan {
	tied := func(pod *cluster.Pod) bool { return pod.Shape.Tied() }
	launched := launchedFor(than, pods)
	if len(launched) < 2 || !slices.ContainsFunc(launched, tied) || slices.ContainsFunc(snapshot.Pools, prepaying) ||
		costs(snapshot, than) <= enoughCost*leastCost(snapshot, launched) {
		return than
	}
	orders := []bool{false, true}
	if !bothOrders || !mixed(launched) {
		orders = orders[:1]
	}
	for _, plainFirst := range orders {
		own := try(snapshot, pods, packing, trial{thrifty: true, plainFirst: plainFirst})
		if !lost(own, than) && cheaper(snapshot, own, than) {
			than = own
		}
	}
	return than
}

// launchedFor returns those of the pods for which a plan launches nodes.
func launchedFor(p plan.Plan, pods []*cluster.Pod) []*cluster.Pod {
	new := map[string]bool{}
	for _, l := range p.Launches {
		for _, ref := range l.Pods {
			new[ref.UID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod *cluster.Pod) bool { return !new[pod.UID] })
}

// prepaying reports whether a pool may offer something that is paid for already.
func prepaying(p *cluster.Pool) bool {
	return p.Catalog != nil && (p.Catalog.OnCommitments() != nil ||
		slices.ContainsFunc(p.Catalog.Offers, func(o catalog.Offer) bool { return o.Reservation > 0 }))
}

// placeThriftily places a pod on existing capacity, or on the planned node to whose price it adds least. If each
// planned node would get too much dearer, it plans a new one. Planned nodes of pools that it likes less than others
// come last, as ever.
func (s *solver) placeThriftily(pod *cluster.Pod, info *shape) bool {
	for len(info.refused) < s.bins() {
		info.refused = append(info.refused, false)
	}
	if s.placeInExisting(s.askOne(pod, info)) {
		return true
	}
	most := s.alone(info)
	for _, later := range info.sweeps() {
		best, least := -1, most
		for i := max(info.first, len(s.existing)); i < s.bins() && (best < 0 || least > 0); i++ {
			n, a := s.planned[i-len(s.existing)], s.askOne(pod, info)
			if info.refused[i] || info.isLater(n.pool) != later || !info.note(i, s.weigh(i, a)) {
				continue
			}
			offers := n.pool.Catalog.Offers
			if more := offers[a.offers.First()].Price - offers[n.offers.First()].Price; more < least ||
				best < 0 && more == least {
				best, least = i, more
			}
		}
		if best >= 0 && s.tryPlanned(best, s.askOne(pod, info)) == topology.Yes {
			return true
		}
	}
	return s.open(pod, info) || s.placeInBins(pod, info)
}

// alone returns how much dearer a planned node may get for a pod of the shape: thrift times the least price of a new
// node, by room and selection only. It is [resources.Unpriced] if no new node can be had.
func (s *solver) alone(info *shape) resources.Money {
	least := resources.Unpriced
	for i, p := range s.pools {
		if len(info.ways[i]) == 0 || !p.mayGrow() || info.isLater(p) {
			continue
		}
		for _, w := range info.ways[i] {
			offers := w.offers.Clone()
			if p.keepFitting(nil, info.Requests, offers) {
				least = min(least, thrift*(p.Catalog.Offers[offers.First()].Price+p.NodeOverheadPrice))
			}
		}
	}
	return least
}
