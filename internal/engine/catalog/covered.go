package catalog

import (
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file is about capacity that a commitment pays for (K-55). An offer on demand that commitments cover stands in
// an Index as the provider sells it, and once more for each such commitment, at price 0. At that price the second kind
// comes first, and planning takes it as long as something is left of the commitment.

// MaxCommitments bounds the commitments of an Index.
const MaxCommitments = 64

// place is where an instance type is bought.
type place struct{ instanceType, zone string }

// terms are what an instance type costs on demand in a zone, and the commitments that cover it there: bit n for number
// n+1.
type terms struct {
	price    resources.Money
	coverage uint64
}

// Covered returns the Index with further offers for what commitments cover. sets[n] says by labels what number n+1
// covers; there are at most MaxCommitments. Offers without a known price are not covered: nobody could say how much of
// an amount they take.
func (x *Index) Covered(sets []requirement.Set) *Index {
	if len(sets) == 0 {
		return x
	}
	offers, all := slices.Clone(x.Offers), map[place]terms{}
	for i, set := range sets {
		allowed := x.All()
		for r := range set.All() {
			switch {
			case x.Known(r.Key()):
				x.Compatible(r).AndTo(allowed)
			case !r.AllowsAbsent():
				clear(allowed)
			}
		}
		for at, o := range x.Offers {
			if o.CapacityType != OnDemand || o.Commitment != 0 || o.Price.OfNode() == resources.Unpriced {
				continue
			}
			where := place{x.Types[o.Type].Name, o.Zone}
			found, seen := all[where]
			if !seen || o.Price < found.price {
				found.price = o.Price
			}
			if allowed.Has(at) {
				found.coverage |= 1 << i
				twin := o
				twin.Price, twin.List, twin.Commitment = 0, o.Price, i+1
				offers = append(offers, twin)
			}
			all[where] = found
		}
	}
	if len(all) == 0 {
		return x
	}
	slices.SortFunc(offers, compareOffers)
	own := Compile(x.Types, offers, slices.Collect(maps.Keys(x.wellKnown)))
	own.terms = all
	for i, o := range own.Offers {
		if o.Commitment != 0 {
			if own.covered == nil {
				own.covered = NewBits(len(own.Offers))
			}
			own.covered.Add(i)
		}
	}
	return own
}

// Sold is the price of the offer without commitments.
func (o Offer) Sold() resources.Money {
	if o.Commitment != 0 {
		return o.List
	}
	return o.Price
}

// OnCommitments returns the offers that a commitment pays for, nil for none. The result must not be changed.
func (x *Index) OnCommitments() Bits { return x.covered }

// AsSold returns the offers as the provider sells them: all without those that commitments pay for.
func (x *Index) AsSold() Bits {
	if x.covered == nil {
		return x.All()
	}
	return x.All().Minus(x.covered)
}

// OnDemandTerms returns what an instance type costs on demand in a zone and which commitments cover it there, bit n
// for number n+1. It is false when the type is not sold there on demand, or when there are no commitments at all.
func (x *Index) OnDemandTerms(instanceType, zone string) (price resources.Money, coverage uint64, sold bool) {
	t, sold := x.terms[place{instanceType, zone}]
	return t.price, t.coverage, sold
}
