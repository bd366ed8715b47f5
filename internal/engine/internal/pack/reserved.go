package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file counts reservations down (P-11). A reservation is paid for whether its machines run or not. So a new node
// goes into one whenever it can, whatever else is on offer. A reservation covers only so many machines. So a node
// planned in one is narrowed to it, and takes one machine away. All other planned nodes leave reservations alone. The
// plan thus never asks for more machines than a reservation has left. Claims on their way say by their labels what
// they hold.

// stockRule: a new node is in no reservation that is used up.
type stockRule struct {
	anyNode
	anyPool // which reservations have something left changes with each node
	untied
}

func (stockRule) reads() []string { return nil }

func (stockRule) narrows(_ *solver, _ *planned, a *attempt) topology.Verdict {
	if a.first {
		a.pool.dropUsedUp(a.offers)
	}
	return topology.Yes
}

func (stockRule) placedIn(*solver, *planned, *attempt) {}

func (stockRule) explains(_ *solver, e *explainer) bool {
	const kept = "left in reservations"
	return e.narrow(plan.ByCapacity, cause.ReservationsUsedUp, string(catalog.LabelCapacityType), kept,
		e.pool.inStock())
}

// reservationRule: a node that gets its first pods is narrowed to one reservation or kept out of all, and takes one
// machine of it.
type reservationRule struct {
	anyNode
	anyPool
	untied
	unexplained // minValues may want more than a reservation has: see minValuesRule
}

func (reservationRule) reads() []string { return nil }

func (reservationRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if a.first {
		n.pool.reserve(a.offers, n.held)
	}
	return topology.Yes
}

func (reservationRule) placedIn(_ *solver, n *planned, a *attempt) {
	if a.first {
		n.pool.take(a.cheapest)
	}
}

// reservations holds how many machines are left in every reservation, by the labels of its offer. Pools of several
// node classes may offer the same one.
type reservations map[string]int

// left is what is paid for anyway and not used, and how much of each pool is spot. The pools of a round share it.
type left struct {
	reservations reservations
	vacant       []*cluster.Node // see cluster.Snapshot
	stock        *stock
	mixes        map[string]*cluster.Mix // by pool
}

func newLeft(snapshot *cluster.Snapshot) left {
	return left{newReservations(snapshot), snapshot.Vacant, newStock(snapshot), newMixes(snapshot)}
}

// newReservations counts what the nodes of the snapshot leave, including those about to go or to come. A claim on its
// way that may end up in one of several reservations counts in each.
func newReservations(snapshot *cluster.Snapshot) reservations {
	var offers []catalog.Offer
	left := reservations{}
	seen := map[*catalog.Index]bool{}
	for _, p := range snapshot.Pools {
		if p.Catalog == nil || seen[p.Catalog] {
			continue
		}
		seen[p.Catalog] = true
		for _, o := range p.Catalog.Offers {
			if o.Reservation <= 0 { // nearly all of them; writing out their labels was a fifth of what what-ifs cost
				continue
			}
			if _, known := left[o.Labels.String()]; !known {
				left[o.Labels.String()] = o.Reservation
				offers = append(offers, o)
			}
		}
	}
	if len(offers) == 0 {
		return nil
	}
	for _, list := range [][]*cluster.Node{snapshot.Nodes, snapshot.Closed, snapshot.Drawing, snapshot.Reserving} {
		for _, node := range list {
			for _, o := range offers {
				if mayHold(node, o) {
					left[o.Labels.String()]--
				}
			}
		}
	}
	return left
}

// UsedUp returns a function that reports whether a node is, or may end up, in a used-up reservation of a pool's
// catalogue.
func UsedUp(snapshot *cluster.Snapshot) func(*cluster.Pool, *cluster.Node) bool {
	left := newReservations(snapshot)
	return func(pool *cluster.Pool, node *cluster.Node) bool {
		return len(left) > 0 && pool.Catalog != nil &&
			slices.ContainsFunc(pool.Catalog.Offers, func(o catalog.Offer) bool {
				return o.Reservation > 0 && mayHold(node, o) && left[o.Labels.String()] <= 0
			})
	}
}

// Vacancy is a reservation with free places.
type Vacancy struct {
	Left int // places that no node holds, nor will or may take
	room resources.Vector
}

