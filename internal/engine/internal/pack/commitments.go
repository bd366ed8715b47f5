package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file plans on commitments (K-55). What they cover is paid for whether nodes use it or not. So a new node is one
// that a commitment covers, as long as enough is left for the whole of it. The claim then allows nothing else. What
// the node costs on demand is taken off what is left, so a plan never counts on more than there is. All other planned
// nodes are as sold.

// commitmentRule: a node that gets its first pods is narrowed to one commitment or kept out of all. It takes its part
// of the commitment, which grows with the node.
type commitmentRule struct {
	anyNode
	anyPool
	untied
	unexplained // what a commitment covers is also sold without it
}

func (commitmentRule) reads() []string { return nil }

func (commitmentRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	p := n.pool
	switch {
	case p.covered == nil:
		return topology.Yes
	case a.first:
		p.commit(a.offers, n.held)
	case n.commitment != 0:
		p.stock.dropDearer(p, a.offers, n.commitment, n.drawn)
	}
	if a.offers.Empty() {
		return topology.Never
	}
	return topology.Yes
}

func (commitmentRule) placedIn(_ *solver, n *planned, a *attempt) {
	o := n.pool.Catalog.Offers[a.cheapest]
	if o.Commitment == 0 {
		return
	}
	stock, before := n.pool.stock, n.drawn
	n.commitment, n.drawn = o.Commitment, stock.commitments[o.Commitment-1].Takes(o.List)
	stock.move(n.commitment, before, n.drawn)
}

// stock is what is used of the commitments, shared by the pools of a round; nil without any.
type stock struct {
	commitments []cluster.Commitment
	used        []cluster.Amount
}

func newStock(snapshot *cluster.Snapshot) *stock {
	if len(snapshot.Commitments) == 0 {
		return nil
	}
	return &stock{snapshot.Commitments, snapshot.Ledger().Used(nil)}
}

// has reports whether enough is left for a node with an offer. drawn is what the node has taken of the commitment
// already.
func (s *stock) has(o catalog.Offer, drawn cluster.Amount) bool {
	if s == nil || o.Commitment > len(s.used) {
		return false
	}
	c := s.commitments[o.Commitment-1]
	return c.Has(s.used[o.Commitment-1].Minus(drawn), c.Takes(o.List))
}

// move replaces one amount that is taken of a commitment by another.
func (s *stock) move(commitment int, from, to cluster.Amount) {
	s.used[commitment-1] = s.used[commitment-1].Minus(from).Plus(to)
}

// dropDearer removes from offers, in place, those for which the commitment has not enough left.
func (s *stock) dropDearer(p *pool, offers catalog.Bits, commitment int, drawn cluster.Amount) {
	for i := range p.covered[commitment-1].All() {
		if offers.Has(i) && !s.has(p.Catalog.Offers[i], drawn) {
			offers.Remove(i)
		}
	}
}

// openCommitments finds which of the pool's offers commitments cover, and drops those for which not enough is left. A
// pool with minValues plans on none: its claims keep a choice that no commitment is sure to cover.
func (p *pool) openCommitments(left *stock) {
	all := p.Catalog.OnCommitments()
	if all == nil {
		return
	}
	covered, some := []catalog.Bits(nil), false
	if left != nil && len(p.MinValues) == 0 {
		covered = make([]catalog.Bits, len(left.commitments))
	}
	for i := range covered {
		covered[i] = catalog.NewBits(len(p.Catalog.Offers))
	}
	for i := range all.All() {
		switch o := p.Catalog.Offers[i]; {
		case !p.offers.Has(i):
		case covered == nil || !left.has(o, cluster.Amount{}):
			p.offers.Remove(i)
		default:
			covered[o.Commitment-1].Add(i)
			some = true
		}
	}
	if some {
		p.covered, p.stock = covered, left
	}
}

// uncommitted returns those of offers that no commitment pays for.
func (p *pool) uncommitted(offers catalog.Bits) catalog.Bits {
	if p.covered == nil {
		return offers
	}
	return offers.Minus(p.Catalog.OnCommitments())
}

// commit narrows left, in place, to the first commitment with enough for some of it, or when there is none to what is
// as sold. Reservations come before commitments, and limits may be too low for one.
func (p *pool) commit(left catalog.Bits, held resources.Vector) {
	sold := p.uncommitted(left)
	if first := sold.First(); first < 0 || !p.isReserved(first) {
		for number, covered := range p.covered {
			only := left.And(covered)
			p.stock.dropDearer(p, only, number+1, cluster.Amount{})
			if !only.Empty() && p.cheapestWithin(only, held) >= 0 {
				copy(left, only)
				return
			}
		}
	}
	copy(left, sold)
}

// packCommitted plans nodes on the commitments for the groups, choosing those that take least. With each commitment it
// ends when nothing is left or no pod can use it.
func (s *solver) packCommitted(p *pool, groups []*group) {
	for number, covered := range p.covered {
		for waiting(groups) > 0 {
			among, before := covered.Clone(), waiting(groups)
			p.stock.dropDearer(p, among, number+1, cluster.Amount{})
			if among.Empty() || !p.mayGrow() {
				break
			}
			s.packAmong(p, among, groups)
			if waiting(groups) == before {
				break
			}
		}
	}
}

func waiting(groups []*group) int {
	n := 0
	for _, g := range groups {
		n += len(g.pods)
	}
	return n
}

// paidBy returns what pays for a node in an offer.
func (b *planned) paidBy(o catalog.Offer) plan.Commitment {
	if o.Commitment == 0 {
		return plan.Commitment{}
	}
	return plan.Commitment{Name: b.pool.stock.commitments[o.Commitment-1].Name, Pays: o.List}
}

// sayCommitted narrows the offers of a node on a commitment, first to those that cost no more than was taken of it.
// Then it narrows them to what a claim can express: all offers as sold that the claim allows must be covered. It
// returns these offers, and what the claim has to demand.
func (b *planned) sayCommitted(offers catalog.Bits) (catalog.Bits, requirement.Set) {
	index := b.pool.Catalog
	first := index.Offers[offers.First()]
	offers = offers.Clone()
	for i := range offers.All() {
		if index.Offers[i].List > first.List {
			offers.Remove(i)
		}
	}
	only := requirement.NewSet(requirement.OneOf(catalog.LabelCapacityType, catalog.OnDemand))
	if b.covers(offers, only) {
		return offers, only
	}
	only = only.With(requirement.OneOf(catalog.LabelZone, index.Values(catalog.LabelZone, offers)...))
	if b.covers(offers, only) {
		return offers, only
	}
	index.OfType(index.Types[first.Type].Name).AndTo(offers)
	return offers, only.With(requirement.OneOf(catalog.LabelZone, index.Values(catalog.LabelZone, offers)...))
}

// covers reports whether a claim with the types of offers and these demands is covered: each type and zone that it
// could be launched with, as sold, is also among offers, on the commitment.
func (b *planned) covers(offers catalog.Bits, only requirement.Set) bool {
	index := b.pool.Catalog
	where := func(i int) [2]string { return [2]string{index.Types[index.Offers[i].Type].Name, index.Offers[i].Zone} }
	var known [][2]string
	for i := range offers.All() {
		known = append(known, where(i))
	}
	for i := range b.pool.uncommitted(b.said(offers, only)).All() {
		if !slices.Contains(known, where(i)) {
			return false
		}
	}
	return true
}
