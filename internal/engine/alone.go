package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file replaces single nodes whatever a fresh plan says of them (D-04). That plan says which nodes to replace
// first, and denies some that would save all the same: it divides what its nodes cost by what pods request, and a node
// with many small pods then looks cheap.

const (
	// sureTries bounds how many nodes are tried in vain in a round because one machine for all their pods is for sale.
	sureTries = 10
	// turnTries is how many nodes are tried in vain in a search that finds nothing else.
	turnTries = 20
)

// replaceByOne replaces nodes whose pods and daemons all have room on one machine that costs much less, those with the
// largest saving first. Spot prices have risen above on-demand, say, or spot capacity is back.
func (d *disruption) replaceByOne(candidates []*cluster.Node) {
	savings := map[*cluster.Node]resources.Money{}
	var list []*cluster.Node
	for node, now := range d.each(candidates) {
		price := d.cost(now)
		least := max(1, d.share(price))
		savings[node] = price - d.costOfOne(now)
		if savings[node] >= max(least, min(atBest*least, price/2)) {
			list = append(list, node)
		}
	}
	slices.SortStableFunc(list, func(a, b *cluster.Node) int { return cmp.Compare(savings[b], savings[a]) })
	for tries := sureTries; len(list) > 0 && tries > 0; list = list[1:] {
		if group := d.within(list[:1]); len(group) > 0 && !d.replace(group) {
			tries--
		}
	}
}

// costOfOne returns what the cheapest new node with room for all that runs on a node costs per hour, in its NodePool;
// Unpriced if there is none. Reserved capacity does not count: it has so many places, see fillReservations. Nor does
// spot for a node that it must not replace (D-05).
func (d *disruption) costOfOne(node *cluster.Node) resources.Money {
	pool := d.base.Pool(node.Pool)
	if pool == nil || pool.Blocked != "" || pool.Catalog == nil || pool.Static {
		return resources.Unpriced
	}
	group := []*cluster.Node{node}
	offers := d.market(pool, allSpot(group) && !d.terms.SpotToSpot, d.open(group)).offers.Clone()
	pool.Catalog.Compatible(requirement.OneOf(catalog.LabelCapacityType, catalog.OnDemand, catalog.Spot)).AndTo(offers)
	for component, amount := range node.Used {
		if amount <= 0 {
			continue
		}
		roomy := pool.Catalog.Room.AtLeast(component, amount)
		if roomy == nil {
			return resources.Unpriced
		}
		roomy.AndTo(offers)
	}
	for _, pod := range node.Pods {
		if alternatives := pod.Shape.Alternatives; !pod.Fixed && len(alternatives) == 1 {
			pool.Catalog.Narrow(offers, alternatives[0].Labels)
		}
	}
	if first := offers.First(); first >= 0 {
		return pool.Catalog.Offers[first].Price + pool.NodeOverheadPrice
	}
	return resources.Unpriced
}

// replaceInTurn replaces nodes one by one where nothing else is worth doing. First come those that cost most beyond
// one machine for all that runs on them. A search that finds nothing is followed by one for the next nodes, so that
// each has its turn.
func (d *disruption) replaceInTurn(candidates []*cluster.Node) {
	savings := map[*cluster.Node]resources.Money{}
	var list []*cluster.Node
	for node, now := range d.each(candidates) {
		list, savings[node] = append(list, node), d.cost(now)-d.costOfOne(now)
	}
	slices.SortFunc(list, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(savings[b], savings[a]), strings.Compare(a.Claim, b.Claim))
	})
	first := 0
	if len(list) > turnTries {
		first = d.terms.Turn % ((len(list) + turnTries - 1) / turnTries) * turnTries
	}
	tries := turnTries
	for _, node := range list[first:] {
		if group := d.within([]*cluster.Node{node}); len(group) > 0 && !d.replace(group) {
			if tries--; tries == 0 {
				return
			}
		}
	}
}

// each yields the candidates that may be replaced now, and each as it is in the future.
func (d *disruption) each(candidates []*cluster.Node) func(yield func(node, now *cluster.Node) bool) {
	return func(yield func(node, now *cluster.Node) bool) {
		for _, node := range candidates {
			now := d.future.Node(node)
			if now != nil && now.Price != resources.Unpriced && d.replaceable(now) &&
				d.left(now.Pool, plan.Underutilized) > 0 && !yield(node, now) {
				return
			}
		}
	}
}
