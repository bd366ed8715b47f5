package bound

import (
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Of returns the highest bound that is known for a scenario, in dollars per hour, and which one it is.
func Of(s scenario.Scenario) (dollars float64, kind string) {
	if s.OneByOne { // none of the nodes has room, so that the pod needs the cheapest new one
		return New(s.Pending[:1], s.Catalog).Single(), "single node"
	}
	p := New(s.Pending, s.Catalog)
	simple, fluid := p.Simple(), p.Fluid()
	if fluid > simple {
		return fluid, "fluid"
	}
	return simple, "simple"
}

// Single returns the price of the cheapest bin that holds one of every item.
func (p Problem) Single() float64 {
	least := math.Inf(1)
	for _, b := range p.Bins {
		fits := !slices.ContainsFunc(p.Items, func(i Item) bool { return !fits(i.Amounts, b.Room) })
		if fits {
			least = min(least, b.Price)
		}
	}
	return least
}

func fits(amounts, room []float64) bool {
	for i, amount := range amounts {
		if amount > room[i] {
			return false
		}
	}
	return true
}
