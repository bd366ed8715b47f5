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
	// custom are the pool's requirements on labels that the provider does not decide.
	custom requirement.Set
	// overhead is what daemons request on every node. some, by offer, is what further daemons request on some offers only;
	// nil when there are none.
	overhead  resources.Vector
	some      []resources.Vector
	room      *catalog.Thresholds // of what overhead has to be added to
	rooms     []resources.Vector  // by offer: see roomOf
	residents []resident
	used      limit.Usage // with what this round has planned
	// ceiling is that of the whole cluster, with what this round has planned; shared by the pools.
	ceiling *limit.Ceiling
	slots   []int // still free in this round
	closed  bool  // nothing is launched in this round
	// even are the offers that new nodes have first; nil for any. spare is what stays free on a new node (see even.go).
	even  catalog.Bits
	spare resources.Vector
	// reserved are those of offers that are counted; nil when none is. reservations is shared by the pools.
	reserved     catalog.Bits
	reservations reservations
}

func newPool(index int, p *cluster.Pool, daemons []cluster.Daemon, left reservations, ceiling *limit.Ceiling) *pool {
	if p.Static && p.Blocked == "" {
		forPods := *p
		forPods.Blocked = "it is static: spec.replicas sets its number of nodes, waiting pods do not"
		p = &forPods
	}
	own := &pool{Pool: p, index: index, used: p.Used, slots: p.FreeSlots, ceiling: ceiling}
	if p.Catalog == nil {
		return own
	}
	own.offers = p.Catalog.Available.Clone()
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
	own.openReservations(left)
	own.rooms = make([]resources.Vector, len(p.Catalog.Offers))
	own.reserveDaemons(daemons)
	return own
}

// reserveDaemons sums what the daemons that will run on new nodes request (P-06).
func (p *pool) reserveDaemons(daemons []cluster.Daemon) {
	p.room = p.Catalog.Room
	for _, daemon := range daemons {
		if _, bad := cluster.Untolerated(p.Taints, daemon.Shape.Tolerations); bad {
			continue
		}
		on := catalog.NewBits(len(p.Catalog.Offers))
		for _, way := range p.ways(daemon.Shape) {
			way.offers.OrTo(on)
		}
		switch {
		case on.Empty():
			continue
		case on.Count() == p.offers.Count():
			p.overhead = p.overhead.Plus(daemon.Shape.Requests)
		default:
			if p.some == nil {
				p.some = make([]resources.Vector, len(p.Catalog.Offers))
			}
			for i := range on.All() {
				p.some[i] = p.some[i].Plus(daemon.Shape.Requests)
			}
		}
		p.residents = append(p.residents, resident{shape: daemon.Shape, on: on})
	}
	if p.some != nil {
		p.room = catalog.NewThresholds(len(p.Catalog.Offers), func(i int) resources.Vector {
			return p.Catalog.Types[p.Catalog.Offers[i].Type].Allocatable.Minus(p.some[i])
		})
	}
}

// resident is a daemon that will run on every new node of some offers.
type resident struct {
	shape *cluster.Shape
	on    catalog.Bits
}

// daemonsOn returns what daemons request on a node of an offer.
func (p *pool) daemonsOn(offer int) resources.Vector {
	if p.some == nil {
		return p.overhead
	}
	return p.overhead.Plus(p.some[offer])
}

// roomOf returns what an offer leaves to pods. It is computed once.
func (p *pool) roomOf(offer int) resources.Vector {
	if p.rooms[offer] == nil {
		p.rooms[offer] = p.Catalog.Types[p.Catalog.Offers[offer].Type].Allocatable.Minus(p.daemonsOn(offer)).Minus(p.spare)
	}
	return p.rooms[offer]
}