// Takes reports whether what runs on a node fits on a machine of the reservation.
func (v Vacancy) Takes(node *cluster.Node) bool { return node.Used.Fits(v.room) }

// Vacancies returns the reservations with free places that some pool may use, in the order of pools and offers.
func Vacancies(snapshot *cluster.Snapshot) []Vacancy {
	left := newReservations(snapshot)
	var list []Vacancy
	for _, p := range snapshot.Pools {
		if len(left) == 0 || p.Catalog == nil || p.Static || p.Blocked != "" {
			continue
		}
		for i := range reservedOf(p).And(p.Catalog.Available).All() {
			o := p.Catalog.Offers[i]
			if labels := o.Labels.String(); left[labels] > 0 {
				list = append(list, Vacancy{left[labels], p.Catalog.Types[o.Type].Allocatable})
				delete(left, labels)
			}
		}
	}
	return list
}

// reservedOf returns the reservations that a pool may use, whether they have room or not.
func reservedOf(p *cluster.Pool) catalog.Bits {
	reserved := catalog.NewBits(len(p.Catalog.Offers))
	for i, o := range p.Catalog.Offers {
		if o.Reservation > 0 {
			reserved.Add(i)
		}
	}
	p.Catalog.Narrow(reserved, p.Requirements)
	return reserved
}

// mayHold reports whether the node is, or may end up, in a reservation. A label that it should have and lacks proves
// nothing, unless every node of ours has that label.
func mayHold(node *cluster.Node, o catalog.Offer) bool {
	for _, key := range []requirement.Key{catalog.LabelCapacityType, catalog.LabelInstanceType, catalog.LabelZone} {
		if _, present := node.Labels[string(key)]; !present && !node.Open.Holds(key) {
			return false
		}
	}
	for r := range o.Labels.All() {
		if value, present := node.Labels[string(r.Key())]; present {
			if !r.Has(value) {
				return false
			}
		} else if node.Open.Holds(r.Key()) && !node.Open.Get(r.Key()).Intersects(r) {
			return false
		}
	}
	return true
}

// available returns the offers of a pool that can be had at present, and the reservations that our own nodes have used
// up. Providers may call these unavailable, but what is left is counted here. A reservation with something left is
// what its provider says.
func (l left) available(p *cluster.Pool) catalog.Bits {
	offers := p.Catalog.Available.Clone()
	if len(l.reservations) == 0 {
		return offers
	}
	for i, o := range p.Catalog.Offers {
		if o.Reservation <= 0 || offers.Has(i) {
			continue
		}
		left := l.reservations[o.Labels.String()]
		for _, node := range l.vacant {
			if mayHold(node, o) {
				left--
			}
		}
		if left <= 0 {
			offers.Add(i)
		}
	}
	return offers
}

// openReservations finds the pool's reservations, including those not available at present, and drops used-up ones
// from its offers.
func (p *pool) openReservations(left reservations) {
	if len(left) == 0 {
		return
	}
	p.reservations = left
	if reserved := reservedOf(p.Pool); !reserved.Empty() {
		p.reserved = reserved
		p.dropUsedUp(p.offers)
	}
}

// isReserved reports whether an offer is a reservation that is counted.
func (p *pool) isReserved(offer int) bool { return p.reserved != nil && p.reserved.Has(offer) }

// reservedLeft returns how many machines can still be planned in a reservation.
func (p *pool) reservedLeft(offer int) int {
	return p.reservations[p.Catalog.Offers[offer].Labels.String()]
}

// unreserved returns the pool's offers that are in no reservation and on no commitment.
func (p *pool) unreserved() catalog.Bits {
	if p.reserved == nil {
		return p.uncommitted(p.offers)
	}
	return p.uncommitted(p.offers.Minus(p.reserved))
}

// dropUsedUp removes used-up reservations from offers, in place.
func (p *pool) dropUsedUp(offers catalog.Bits) {
	if p.reserved == nil {
		return
	}
	for i := range p.reserved.All() {
		if offers.Has(i) && p.reservedLeft(i) <= 0 {
			offers.Remove(i)
		}
	}
}

// inStock returns all offers except used-up reservations.
func (p *pool) inStock() catalog.Bits {
	offers := p.Catalog.All()
	for i, o := range p.Catalog.Offers {
		if o.Reservation > 0 && p.reservedLeft(i) <= 0 {
			offers.Remove(i)
		}
	}
	return offers
}

