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
	// farPercent is how much more the nodes of a pool may cost than a fresh plan pays for their pods, in percent.
	// Beyond that, a smaller saving is enough for a group of nodes (B-17).
	farPercent = 2
	// farMinSavingPercent is that smaller saving: it replaces DefaultMinSavingPercent. What a user has set to
	// something else always holds. The default holds for one node alone, and where spot nodes may replace spot nodes:
	// their prices move all the time.
	farMinSavingPercent = 2
)

// DefaultPriceTolerance is how much more fewer nodes may cost than the cheapest ones where a user says nothing, in
// percent (P-22, B-20). Nobody runs twice as many nodes to save the last few percent: each has an address, agents,
// images to pull, and a place in every list.
const DefaultPriceTolerance = 5

// minSaving returns what the replacement of this many nodes has to save, at least 1. before is what they cost.
func (d *disruption) minSaving(before resources.Money, nodes int) resources.Money {
	percent := d.terms.MinSavingPercent
	if d.far && nodes > 1 && percent == DefaultMinSavingPercent && !d.terms.SpotToSpot {
		percent = farMinSavingPercent
	}
	return max(1, d.terms.MinSaving, before*resources.Money(percent)/100)
}

// onlyMore reports whether launches are more nodes than the group that they replace, and save less than the pool's
// price tolerance: nobody runs more nodes to save so little (P-22, B-20). before is what the group costs.
func onlyMore(s *cluster.Snapshot, group []*cluster.Node, before resources.Money, launches []plan.Launch) bool {
	pool := s.Pool(group[0].Pool)
	saving := before - plan.Plan{Launches: launches}.Cost(s.Overhead)
	return pool != nil && len(launches) > len(group) && saving < before*resources.Money(pool.PriceTolerance)/100
}

// share returns what the replacement of one node has to save of its price.
func (d *disruption) share(price resources.Money) resources.Money {
	return price * resources.Money(d.terms.MinSavingPercent) / 100
}

// priceOf sums the prices of nodes per hour, for people. What is compared is their cost.
func priceOf(nodes []*cluster.Node) resources.Money {
	sum := resources.Money(0)
	for _, node := range nodes {
		sum += node.Price
	}
	return sum
}

// cost returns what nodes cost per hour in all: their prices, and what a node costs beside its price.
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

// instead says what the launches and the group cost, as prices. Where nodes cost something beside their price, it also
// says how many they are, since the comparison is about that then.
func (d *disruption) instead(launches []plan.Launch, group []*cluster.Node) string {
	p := plan.Plan{Launches: launches}
	before, after := priceOf(group), p.Price()
	if p.Cost(d.base.Overhead) == after && d.cost(group...) == before {
		return fmt.Sprintf("%s/h instead of %s/h", after, before)
	}
	if len(d.base.Commitments) > 0 {
		return fmt.Sprintf("%s/h instead of %s/h, without what commitments pay", d.costOfLaunches(launches),
			d.cost(group...))
	}
	return fmt.Sprintf("%s/h on %s instead of %s/h on %s", after, nodesText(len(launches)), before,
		nodesText(len(group)))
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

// floorOf returns a lower bound on the cost of new nodes for the movable pods of these nodes, as far as they do not
// fit on others. For spot nodes that spot must not replace, it leaves out spot offerings (D-05).
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
				if pod.Moves() {
					sum = sum.Plus(m.least(pod.Shape))
				}
			}
		}
		least = min(least, sum.Price())
	}
	return least
}

// market is the offers of a pool, with or without spot, and the least that pods cost there. Each shape is looked at
// once.
type market struct {
	offers catalog.Bits
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

// marketKey identifies a cached market.
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
			pool.Catalog.Compatible(requirement.OneOf(catalog.LabelCapacityType, catalog.OnDemand,
				catalog.Reserved)).AndTo(offers)
		}
		for i := range pool.Catalog.OnCommitments().All() {
			if open&(1<<(pool.Catalog.Offers[i].Commitment-1)) == 0 {
				offers.Remove(i)
			}
		}
		known = market{offers, pool.Catalog.Floor(offers, pool.NodeOverheadPrice), map[*cluster.Shape]catalog.Least{}}
		d.markets[key] = known
	}
	return known
}

// worthIt is the rule of Balanced pools (D-03). It compares the saving, as a share of what the pools cost, with the
// pods that have to move, as a share of all their pods by the cost of disrupting them. The first must be at least half
// of the second. In other pools every saving is worth it.
func (d *disruption) worthIt(group []*cluster.Node, saving resources.Money) bool {
	pools, balanced := map[string]bool{}, false
	cost := int64(0)
	for _, node := range group {
		pools[node.Pool] = true
		pool := d.future.Pool(node.Pool)
		balanced = balanced || pool != nil && pool.Consolidates == cluster.Balanced
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
