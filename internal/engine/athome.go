package engine

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file replaces nodes whose own instance type is for sale in their own zone for much less: spot prices have risen
// above on-demand, or spot capacity is back (D-04). All their pods fit there, so the saving is certain. A fresh plan
// may deny it: it divides what its nodes cost by what pods request, and a node with many small pods then looks cheap.

// homeTries bounds how many such nodes are tried in vain in a round.
const homeTries = 10

// sale is a way to buy machines of a type.
type sale struct{ kind, zone, capacityType string }

// replaceAtHome replaces such nodes one by one, those with the largest saving first.
func (d *disruption) replaceAtHome(candidates []*cluster.Node) {
	if len(d.base.Commitments) > 0 {
		return // prices do not say then what a node costs
	}
	savings := map[*cluster.Node]resources.Money{}
	var list []*cluster.Node
	prices := map[string]map[sale]resources.Money{} // by pool
	for _, node := range candidates {
		now := d.future.Node(node)
		if now == nil || now.Price == resources.Unpriced || !d.replaceable(now) ||
			d.left(now.Pool, plan.Underutilized) == 0 {
			continue
		}
		if prices[now.Pool] == nil {
			prices[now.Pool] = pricesOf(d.base.Pool(now.Pool))
		}
		home := sale{kind: now.Labels[string(catalog.LabelInstanceType)], zone: now.Labels[string(catalog.LabelZone)]}
		for _, home.capacityType = range []string{catalog.OnDemand, catalog.Spot} {
			if price, sold := prices[now.Pool][home]; sold && home.capacityType != capacityType(now) {
				savings[node] = max(savings[node], now.Price-price)
			}
		}
		least := max(1, d.share(now.Price))
		if savings[node] >= max(least, min(atBest*least, now.Price/2)) {
			list = append(list, node)
		}
	}
	slices.SortStableFunc(list, func(a, b *cluster.Node) int { return cmp.Compare(savings[b], savings[a]) })
	for tries := homeTries; len(list) > 0 && tries > 0; list = list[1:] {
		if group := d.within(list[:1]); len(group) > 0 && !d.replace(group) {
			tries--
		}
	}
}

// pricesOf returns the prices per hour of what a pool may launch, on demand and on spot. Reservations have so many
// places, see fillReservations.
func pricesOf(pool *cluster.Pool) map[sale]resources.Money {
	prices := map[sale]resources.Money{}
	if pool == nil || pool.Catalog == nil || pool.Static || pool.Blocked != "" {
		return prices
	}
	offers := pool.Catalog.Available.Clone()
	pool.Catalog.Narrow(offers, pool.Requirements)
	for i := range offers.All() {
		o := pool.Catalog.Offers[i]
		at := sale{pool.Catalog.Types[o.Type].Name, o.Zone, o.CapacityType}
		if known, found := prices[at]; !found || o.Price < known {
			prices[at] = o.Price
		}
	}
	return prices
}
