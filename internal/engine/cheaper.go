package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file narrows the launches of a replacement to what saves money whichever of it the provider takes. A provider
// need not take the cheapest: EC2 looks at a spot pool's capacity first.

// enoughTypes is how many cheaper types a spot node must have to move to, and how many its successor may be of. So it
// does not chase the market (D-05): the successor is one of the cheapest already.
const enoughTypes = 15

// onlyCheaper narrows a launch to offerings that keep the whole command cheaper, whichever of them the provider takes.
// before and after are the total costs of the group and of its launches. It is false when nothing is left, or too few
// values for the pool's minValues (P-09), or when the rules for spot and reserved capacity do not allow the launch
// (D-05).
func (d *disruption) onlyCheaper(l *plan.Launch, group []*cluster.Node, before, after resources.Money) bool {
	if l.Cheapest.CapacityType == catalog.Reserved || l.Cheapest.Commitment.Name != "" {
		return true
	}
	pool := d.future.Pool(l.Pool)
	spot := onSpot(*l)
	if spot {
		l.Requirements = l.Requirements.With(requirement.OneOf(catalog.LabelCapacityType, catalog.Spot))
		l.CapacityTypes = []string{catalog.Spot}
	}
	// The launches share, by their cost, what the command may cost beyond the plan.
	own := pool.NodeOverheadPrice
	most := resources.Money(float64(l.Cheapest.Price+own)*float64(before-d.minSaving(before, len(group)))/
		float64(max(after, 1))) - own
	chase := spot && allSpot(group)
	if chase && !d.terms.SpotToSpot {
		return false
	}
	chase = chase && len(group) == 1
	if narrowed, found := below(pool, *l, most, chase); found {
		*l = narrowed
		return true
	}
	// Where zones have different prices, that of the cheapest offering may do.
	narrowed, found := below(pool, pinned(pool, *l, catalog.LabelZone), most, chase)
	if found {
		*l = narrowed
	}
	return found
}

// below returns the launch with those types only of which no offering that it allows costs more than most. It is false
// when the type of the cheapest offering is not among them, or they are too few: for minValues, or for a single spot
// node that goes to spot. Such a one gets no more types than it must have.
func below(pool *cluster.Pool, l plan.Launch, most resources.Money, chase bool) (plan.Launch, bool) {
	allowed := offeredTo(pool, l)
	var kept []string
	for _, name := range l.Types {
		if dearest, sold := dearestOf(pool, pool.Catalog.OfType(name).And(allowed), l); sold && dearest <= most {
			kept = append(kept, name)
		}
	}
	if !slices.Contains(kept, l.Cheapest.Type) || chase && len(kept) < enoughTypes {
		return l, false
	}
	if chase {
		for n := enoughTypes; n < len(kept); n++ {
			if short, enough := withTypes(pool, l, kept[:n]); enough && short.Relaxed == nil {
				return short, true
			}
		}
	}
	return withTypes(pool, l, kept)
}

// offeredTo returns the offerings that a launch allows, types aside.
func offeredTo(pool *cluster.Pool, l plan.Launch) catalog.Bits {
	allowed := pool.Catalog.Available.And(pool.Catalog.AsSold())
	pool.Catalog.Narrow(allowed, l.Requirements)
	return allowed
}

// dearestOf returns the highest price among offers of one type that the provider may take for the launch: those of the
// capacity type that was planned. If that is on demand, no provider takes a dearer spot offering beside it. So only a
// type without on-demand offerings counts by its spot ones. It is false when there are none.
func dearestOf(pool *cluster.Pool, offers catalog.Bits, l plan.Launch) (dearest resources.Money, sold bool) {
	planned := false
	for i := range offers.All() {
		o := pool.Catalog.Offers[i]
		is := o.CapacityType == l.Cheapest.CapacityType
		switch {
		case is && !planned:
			dearest, planned = o.Price, true
		case is == planned:
			dearest = max(dearest, o.Price)
		}
		sold = true
	}
	return dearest, sold
}

// withTypes returns the launch with these of its types. It is false when the pool insists on more values of a label
// than they have (P-09).
func withTypes(pool *cluster.Pool, l plan.Launch, types []string) (plan.Launch, bool) {
	l.Types = types
	if len(pool.MinValues) == 0 {
		return l, len(types) > 0
	}
	allowed, left := offeredTo(pool, l), catalog.NewBits(len(pool.Catalog.Offers))
	for _, name := range types {
		pool.Catalog.OfType(name).And(allowed).OrTo(left)
	}
	l.Relaxed = pack.Lacking(pool, left)
	return l, len(types) > 0 && (pool.RelaxMinValues || l.Relaxed == nil)
}

// dear says why nothing is cheap enough whichever of it the provider takes, "" if something is: too few types for the
// pool's minValues.
func (d *disruption) dear(group []*cluster.Node, launches []plan.Launch) string {
	before, after := d.cost(group...), d.costOfLaunches(launches)
	for _, l := range launches {
		if pool := d.future.Pool(l.Pool); !d.onlyCheaper(&l, group, before, after) && len(pool.MinValues) > 0 {
			return "but of what is cheaper too few values are left for the minValues of NodePool " + pool.Name
		}
	}
	return ""
}
