package catalog

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Floor gives lower bounds on what pods cost among some offers. A pod pays at least its share of a node that is large
// enough for it, whatever else runs there. What a share is depends on which resource is scarce. So a pod has a least
// cost by each of several measures: one resource alone, or CPU and memory at prices below which no offer sells both.
// Costs by the same measure add up, and nodes for some pods cost at least the highest of the sums.
type Floor struct {
	sizes    []size
	measures [][]float64 // by measure and component: what a unit weighs
}

// size is the room of an instance type, and the lowest price for it.
type size struct {
	room  resources.Vector
	price float64   // micro-dollars per hour, with what a node costs beside it
	rates []float64 // by measure: the price of a unit of weight; infinite where the room weighs nothing
}

// Least is what pods cost at least, by measure, in micro-dollars per hour. Values of one Floor can be added.
type Least []float64

// Floor returns the floor of offers, where a node costs overhead per hour beside its price.
func (x *Index) Floor(offers Bits, overhead resources.Money) Floor {
	cheapest := map[int]int{} // by type: position in sizes
	var f Floor
	for i := range offers.All() {
		o := x.Offers[i]
		at, known := cheapest[o.Type]
		if !known {
			at = len(f.sizes)
			cheapest[o.Type] = at
			f.sizes = append(f.sizes, size{room: x.Types[o.Type].Allocatable, price: math.Inf(1)})
		}
		f.sizes[at].price = min(f.sizes[at].price, float64(o.Price+overhead))
	}
	components := 0
	for _, s := range f.sizes {
		components = max(components, len(s.room))
	}
	for component := range components {
		alone := make([]float64, components)
		alone[component] = 1
		f.measures = append(f.measures, alone)
	}
	for _, both := range f.tangents() {
		weights := make([]float64, components)
		weights[resources.CPU], weights[resources.Memory] = both.cpu, both.memory
		f.measures = append(f.measures, weights)
	}
	for i := range f.sizes {
		s := &f.sizes[i]
		for _, weights := range f.measures {
			s.rates = append(s.rates, s.price/weigh(weights, s.room))
		}
	}
	return f
}

// pair is an amount of CPU and one of memory, or a price of each.
type pair struct{ cpu, memory float64 }

// tangents returns prices of CPU and memory at which two sizes are worth just what they cost and none is worth more.
// They are the lines through neighbours on the upper right hull of what sizes give for their price. A linear program
// for two resources has its corners there, beside the prices of one resource alone.
func (f Floor) tangents() []pair {
	var points []pair
	for _, s := range f.sizes {
		if s.price > 0 {
			points = append(points,
				pair{float64(s.room.At(resources.CPU)) / s.price, float64(s.room.At(resources.Memory)) / s.price})
		}
	}
	slices.SortFunc(points,
		func(a, b pair) int { return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory)) })
	var hull []pair // from the most CPU for the price to the most memory
	for _, p := range points {
		if len(hull) > 0 && p.memory <= hull[len(hull)-1].memory {
			continue
		}
		for len(hull) > 1 && !turnsLeft(hull[len(hull)-2], hull[len(hull)-1], p) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	var lines []pair
	for i := 1; i < len(hull); i++ {
		a, b := hull[i-1], hull[i]
		if whole := float64(a.cpu*b.memory) - float64(b.cpu*a.memory); whole > 0 {
			lines = append(lines, pair{(b.memory - a.memory) / whole, (a.cpu - b.cpu) / whole})
		}
	}
	return lines
}

// turnsLeft reports whether the way from a over b to c bends to the left: then b is a corner of the hull.
func turnsLeft(a, b, c pair) bool {
	return float64((b.cpu-a.cpu)*(c.memory-b.memory))-float64((b.memory-a.memory)*(c.cpu-b.cpu)) > 0
}

// Of returns the least cost of a pod with these requests. It is 0 where the pod fits nowhere: nothing is launched for
// it.
func (f Floor) Of(requests resources.Vector) Least {
	least := make(Least, len(f.measures))
	for i := range least {
		least[i] = math.Inf(1)
	}
	for _, s := range f.sizes {
		if requests.Fits(s.room) {
			for i, rate := range s.rates {
				least[i] = min(least[i], rate)
			}
		}
	}
	for i, rate := range least {
		if weight := weigh(f.measures[i], requests); weight > 0 && !math.IsInf(rate, 1) {
			least[i] = float64(rate * weight)
		} else {
			least[i] = 0
		}
	}
	return least
}

func weigh(weights []float64, amounts resources.Vector) float64 {
	sum := 0.0
	for component, weight := range weights {
		if weight > 0 {
			sum += float64(weight * float64(max(amounts.At(component), 0)))
		}
	}
	return sum
}

// Plus adds other to the least cost, in place where it has room, and returns it. nil is the cost of nothing.
func (l Least) Plus(other Least) Least {
	for len(l) < len(other) {
		l = append(l, 0)
	}
	for i, cost := range other {
		l[i] += cost
	}
	return l
}

// Price returns a lower bound on the price of nodes for the pods.
func (l Least) Price() resources.Money {
	highest := 0.0
	for _, cost := range l {
		highest = max(highest, cost)
	}
	return resources.Money(highest * (1 - rounding))
}

// rounding is a share of a floor: more than the rounding of floats can add to it.
const rounding = 1e-9
