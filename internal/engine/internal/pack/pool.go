package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/fit"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// pool is a NodePool prepared for one round: what a new node of it can be.
type pool struct {
	*cluster.Pool
	number int // position among the round's pools
	// offers are available and allowed by the pool's own requirements.
	offers catalog.Bits
	// custom are the pool's requirements on labels that the provider does not decide.
	custom requirement.Set
	// room is what each offer leaves to pods: allocatable less the daemons that will run there. size is its capacity.
	room, size *fit.Thresholds
	rooms      []resources.Vector // by offer: what room is made of
	daemons    []resources.Vector // by offer: what daemons request there
	ports      []cluster.HostPort // of daemons
	used       limit.Usage        // with what this round has planned
	slots      []int              // still free in this round
}

func newPool(number int, p *cluster.Pool, daemons []cluster.Daemon) *pool {
	own := &pool{Pool: p, number: number, used: p.Used, slots: p.FreeSlots}
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
	own.reserveDaemons(daemons)
	for i, o := range p.Catalog.Offers {
		own.rooms = append(own.rooms, p.Catalog.Types[o.Type].Allocatable.Minus(own.daemons[i]))
	}
	own.room = fit.New(len(p.Catalog.Offers), own.roomOf)
	own.size = fit.New(len(p.Catalog.Offers), func(i int) resources.Vector { return p.Catalog.Types[p.Catalog.Offers[i].Type].Capacity })
	return own
}

// reserveDaemons sums, for each offer, what the daemons that will run on such a node request (P-06).
func (p *pool) reserveDaemons(daemons []cluster.Daemon) {
	p.daemons = make([]resources.Vector, len(p.Catalog.Offers))
	for _, daemon := range daemons {
		if _, bad := cluster.Untolerated(p.Taints, daemon.Shape.Tolerations); bad {
			continue
		}
		on := catalog.NewBits(len(p.Catalog.Offers))
		for _, way := range p.ways(daemon.Shape) {
			way.offers.OrTo(on)
		}
		for i := range on.All() {
			p.daemons[i] = p.daemons[i].Plus(daemon.Shape.Requests)
		}
		if !on.Empty() {
			p.ports = append(p.ports, daemon.Shape.HostPorts...)
		}
	}
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
	if !alternative.Names.IsAny() {
		return way{}, false // the name of a node to come is not known
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

// newHostname reports whether a hostname that no one knows yet satisfies r.
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

// cheapestWithin returns the first of offers, by price, whose capacity the pool's resource limits still admit when
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
