package pack

import (
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file plans twice where tied pods meet pods that only need room: once with the tied pods first, once with the
// others. Tied pods that come first get a small node each when nothing is there yet. The others then get large nodes,
// in which the tied pods would have had room. In the other order they go into that room. But where tied pods open many
// nodes themselves, the others should fill those. Neither order is always the cheaper one.

// cheapestOf plans in both orders and by a draft, and returns the plan that costs least. If the draft is nearly as
// good as a plan can be, it makes no others.
func cheapestOf(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	draft, drafted := draftOf(snapshot, pods)
	if drafted && nearLeast(snapshot, pods, draft) {
		return draft
	}
	p := Solve(snapshot, pods)
	if len(p.Launches) < 2 {
		return p
	}
	if len(pods) <= evenPods && mixed(pods) {
		other := try(snapshot, pods, mix.Solve, trial{plainFirst: true})
		if !lost(other, p) && costs(snapshot, other) < costs(snapshot, p) {
			p = other
		}
	}
	if drafted && !lost(draft, p) && cheaper(snapshot, draft, p) {
		return draft
	}
	return p
}

// draftOf plans by a draft; false where no pods are tied to others.
func draftOf(snapshot *cluster.Snapshot, pods []*cluster.Pod) (plan.Plan, bool) {
	tied := func(pod *cluster.Pod) bool { return pod.Shape.Tied() }
	if !slices.ContainsFunc(pods, tied) {
		return plan.Plan{}, false
	}
	return try(snapshot, pods, mix.Solve, trial{drafted: true}), true
}

// cheaper reports whether p costs less than another plan. It reports false if the other one has fewer nodes and costs
// no more than the tolerance allows.
func cheaper(snapshot *cluster.Snapshot, p, than plan.Plan) bool {
	own, other := costs(snapshot, p), costs(snapshot, than)
	return own < other && (len(p.Launches) <= len(than.Launches) || other > own*tolerance(snapshot))
}

const (
	// nearLeastCost and nearLeastNodes bound a plan after which no other is made: how many times the least cost, and
	// how many times the least number of nodes, it may have.
	nearLeastCost  = 1.2
	nearLeastNodes = 1.1
)

// nearLeast reports whether other plans could hardly be better. Then all pods are on new nodes. The nodes cost little
// more than they must, and are hardly more than the pods that keep apart.
func nearLeast(snapshot *cluster.Snapshot, pods []*cluster.Pod, p plan.Plan) bool {
	return len(p.Unplaced)+len(p.Nominations) == 0 &&
		float64(len(p.Launches)) <= nearLeastNodes*float64(keepingApart(pods)) &&
		costs(snapshot, p) <= nearLeastCost*leastCost(snapshot, pods)
}

// keepingApart counts the pods of the largest group that keeps apart by hostname.
func keepingApart(pods []*cluster.Pod) int {
	most, groups, keys := 0, map[string]int{}, map[*cluster.Shape][]string{}
	for _, pod := range pods {
		terms, known := keys[pod.Shape]
		if !known {
			for _, term := range apartBy(pod.Shape) {
				terms = append(terms, term.String())
			}
			keys[pod.Shape] = terms
		}
		for _, term := range terms {
			groups[term]++
			most = max(most, groups[term])
		}
	}
	return most
}

// leastCost returns a lower bound on the cost of any plan on new nodes: for each resource, all that pods request,
// where it is cheapest among what the pools that launch for pods may buy.
func leastCost(snapshot *cluster.Snapshot, pods []*cluster.Pod) float64 {
	var sum resources.Vector
	for _, pod := range pods {
		sum = sum.Plus(pod.Shape.Requests)
	}
	least := make([]float64, len(sum)) // what one of each costs
	for r := range least {
		least[r] = math.Inf(1)
	}
	for _, p := range snapshot.Pools {
		if p.Blocked != "" || p.Static || p.Catalog == nil {
			continue
		}
		offers := p.Catalog.Available.Clone()
		p.Catalog.Narrow(offers, p.Requirements)
		for i := range offers.All() {
			offer := p.Catalog.Offers[i]
			price := float64(offer.Sold() + p.NodeOverheadPrice)
			for r, room := range p.Catalog.Types[offer.Type].Allocatable {
				if r < len(least) && room > 0 {
					least[r] = min(least[r], price/float64(room))
				}
			}
		}
	}
	highest := 0.0
	for r, amount := range sum {
		if amount > 0 && !math.IsInf(least[r], 1) {
			highest = max(highest, float64(least[r]*float64(amount)))
		}
	}
	return highest
}

// mixed reports whether there are pods with constraints on others, and pods without any.
func mixed(pods []*cluster.Pod) bool {
	tied := func(pod *cluster.Pod) bool {
		return pod.Shape.Tied()
	}
	return slices.ContainsFunc(pods, tied) &&
		slices.ContainsFunc(pods, func(pod *cluster.Pod) bool { return !tied(pod) })
}
