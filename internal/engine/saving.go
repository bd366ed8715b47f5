package engine

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// DefaultMinSavingPercent is the least part of the price of nodes, in percent, that their replacement should save (see
// Terms.MinSavingPercent, and docs/adr/0010-minimum-saving.md for the reason).
const DefaultMinSavingPercent = 5

const (
	// farPercent is by how much more than a fresh plan pays for their pods the nodes of a pool may cost, in percent, before a smaller
	// saving is enough for a group of nodes (B-17).
	farPercent = 2
	// farMinSavingPercent stands for DefaultMinSavingPercent until then. What a user has set to something else always holds, and so
	// does the default for one node alone, and where spot nodes may replace spot nodes: their prices move all the time.
	farMinSavingPercent = 2
)

// DefaultPriceTolerance is by how much fewer nodes may be dearer than the cheapest ones where a user says nothing, in
// percent (P-22, B-20). Nobody runs twice as many nodes to save the last few percent: each has an address, agents,
// images to pull, and a place in every list.
const DefaultPriceTolerance = 5

// minSaving is what the replacement of so many nodes, which cost before, has to save, at least 1.
func (d *disruption) minSaving(before resources.Money, nodes int) resources.Money {
	percent := d.terms.MinSavingPercent
	if d.far && nodes > 1 && percent == DefaultMinSavingPercent && !d.terms.SpotToSpot {
		percent = farMinSavingPercent
	}
	return max(1, d.terms.MinSaving, before*resources.Money(percent)/100)
}

// onlyMore reports whether launches are more nodes than the group that they replace, for a saving within the tolerance by which fewer
// nodes may be dearer: nobody runs more nodes to save so little (P-22, B-20). before is what the group costs.
func onlyMore(s *cluster.Snapshot, group []*cluster.Node, before resources.Money, launches []plan.Launch) bool {
	pool := s.Pool(group[0].Pool)
	saving := before - plan.Plan{Launches: launches}.Cost(s.Overhead)
	return pool != nil && len(launches) > len(group) && saving < before*resources.Money(pool.PriceTolerance)/100
}

// share is the part of the price of one node that its replacement has to save.
func (d *disruption) share(price resources.Money) resources.Money {
	return price * resources.Money(d.terms.MinSavingPercent) / 100
}

// priceOf sums the prices of nodes per hour, as they are told to people. What is compared is their cost.
func priceOf(nodes []*cluster.Node) resources.Money {
	sum := resources.Money(0)
	for _, node := range nodes {
		sum += node.Price
	}
	return sum
}

// cost is what nodes cost per hour in all, with what a node costs beside its price.
func (d *disruption) cost(nodes ...*cluster.Node) resources.Money {
	if len(d.base.Commitments) == 0 {
		return d.base.Cost(nodes...)
	}
	d.account()
	return d.costs(nodes...)
}

// costOfLaunches is the same for what is launched.
func (d *disruption) costOfLaunches(launches []plan.Launch) resources.Money {
	return plan.Plan{Launches: launches}.Cost(d.base.Overhead)
}

// instead says what the launches cost and what the group does, as prices; where nodes cost something beside these,
// how many they are as well, since that is what the comparison is about then.
func (d *disruption) instead(launches []plan.Launch, group []*cluster.Node) string {
	p := plan.Plan{Launches: launches}
	before, after := priceOf(group), p.Price()
	if p.Cost(d.base.Overhead) == after && d.cost(group...) == before {
		return fmt.Sprintf("%s/h instead of %s/h", after, before)
	}
	if len(d.base.Commitments) > 0 {
		return fmt.Sprintf("%s/h instead of %s/h, without what commitments pay", d.costOfLaunches(launches), d.cost(group...))
	}
	return fmt.Sprintf("%s/h on %s instead of %s/h on %s", after, nodesText(len(launches)), before, nodesText(len(group)))
}

func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func podsRun(n int) string {
	if n == 1 {
		return "1 pod runs"
	}
	return fmt.Sprintf("%d pods run", n)
}

// podsOf counts the pods that would have to move.
func podsOf(nodes []*cluster.Node) int {
	sum := 0
	for _, node := range nodes {
		_, pods := DisruptionCost(node)
		sum += pods
	}
	return sum
}

// floorOf returns a cost that no nodes are below which could be launched for the pods of these nodes that have to move, as far
// as they do not fit on others. Spot nodes that must not be replaced by spot are measured by everything else (D-05).
func (d *disruption) floorOf(nodes ...*cluster.Node) resources.Money {
	least, spotless, open := resources.Unpriced, allSpot(nodes) && !d.terms.SpotToSpot, d.open(nodes)
	for _, pool := range d.base.Pools {
		if pool.Blocked != "" || pool.Catalog == nil || pool.Static {
			continue
		}
		m := d.market(pool, spotless, open)
		var sum catalog.Least
		for _, node := range nodes {
			for _, pod := range node.Pods {
				if !pod.Fixed && !pod.Terminating {
					sum = sum.Plus(m.least(pod.Shape))
				}
			}
		}
		least = min(least, sum.Price())
	}
	return least
}

// market is offers of a pool, all or all but spot, and what pods cost there at least. Each shape is looked at once.
type market struct {
	floor  catalog.Floor
	shapes map[*cluster.Shape]catalog.Least
}

func (m market) least(shape *cluster.Shape) catalog.Least {
	known, found := m.shapes[shape]
	if !found {
		known = m.floor.Of(shape.Requests)
		m.shapes[shape] = known
	}
	return known
}

// marketKey names a market.
type marketKey struct {
	pool     string
	spotless bool
	open     uint64 // see disruption.open
}

func (d *disruption) market(pool *cluster.Pool, spotless bool, open uint64) market {
	key := marketKey{pool.Name, spotless, open}
	known, found := d.markets[key]
	if !found {
		offers := pool.Catalog.Available.Clone()
		pool.Catalog.Narrow(offers, pool.Requirements)
		if spotless {
			pool.Catalog.Compatible(requirement.OneOf(catalog.LabelCapacityType, catalog.OnDemand, catalog.Reserved)).AndTo(offers)
		}
		for i := range pool.Catalog.OnCommitments().All() {
			if open&(1<<(pool.Catalog.Offers[i].Commitment-1)) == 0 {
				offers.Remove(i)
			}
		}
		known = market{pool.Catalog.Floor(offers, pool.NodeOverheadPrice), map[*cluster.Shape]catalog.Least{}}
		d.markets[key] = known
	}
	return known
}

// worthIt is the rule of Balanced pools (D-03): the saving's share of what the pools cost must be at least half of the share
// of all their pods, by the cost of disrupting them, that has to move. In other pools every saving is worth it.
func (d *disruption) worthIt(group []*cluster.Node, saving resources.Money) bool {
	pools, balanced := map[string]bool{}, false
	cost := int64(0)
	for _, node := range group {
		pools[node.Pool] = true
		balanced = balanced || d.future.Pool(node.Pool).Consolidates == cluster.Balanced
		own, _ := DisruptionCost(node)
		cost += max(0, own)
	}
	if !balanced {
		return true
	}
	price, all := 0.0, 0.0
	for _, node := range d.future.Nodes {
		if pools[node.Pool] && node.Price != resources.Unpriced {
			own, _ := DisruptionCost(node)
			price, all = price+float64(d.cost(node)), all+float64(max(0, own))
		}
	}
	if price == 0 || all == 0 {
		return true
	}
	const threshold = 0.5
	return float64(saving)/price >= threshold*float64(cost)/all
}
