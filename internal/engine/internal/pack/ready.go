package pack

import (
	"cmp"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// poolRule: new nodes come from pools that can launch, and do it for pods.
type poolRule struct {
	anyNode
	anyOffer
	untied
}

func (poolRule) reads() []string { return nil }

func (poolRule) opens(_ *solver, p *pool, _ *shape, ways []way) []way {
	if p.Blocked != "" || p.Catalog == nil {
		return nil
	}
	return ways
}

func (poolRule) explains(_ *solver, e *explainer) bool {
	p := e.pool
	if p.Blocked == "" && p.Catalog != nil && len(p.Catalog.Offers) > 0 {
		return true
	}
	code := cause.PoolNotReady
	if p.Static {
		code = cause.StaticPool
	}
	return e.stop(plan.ByPool, cmp.Or(p.BlockedBy, code), "", cmp.Or(p.Blocked, "its node class offers nothing"))
}

// offerRule: a new node has an offer that the pool's requirements allow and that can be had. newPool has applied both,
// so no way has other offers.
type offerRule struct {
	anyNode
	anyOffer
	anyPool
	untied
}

func (offerRule) reads() []string { return nil }

func (offerRule) explains(_ *solver, e *explainer) bool {
	p := e.pool
	e.left = p.Catalog.AsSold()
	return e.demand(plan.ByPool, p.Requirements) &&
		e.narrow(plan.ByCapacity, cause.NoCapacity, "", "availability", p.available)
}
