package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// pool is a NodePool prepared for one round: what a new node of it can be.
type pool struct {
	*cluster.Pool
	index int // position among the round's pools
	// offers are available and allowed by the pool's own requirements.
	offers catalog.Bits
	// available are the offers that can be had, and reservations that are used up; see left.available.
	available catalog.Bits
	// custom are the pool's requirements on labels that the provider does not decide.
	custom requirement.Set
	// overhead is what daemons request on every node. some is what further daemons request on some offers only; nil
	// when there are none.
	overhead  resources.Vector
	some      []partial
	uneven    *uneven            // made when it is first needed: see roomFor
	rooms     []resources.Vector // by offer, made when they are first needed: see roomOf
	residents []resident
	used      limit.Usage // with what this round has planned
	// ceiling is the limit of the whole cluster, with what this round has planned; shared by the pools.
	ceiling *limit.Ceiling
	slots   []int // still free in this round
	closed  bool  // nothing is launched in this round
	// even are the offers that new nodes get first; nil for any. spare is what stays free on a new node (see even.go).
	even  catalog.Bits
	spare resources.Vector
	// reserved are the reservations, which are counted; nil when there are none. reservations is shared by the pools.
	reserved     catalog.Bits
	reservations reservations
	// covered are the offers that a commitment pays for, by commitment, if something was left of it when the round
	// began; nil when there are none. stock is shared by the pools.
	covered []catalog.Bits
	stock   *stock
	mix     *cluster.Mix // with what this round has planned; nil where it is not bounded
}

func newPool(index int, p *cluster.Pool, daemons []cluster.Daemon, left left, ceiling *limit.Ceiling) *pool {
	if p.Static && p.Blocked == "" {
		forPods := *p
		forPods.Blocked = "it is static: spec.replicas sets its number of nodes, waiting pods do not"
		p = &forPods
	}
	own := &pool{Pool: p, index: index, used: p.Used, slots: p.FreeSlots, ceiling: ceiling}
	if p.Catalog == nil {
		return own
	}
	own.offers = left.available(p)
	own.available = own.offers.Clone()
	var custom []requirement.Requirement
	for r := range p.Requirements.All() {
		if p.Catalog.Known(r.Key()) {
			p.Catalog.Compatible(r).AndTo(own.offers)
		} else {
			custom = append(custom, r)
		}
	}
	own.custom = requirement.NewSet(custom...)
	if len(own.custom.EmptyKeys()) > 0 {
		clear(own.offers)
	}
	own.openReservations(left.reservations)
	own.openCommitments(left.stock)
	own.mix = left.mixes[p.Name]
	for i := range daemons {
		own.reserveDaemon(&daemons[i])
	}
	return own
}

// reserveDaemon adds what a daemon requests on the new nodes on which it will run (P-06).
func (p *pool) reserveDaemon(daemon *cluster.Daemon) {
	on := catalog.NewBits(len(p.Catalog.Offers))
	switch {
	case daemon.Comes(p.Name):
		on = p.offers.Clone()
	case keepsAway(p.Taints, daemon.Shape):
	default:
		for _, way := range p.ways(daemon.Shape) {
			way.offers.OrTo(on)
		}
	}
	if on.Empty() {
		return
	}
	if on.Count() == p.offers.Count() && !daemon.Varies(p.Name) {
		p.overhead = p.overhead.Plus(daemon.On(p.Name, ""))
	} else {
		p.some = append(p.some, p.amounts(daemon, on)...)
	}
	p.residents = append(p.residents, resident{shape: daemon.Shape, on: on})
}

// resident is a daemon that will run on every new node of some offers.
type resident struct {
	shape *cluster.Shape
	on    catalog.Bits
}

// label returns what a new node's label may be, if the provider does not decide the label: what the pool says, or
// absent where it says nothing (P-02).
func (p *pool) label(key requirement.Key) requirement.Requirement {
	if p.custom.Holds(key) {
		return p.custom.Get(key)
	}
	return requirement.Absent(key)
}
