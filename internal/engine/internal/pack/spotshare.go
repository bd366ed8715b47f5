package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// spotShareRule: the share of spot among a pool's nodes is no larger than the pool allows (K-55). A new node that may
// be spot or not is kept from spot if it would be one too many. A node that can only be spot is launched all the same,
// and counts. This rule comes before those that decide by price what is open, since they would choose spot. A node
// that is not spot may then be refused for minValues.
type spotShareRule struct {
	anyNode
	anyPool
	untied
}

func (spotShareRule) reads() []string { return nil }

func (spotShareRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	p := n.pool
	if p.mix == nil || !a.first || a.waived || p.Allows(p.mix.Plus(cluster.Mix{Spot: 1, All: 1})) {
		return topology.Yes
	}
	if others, some := n.notSpot(a); some {
		copy(a.offers, others)
		a.again = (*solver).onlySpot
	}
	return topology.Yes
}

// notSpot returns the offers of an attempt that are not spot, and whether limits allow any of them.
func (n *planned) notSpot(a *attempt) (others catalog.Bits, some bool) {
	others = a.offers.Minus(n.pool.spot())
	return others, n.pool.firstWithin(n.pool.used, others, n.held) >= 0
}

// onlySpot is this rule's retry: it tries the node with spot, and reports whether the rules leave it nothing but spot.
func (s *solver) onlySpot(n *planned, a *attempt, w *way) bool {
	a.of(n, w)
	a.waived = true
	if s.narrows(n, a) != topology.Yes {
		return false
	}
	_, others := n.notSpot(a)
	return !others
}

func (spotShareRule) placedIn(_ *solver, n *planned, a *attempt) {
	p := n.pool
	if p.mix == nil || !a.first {
		return
	}
	more := cluster.Mix{All: 1}
	if n.offers.Intersects(p.spot()) {
		more.Spot = 1
	}
	*p.mix = p.mix.Plus(more)
}

// explains blames the share if the pool insists on a choice that there is only with spot.
func (spotShareRule) explains(_ *solver, e *explainer) bool {
	p := e.pool
	if e.isBeyond || p.mix == nil || !p.insists() || p.Allows(p.mix.Plus(cluster.Mix{Spot: 1, All: 1})) {
		return true
	}
	others := e.unreserved().Minus(p.spot())
	chosen := p.enough(others) && p.cheapestWithin(others, nil) >= 0
	if p.firstWithin(p.used, others, nil) < 0 || chosen || !p.enough(e.unreserved()) {
		return true
	}
	return e.stop(plan.ByPool, cause.MinValues, "minValues",
		p.fewValues(others)+": joiner.sh/spot-ratio of the pool allows no further node that may be spot")
}

// spot returns the spot offers.
func (p *pool) spot() catalog.Bits {
	return p.Catalog.Compatible(requirement.OneOf(catalog.LabelCapacityType, catalog.Spot))
}

// newMixes counts the nodes of those pools that bound the share of spot.
func newMixes(snapshot *cluster.Snapshot) map[string]*cluster.Mix {
	var mixes map[string]*cluster.Mix
	for _, p := range snapshot.Pools {
		if p.OnDemandPercent > 0 {
			if mixes == nil {
				mixes = map[string]*cluster.Mix{}
			}
			own := snapshot.Mix(p.Name)
			mixes[p.Name] = &own
		}
	}
	return mixes
}
