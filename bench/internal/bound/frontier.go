package bound

import (
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Frontier bounds from below how many nodes a plan of a given price has (B-20). Each tangent is a lower bound on the
// price of any plan, with an amount added for each node. Subtract that amount n times: no plan with n nodes costs
// less.
type Frontier []Tangent

// Tangent is what each node costs beside its price, and the lower bound for that, both in dollars per hour.
type Tangent struct{ Beside, Least float64 }

// besides are the amounts of the tangents. Where fewer nodes raise the price by some percent, one of these is near
// what it costs to have one node less.
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

// Nodes returns a lower bound on the nodes of any plan of this price, in dollars per hour.
func (f Frontier) Nodes(price float64) int {
	least := 0.0
	for _, t := range f {
		least = max(least, (t.Least-price)/t.Beside)
	}
	return int(math.Ceil(least * (1 - 1e-9))) // the division may have been rounded up
}
