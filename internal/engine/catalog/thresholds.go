package catalog

import (
	"cmp"
	"slices"
	"sort"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Thresholds answers in a few word operations which offers have room for an amount. For every resource the distinct
// amounts that offers have are sorted once, each with the set of the offers that have at least as much. It is
// immutable.
type Thresholds struct {
	n       int
	columns []column // by component
}

// column holds, for one resource, its distinct amounts in ascending order and the offers with at least each.
type column struct {
	amounts []int64
	atLeast []Bits
}

// NewThresholds returns the thresholds of n offers, where amount(i) is what offer i has.
func NewThresholds(n int, amount func(offer int) resources.Vector) *Thresholds {
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
	running := NewBits(n)
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

// AtLeast returns the offers that have at least amount of a component, nil when none has. It must not be changed.
func (t *Thresholds) AtLeast(component int, amount int64) Bits {
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
