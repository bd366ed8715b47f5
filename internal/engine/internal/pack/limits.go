package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// limitRule: a pool stays within its limits (L-10, L-11), and the cluster within its own (K-53). Node limits are
// checked before a node is planned (mayGrow), and resource limits each time that it is narrowed. The plan counts the
// first offer that limits allow, and more where the pool insists on a choice (see holding).
type limitRule struct {
	anyNode
	anyPool
	untied
}

func (limitRule) reads() []string { return nil }

func (limitRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if p := a.pool; p.Limits.HasResources() {
		a.cheapest, a.holds = p.holding(p.used, a.offers, n.held)
	} else {
		a.cheapest = a.offers.First()
	}
	if a.cheapest < 0 {
		return topology.Never
	}
	return topology.Yes
}

func (limitRule) placedIn(_ *solver, n *planned, a *attempt) {
	p := n.pool
	if p.Limits.HasResources() {
		p.used.Capacity = p.used.Capacity.Plus(a.holds).Minus(n.held)
		n.held = a.holds
	}
}

func (limitRule) explains(_ *solver, e *explainer) bool {
	p := e.pool
	if p.ceiling.Left() == 0 {
		return e.stop(plan.ByLimit, CeilingCode(*p.ceiling), p.ceiling.Flag(), p.ceiling.Text())
	}
	if exceeded, ok := p.Limits.CheckNodes(p.used.Nodes); !ok {
		code := cause.SoftLimitNodes
		if exceeded.Hard {
			code = cause.HardLimitNodes
		}
		e.stop(plan.ByLimit, code, resources.NameNodes, exceeded.Text(e.names))
		return e.never(exceeded.Limit == 0)
	}
	if p.firstWithin(p.used, e.left, nil) < 0 {
		exceeded, _ := p.Limits.Check(p.used, p.capacityOf(e.left.First()))
		e.stop(plan.ByLimit, cause.ResourceLimit, e.names[exceeded.Component], exceeded.Text(e.names))
		return e.never(p.firstWithin(limit.Usage{}, e.left, nil) < 0)
	}
	return e.choiceWithin()
}

// choiceWithin says so if the limits admit a node, but none with the choice of values that the pool insists on.
func (e *explainer) choiceWithin() bool {
	p, offers := e.pool, e.unreserved()
	if !p.insists() || !p.enough(offers) || p.cheapestWithin(offers, nil) >= 0 {
		return true // or rather, minValues alone is in the way: see minValuesRule
	}
	_, needed := p.leastChoice(offers, func(resources.Vector) bool { return true })
	exceeded, _ := p.Limits.Check(p.used, needed)
	e.stop(plan.ByLimit, cause.ResourceLimit, e.names[exceeded.Component],
		exceeded.Text(e.names)+", since minValues asks for a choice")
	first, _ := p.holding(limit.Usage{}, offers, nil)
	return e.never(first < 0)
}

// never notes in the last step whether even an empty pool could not have such a node. It returns false, as stop does.
func (e *explainer) never(is bool) bool {
	e.steps[len(e.steps)-1].Never = is
	return false
}

// mayGrow reports whether the node limits of the pool and of the cluster admit one more (L-10, L-11, K-53).
func (p *pool) mayGrow() bool {
	if p.closed || p.ceiling.Left() == 0 {
		return false
	}
	if _, ok := p.Limits.CheckNodes(p.used.Nodes); !ok {
		return false
	}
	return p.FreeSlots == nil || len(p.slots) > 0
}

// admitted returns how many more nodes the node limits of pool and cluster admit; below 0 for any number.
func (p *pool) admitted() int {
	left := p.Limits.NodesLeft(p.used.Nodes)
	if p.FreeSlots != nil && (left < 0 || len(p.slots) < left) {
		left = len(p.slots)
	}
	if all := int(p.ceiling.Left()); all >= 0 && (left < 0 || all < left) {
		left = all
	}
	return left
}

// cheapestWithin returns the first of offers, in the order of the catalogue, whose capacity the pool's resource limits
// still admit; -1 if there is none, or not the choice that the pool insists on. held is counted already.
func (p *pool) cheapestWithin(offers catalog.Bits, held resources.Vector) int {
	first, _ := p.holding(p.used, offers, held)
	return first
}

// firstWithin is cheapestWithin for a pool with this usage, whatever it insists on.
func (p *pool) firstWithin(used limit.Usage, offers catalog.Bits, held resources.Vector) int {
	if !p.Limits.HasResources() {
		return offers.First()
	}
	for i := range offers.All() {
		if p.Limits.Room(used, p.capacityOf(i).Minus(held)) {
			return i
		}
	}
	return -1
}

// holding returns the first of offers that the pool's resource limits admit with this usage, and what the plan counts
// for a node that may become any of offers: the capacity of that one. The claim leaves out what is larger. So if the
// pool insists on a choice (P-09), it is what the smallest choice takes. It returns -1 if limits admit none.
func (p *pool) holding(used limit.Usage, offers catalog.Bits, held resources.Vector) (int, resources.Vector) {
	if !p.Limits.HasResources() {
		return offers.First(), nil
	}
	if p.insists() {
		return p.leastChoice(offers, func(capacity resources.Vector) bool {
			return p.Limits.Room(used, capacity.Minus(held))
		})
	}
	if first := p.firstWithin(used, offers, held); first >= 0 {
		return first, p.capacityOf(first)
	}
	return -1, nil
}

// leastChoice returns the first of the offers that are admitted, and the most of each resource that as few of them as
// possible have, by price, so that those no larger are enough for minValues. It returns -1 if all are not enough.
func (p *pool) leastChoice(offers catalog.Bits, admits func(resources.Vector) bool) (int, resources.Vector) {
	first, most := -1, resources.Vector(nil)
	for i := range offers.All() {
		capacity := p.capacityOf(i)
		if first >= 0 && p.Limits.Within(capacity, most) || !admits(capacity) {
			continue
		}
		if first < 0 {
			first = i
		}
		if most = most.Max(capacity); p.enough(p.within(offers, most)) {
			return first, most
		}
	}
	return -1, nil
}

func (p *pool) capacityOf(offer int) resources.Vector {
	return p.Catalog.Types[p.Catalog.Offers[offer].Type].Capacity
}

// within returns those of offers that are no larger than held in what the pool limits.
func (p *pool) within(offers catalog.Bits, held resources.Vector) catalog.Bits {
	kept := catalog.NewBits(len(p.Catalog.Offers))
	for i := range offers.All() {
		if p.Limits.Within(p.capacityOf(i), held) {
			kept.Add(i)
		}
	}
	return kept
}

// withinHeld returns the offers that are no larger than what the plan counts against the pool's resource limits. So
// whatever the provider launches stays within them.
func (b *planned) withinHeld() catalog.Bits {
	if !b.pool.Limits.HasResources() {
		return b.offers
	}
	return b.pool.within(b.offers, b.held)
}

// CeilingCode returns why the limit of the whole cluster refuses a node: it is reached, or it is unknown.
func CeilingCode(c limit.Ceiling) cause.Code {
	if c.Unknown != "" {
		return cause.ClusterLimitUnknown
	}
	return cause.ClusterLimitNodes
}
