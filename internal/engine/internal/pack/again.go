package pack

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file gives a second chance to pods that found no place because of a limit (P-04, L-10). Tied pods that are free
// to choose their zone come before pods that a volume binds to one. If the limit allows one more node, that may then
// be in the wrong zone. So a second try places the pods without a place first. It counts only if no pod loses its
// place by it. The same holds for tries without some of what is paid for anyway.

// firstOf returns the UIDs of the pods that a pool's limit kept from a node of their own while the plan launches nodes
// in that pool. It returns nil when there are none. It does so, too, when no pod is tied to others: then the order
// matters little.
func firstOf(p plan.Plan, pods []*cluster.Pod) map[string]bool {
	tied := func(pod *cluster.Pod) bool {
		return pod.Shape.Tied()
	}
	if !slices.ContainsFunc(pods, tied) {
		return nil
	}
	var first map[string]bool
	kept, _ := limited(p, func(plan.Launch) bool { return true })
	for _, u := range kept {
		if first == nil {
			first = map[string]bool{}
		}
		first[u.Pod.UID] = true
	}
	return first
}

// prepaid is something of a pool that is paid for whether nodes use it or not. what is its name by
// plan.Choice.Prepaid.
type prepaid struct{ pool, what string }

func prepaidOf(l plan.Launch) prepaid { return prepaid{l.Pool, l.Cheapest.Prepaid()} }

// leaveOut removes from the pool's offers what is in without. Other pools, whose limits allow more, may use it.
func (p *pool) leaveOut(without map[prepaid]bool) {
	isOut := func(c plan.Choice) bool { return without[prepaid{p.Name, c.Prepaid()}] }
	for number, covered := range p.covered {
		if isOut(plan.Choice{Commitment: plan.Commitment{Name: p.stock.commitments[number].Name}}) {
			p.offers = p.offers.Minus(covered)
			p.covered[number] = catalog.NewBits(len(p.Catalog.Offers))
		}
	}
	if p.reserved == nil || len(without) == 0 {
		return
	}
	for i := range p.reserved.All() {
		if o := p.Catalog.Offers[i]; isOut(plan.Choice{Type: p.Catalog.Types[o.Type].Name, Zone: o.Zone,
			CapacityType: catalog.Reserved}) {
			p.offers.Remove(i)
		}
	}
}

// roomier plans without some of what is paid for, if pods would have no place with it. It returns the plan and what
// that leaves out. Nodes that are paid for have the size that they have. They may use up what the limits leave, so
// that pods wait that larger nodes would have taken. The smallest are left out first. So the last node that a limit
// allows is one that is paid for and large enough (P-11, K-55).
func roomier(p plan.Plan, plans func(without map[prepaid]bool) plan.Plan) (plan.Plan, map[prepaid]bool) {
	var best map[prepaid]bool
	without := map[prepaid]bool{}
	for other := p; ; {
		crowding := slices.DeleteFunc(crowding(other), func(c prepaid) bool { return without[c] })
		if len(crowding) == 0 {
			return p, best
		}
		if len(without) < oneByOne {
			crowding = crowding[:1]
		}
		for _, c := range crowding {
			without[c] = true
		}
		if other = plans(without); better(other, p) {
			p, best = other, maps.Clone(without)
		}
	}
}

// oneByOne bounds the effort: so many are left out one after the other, then all that remain.
const oneByOne = 4

// crowding returns what pays for launched nodes that may use up what the limits leave, the smallest nodes first.
func crowding(p plan.Plan) []prepaid {
	paid := func(l plan.Launch) bool { return l.Cheapest.Prepaid() != "" }
	_, pools := limited(p, paid)
	launches := slices.Clone(p.Launches)
	launches = slices.DeleteFunc(launches, func(l plan.Launch) bool { return !paid(l) || !pools[l.Pool] })
	slices.SortStableFunc(launches, compareSizes)
	var list []prepaid
	for _, l := range launches {
		if c := prepaidOf(l); !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// compareSizes puts the launch of the smaller node first.
func compareSizes(a, b plan.Launch) int {
	return cmp.Or(cmp.Compare(a.Reserve.At(resources.CPU), b.Reserve.At(resources.CPU)),
		cmp.Compare(a.Reserve.At(resources.Memory), b.Reserve.At(resources.Memory)))
}

// limited returns the pods that a pool's limit keeps from a node of their own, if the plan launches such nodes in that
// pool. It also returns those pools, by name.
func limited(p plan.Plan, such func(plan.Launch) bool) (pods []plan.Unplaced, pools map[string]bool) {
	launches := map[string]bool{}
	for _, l := range p.Launches {
		if such(l) {
			launches[l.Pool] = true
		}
	}
	pools = map[string]bool{}
	for _, u := range p.Unplaced {
		kept := false
		for _, r := range u.Pools {
			if launches[r.Pool] && r.Last().Demand == plan.ByLimit {
				pools[r.Pool], kept = true, true
			}
		}
		if kept {
			pods = append(pods, u)
		}
	}
	return pods, pools
}

// better reports whether a plan places all pods that the other one does, and more.
func better(p, than plan.Plan) bool {
	if len(p.Unplaced) >= len(than.Unplaced) {
		return false
	}
	had := map[string]bool{}
	for _, u := range than.Unplaced {
		had[u.Pod.UID] = true
	}
	return !slices.ContainsFunc(p.Unplaced, func(u plan.Unplaced) bool { return !had[u.Pod.UID] })
}

// placeFirst places those pods of the order that come first in this try. It returns the others, and those that found
// no place.
func (s *solver) placeFirst(order []*cluster.Pod) (rest, failed []*cluster.Pod) {
	if len(s.first) == 0 {
		return order, nil
	}
	var first []*cluster.Pod
	for _, pod := range order {
		if s.first[pod.UID] {
			first = append(first, pod)
		} else {
			rest = append(rest, pod)
		}
	}
	return rest, s.runClass(first)
}
