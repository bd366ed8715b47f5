package bound

import (
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Frontier bounds how few nodes plans of a price can have (B-20): what any plan costs at least when each node costs
// something beside its price. With that of n nodes taken off, no plan with n nodes has a lower price.
type Frontier []Tangent

// Tangent is one such amount, and the bound that it gives, both in dollars per hour.
type Tangent struct{ Beside, Least float64 }

// besides are what a node costs beside its price: where few nodes are the better choice by some percent, one of these
// is near what a node less costs there.
var besides = []float64{0.01, 0.02, 0.05, 0.2}

// FrontierOf computes the bounds of a scenario for all its pods on new nodes.
func FrontierOf(s scenario.Scenario) Frontier { return frontierOf(whole(s), besides) }

func frontierOf(p Problem, besides []float64) Frontier {
	var f Frontier
	for _, beside := range besides {
		dearer := p
		dearer.Bins = slices.Clone(p.Bins)
		for i := range dearer.Bins {
			dearer.Bins[i].Price += beside
		}
		f = append(f, Tangent{beside, dearer.highest()})
	}
	return f
}

// Nodes returns a number of nodes than which no plan of this price, in dollars per hour, has fewer.
func (f Frontier) Nodes(price float64) int {
	least := 0.0
	for _, t := range f {
		least = max(least, (t.Least-price)/t.Beside)
	}
	return int(math.Ceil(least * (1 - 1e-9))) // the division may have been rounded up
}
