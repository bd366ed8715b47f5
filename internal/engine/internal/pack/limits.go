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
// first offer that limits allow.
type limitRule struct {
	anyNode
	anyPool
	untied
}

func (limitRule) reads() []string { return nil }

func (limitRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if a.cheapest = a.pool.cheapestWithin(a.offers, n.held); a.cheapest < 0 {
		return topology.Never
	}
	return topology.Yes
}

func (limitRule) placedIn(_ *solver, n *planned, a *attempt) {
	p := n.pool
	if p.Limits.HasResources() {
		capacity := p.Catalog.Types[p.Catalog.Offers[a.cheapest].Type].Capacity
		p.used.Capacity = p.used.Capacity.Plus(capacity).Minus(n.held)
		n.held = capacity
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
	if p.cheapestWithin(e.left, nil) < 0 {
		capacity := p.Catalog.Types[p.Catalog.Offers[e.left.First()].Type].Capacity
		exceeded, _ := p.Limits.Check(p.used, capacity)
		e.stop(plan.ByLimit, cause.ResourceLimit, e.names[exceeded.Component], exceeded.Text(e.names))
		return e.never(p.firstWithin(limit.Usage{}, e.left, nil) < 0)
	}
	return true
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
// still admit; -1 if there is none. held is counted already.
func (p *pool) cheapestWithin(offers catalog.Bits, held resources.Vector) int {
	return p.firstWithin(p.used, offers, held)
}

// firstWithin is cheapestWithin for a pool with this usage.
func (p *pool) firstWithin(used limit.Usage, offers catalog.Bits, held resources.Vector) int {
	if !p.Limits.HasResources() {
		return offers.First()
	}
	for i := range offers.All() {
		capacity := p.Catalog.Types[p.Catalog.Offers[i].Type].Capacity
		if p.Limits.Room(used, capacity.Minus(held)) {
			return i
		}
	}
	return -1
}

// withinHeld returns the offers that are no larger than what the plan counts against the pool's resource limits. So
// whatever the provider launches stays within them.
func (b *planned) withinHeld() catalog.Bits {
	if !b.pool.Limits.HasResources() {
		return b.offers
	}
	kept := catalog.NewBits(len(b.pool.Catalog.Offers))
	for i := range b.offers.All() {
		if b.pool.Limits.Within(b.pool.Catalog.Types[b.pool.Catalog.Offers[i].Type].Capacity, b.held) {
			kept.Add(i)
		}
	}
	return kept
}

// CeilingCode returns why the limit of the whole cluster refuses a node: it is reached, or it is unknown.
func CeilingCode(c limit.Ceiling) cause.Code {
	if c.Unknown != "" {
		return cause.ClusterLimitUnknown
	}
	return cause.ClusterLimitNodes
}
