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

// replaceByOne replaces nodes whose pods and daemons all have room on one machine that costs much less, those first
// that save most. Spot prices have risen above on-demand, say, or spot capacity is back.
func (d *disruption) replaceByOne(list []single) {
	tries := sureTries
	for i := range list {
		if tries == 0 {
			return
		}
		x := &list[i]
		price := d.cost(x.node)
		least := max(1, d.share(price))
		if x.beyond >= max(least, min(atBest*least, price/2)) {
			if x.tried = true; d.inVain(x.node) {
				tries--
			}
		}
	}
}

// replaceInTurn replaces nodes one by one where nothing else is worth doing. A search that finds nothing is followed
// by one for the next nodes, so that each has its turn.
func (d *disruption) replaceInTurn(list []single) {
	first, tries := 0, turnTries
	if len(list) > turnTries {
		first = d.terms.Turn % ((len(list) + turnTries - 1) / turnTries) * turnTries
	}
	for _, x := range list[first:] {
		if !x.tried && d.inVain(x.node) {
			tries--
		}
		if tries == 0 {
			return
		}
	}
}

// inVain replaces a node if that saves enough, and reports whether it looked for that in vain. Where budgets are used
// up it does not look.
func (d *disruption) inVain(node *cluster.Node) bool {
	group := d.within([]*cluster.Node{node})
	return len(group) > 0 && !d.replace(group)
}

// single is a node, as it is in the future, and how much more it costs than one new node for all that runs on it.
type single struct {
	node   *cluster.Node
	beyond resources.Money
	tried  bool // in this search
}

// beyondOne lists the candidates that may be replaced now, those that cost most beyond one new node first.
func (d *disruption) beyondOne(candidates []*cluster.Node) []single {
	var list []single
	for _, node := range candidates {
		now := d.future.Node(node)
		if now != nil && now.Price != resources.Unpriced && d.replaceable(now) &&
			d.left(now.Pool, plan.Underutilized) > 0 {
			list = append(list, single{node: now, beyond: d.cost(now) - d.costOfOne(now)})
		}
	}
	slices.SortFunc(list, func(a, b single) int {
		return cmp.Or(cmp.Compare(b.beyond, a.beyond), strings.Compare(a.node.Claim, b.node.Claim))
	})
	return list
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
