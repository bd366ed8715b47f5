// Package fit answers which offers have room for an amount, in a few word operations: for every resource the
// distinct amounts that offers have are sorted once, each with the bit set of the offers that have at least as much.
//
// The package imports the standard library only.
package fit

import (
	"cmp"
	"slices"
	"sort"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Thresholds holds an amount of every resource for each of n offers. It is immutable.
type Thresholds struct {
	n       int
	columns []column // by component
}

// column holds, for one resource, its distinct amounts in ascending order and the offers with at least each.
type column struct {
	amounts []int64
	atLeast []catalog.Bits
}

// New returns the thresholds of n offers, where amount(i) is what offer i has.
func New(n int, amount func(offer int) resources.Vector) *Thresholds {
	t := &Thresholds{n: n}
	vectors, components := make([]resources.Vector, n), 0
	for i := range vectors {
		vectors[i] = amount(i)
		components = max(components, len(vectors[i]))
	}
	order := make([]int, n)
	for component := range components {
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(vectors[b].At(component), vectors[a].At(component)), cmp.Compare(a, b))
		})
		t.columns = append(t.columns, newColumn(n, order, func(i int) int64 { return vectors[i].At(component) }))
	}
	return t
}

func newColumn(n int, descending []int, amount func(int) int64) column {
	var c column
	running := catalog.NewBits(n)
	for position, i := range descending {
		running.Add(i)
		if position+1 == n || amount(descending[position+1]) != amount(i) {
			c.amounts = append(c.amounts, amount(i))
			c.atLeast = append(c.atLeast, running.Clone())
		}
	}
	slices.Reverse(c.amounts)
	slices.Reverse(c.atLeast)
	return c
}

// Keep removes from offers, in place, those that have less than want in a component in which want is above 0. It
// returns the first such component that left nothing, or -1 while something is left.
func (t *Thresholds) Keep(want resources.Vector, offers catalog.Bits) int {
	for component, amount := range want {
		if amount <= 0 {
			continue
		}
		with := t.AtLeast(component, amount)
		if with == nil {
			clear(offers)
			return component
		}
		with.AndTo(offers)
		if offers.Empty() {
			return component
		}
	}
	return -1
}

// AtLeast returns the offers that have at least amount of a component, nil when none has. It must not be changed.
func (t *Thresholds) AtLeast(component int, amount int64) catalog.Bits {
	if component >= len(t.columns) {
		return nil
	}
	c := t.columns[component]
	i := sort.Search(len(c.amounts), func(i int) bool { return c.amounts[i] >= amount })
	if i == len(c.amounts) {
		return nil
	}
	return c.atLeast[i]
}
