package catalog

import (
	"math"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Floor is the lowest price of a unit of each component, in micro-dollars per hour, among some offers; 0 where none has any.
type Floor []float64

// Floor returns the lowest prices among offers.
func (x *Index) Floor(offers Bits) Floor {
	var f Floor
	for i := range offers.All() {
		o := x.Offers[i]
		for component, amount := range x.Types[o.Type].Allocatable {
			for len(f) <= component {
				f = append(f, math.Inf(1))
			}
			if amount > 0 {
				f[component] = min(f[component], float64(o.Price)/float64(amount))
			}
		}
	}
	for component, price := range f {
		if math.IsInf(price, 1) {
			f[component] = 0
		}
	}
	return f
}

// Of returns a price that no nodes with these resources are below: of each resource all of it where a unit is cheapest, and
// of these the highest.
func (f Floor) Of(needs resources.Vector) resources.Money {
	highest := 0.0
	for component, amount := range needs {
		if component < len(f) {
			highest = max(highest, float64(amount)*f[component])
		}
	}
	return resources.Money(highest)
}