// reserve narrows left, in place, to its first usable reservation, or when there is none to what is not reserved. A
// reservation is not usable if minValues wants more offers than the one (P-09), or if limits are too low for it.
func (p *pool) reserve(left catalog.Bits, held resources.Vector) {
	if p.reserved == nil {
		return
	}
	others := left.Minus(p.reserved)
	for i := range left.And(p.reserved).All() {
		only := catalog.NewBits(len(p.Catalog.Offers))
		only.Add(i)
		enough := p.lacking(only) == nil || p.RelaxMinValues && others.Empty()
		if enough && p.cheapestWithin(only, held) >= 0 {
			copy(left, only)
			return
		}
	}
	copy(left, others)
}

// take takes a machine of the offer's reservation for a planned node, if the offer is one.
func (p *pool) take(offer int) {
	if p.isReserved(offer) {
		p.reservations[p.Catalog.Offers[offer].Labels.String()]--
	}
}

// packReserved plans nodes in the pool's reservations for the groups, the cheapest first, until nothing is left of one
// or no pod can use it. Larger pods go first, and smaller ones fill up what they leave.
func (s *solver) packReserved(p *pool, groups []*group) {
	if p.reserved == nil {
		return
	}
	for i := range p.offers.And(p.reserved).All() {
		for p.reservedLeft(i) > 0 && p.mayGrow() && s.launchReserved(p, groups, i) {
		}
	}
}

// launchReserved plans one node in a reservation. It reports false when no group has a pod for it.
func (s *solver) launchReserved(p *pool, groups []*group, offer int) bool {
	only := catalog.NewBits(len(p.Catalog.Offers))
	only.Add(offer)
	b, index := s.addPlanned(p, only)
	for _, g := range groups {
		for len(g.pods) > 0 {
			n := min(sameShape(g.pods), howMany(p.roomOf(offer).Minus(b.used), g.info.Requests))
			if n == 0 || s.tryPlanned(index, s.ask(g.pods[:n], s.info(g.pods[0].Shape))) != topology.Yes {
				break
			}
			g.pods = g.pods[n:]
		}
	}
	if len(b.pods) == 0 {
		s.dropPlanned()
		return false
	}
	s.opened(b)
	return true
}

// sameShape returns how many pods at the front of the list, which is not empty, have one shape.
func sameShape(pods []*cluster.Pod) int {
	n := slices.IndexFunc(pods, func(p *cluster.Pod) bool { return p.Shape != pods[0].Shape })
	if n < 0 {
		return len(pods)
	}
	return n
}

// howMany returns how often requests fit into left.
func howMany(left, requests resources.Vector) int {
	n := int64(1 << 30) // more than any node takes
	for component, amount := range requests {
		if amount > 0 {
			n = min(n, left.At(component)/amount)
		}
	}
	return int(max(n, 0))
}

// sayUnreserved returns the demands by which a claim stays out of reservations; none when its types have no
// reservation in the pool.
func (b *planned) sayUnreserved(offers catalog.Bits) requirement.Set {
	only, index := requirement.NewSet(), b.pool.Catalog
	for _, t := range index.TypesByPrice(offers) {
		if b.pool.reserved != nil && index.OfType(index.Types[t].Name).Intersects(b.pool.reserved) {
			return only.With(requirement.OneOf(catalog.LabelCapacityType,
				index.Values(catalog.LabelCapacityType, offers)...))
		}
	}
	return only
}

// sayReserved returns the demands by which a claim gets this reservation and no other: its zone, its capacity type,
// and what else tells it from the other offers of its type.
func (b *planned) sayReserved(offer int) requirement.Set {
	index := b.pool.Catalog
	o := index.Offers[offer]
	only := requirement.NewSet(requirement.OneOf(catalog.LabelZone, o.Zone),
		requirement.OneOf(catalog.LabelCapacityType, o.CapacityType))
	left := index.OfType(index.Types[o.Type].Name).Clone()
	for r := range only.All() {
		index.Compatible(r).AndTo(left)
	}
	for r := range o.Labels.All() {
		if same := index.Compatible(r).And(left); same.Count() < left.Count() {
			only, left = only.With(r), same
		}
	}
	return only
}