// keepFitting removes from offers, in place, those without room for want beside the daemons. It reports whether any is
// left.
func (p *pool) keepFitting(want resources.Vector, offers catalog.Bits) bool {
	for component, amount := range want {
		if amount <= 0 {
			continue
		}
		with := p.atLeast(component, amount)
		if with == nil {
			clear(offers)
			return false
		}
		with.AndTo(offers)
	}
	return !offers.Empty()
}

// atLeast returns the offers that leave at least amount of a component to pods; nil when none does.
func (p *pool) atLeast(component int, amount int64) catalog.Bits {
	return p.room.AtLeast(component, resources.Sum(amount, resources.Sum(p.overhead.At(component), p.spare.At(component))))
}

// way is one alternative of a shape's node selection as it applies to new nodes of a pool.
type way struct {
	offers catalog.Bits    // allowed by the pool, by availability and by the alternative
	custom requirement.Set // the alternative's requirements on labels that the provider does not decide
	labels requirement.Set // what of the alternative a claim has to carry: demands on labels that its node will have
}

// ways returns the alternatives that a new node of the pool can satisfy, taints and room aside.
func (p *pool) ways(s *cluster.Shape) []way {
	if len(s.Alternatives) == 0 {
		return []way{{offers: p.offers}}
	}
	var list []way
	for _, alternative := range s.Alternatives {
		if w, ok := p.way(alternative); ok {
			list = append(list, w)
		}
	}
	return list
}

func (p *pool) way(alternative cluster.Alternative) (way, bool) {
	if !newHostname(alternative.Names) {
		return way{}, false
	}
	w := way{offers: p.offers.Clone()}
	var custom, carried []requirement.Requirement
	for r := range alternative.Labels.All() {
		switch {
		case r.Key() == cluster.LabelHostname:
			if !newHostname(r) {
				return way{}, false
			}
		case p.Catalog.Known(r.Key()):
			p.Catalog.Compatible(r).AndTo(w.offers)
			carried = append(carried, r)
		case !p.label(r.Key()).Intersects(r):
			return way{}, false
		case p.custom.Holds(r.Key()):
			custom, carried = append(custom, r), append(carried, r)
		}
	}
	w.custom, w.labels = requirement.NewSet(custom...), requirement.NewSet(carried...)
	return w, !w.offers.Empty()
}

// newHostname reports whether a name that no one knows yet satisfies r.
func newHostname(r requirement.Requirement) bool {
	_, finite := r.Values()
	return !finite && r.AllowsPresent()
}

// label returns what a new node's label may be, for a label that the provider does not decide: what the pool says, and
// absent where it says nothing (P-02).
func (p *pool) label(key requirement.Key) requirement.Requirement {
	if p.custom.Holds(key) {
		return p.custom.Get(key)
	}
	return requirement.Absent(key)
}

// cheapestWithin returns the first of offers, in the order of the catalogue, whose capacity the pool's resource limits still admit when
// held is already counted, or -1.
func (p *pool) cheapestWithin(offers catalog.Bits, held resources.Vector) int {
	if !p.Limits.HasResources() {
		return offers.First()
	}
	for i := range offers.All() {
		capacity := p.Catalog.Types[p.Catalog.Offers[i].Type].Capacity
		if p.Limits.Room(p.used, capacity.Minus(held)) {
			return i
		}
	}
	return -1
}

// enough reports whether offers still give every label the number of values that the pool demands, if it
// insists (P-09).
func (p *pool) enough(offers catalog.Bits) bool {
	return p.RelaxMinValues || p.lacking(offers) == nil
}

// lacking returns the labels of which offers have fewer values than the pool demands, with their numbers; nil when none.
func (p *pool) lacking(offers catalog.Bits) map[requirement.Key]int {
	var few map[requirement.Key]int
	for _, demand := range p.MinValues {
		if !p.Catalog.Known(demand.Key) {
			continue
		}
		if n := len(p.Catalog.Values(demand.Key, offers)); n < demand.Count {
			if few == nil {
				few = map[requirement.Key]int{}
			}
			few[demand.Key] = n
		}
	}
	return few
}
