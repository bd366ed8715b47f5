package bound

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Configuration returns a lower bound in dollars per hour from the configuration linear program. A column is a
// pattern: one way to fill a node with pods. Patterns may be used in fractions, but unlike in [Problem.Fluid] each pod
// fits whole or not at all. A knapsack for each kind of node generates patterns. A small one is exact. A large one is
// over-estimated, which lowers the bound but never makes it wrong. Configuration ends after limit at the latest.
func (p Problem) Configuration(limit time.Duration) float64 {
	deadline := time.Now().Add(limit)
	demand := make([]float64, len(p.Items))
	for i := range demand {
		demand[i] = 1 // in shares of an item's count
	}
	price := func(y []float64) (column, float64) {
		values := make([]float64, len(y)) // of one pod
		for i, item := range p.Items {
			values[i] = y[i] / item.Count
		}
		return p.bestPattern(values)
	}
	var from start
	for i := range p.Items {
		c := p.single(i)
		if math.IsInf(c.price, 0) {
			return 0 // an item fits nowhere: its pods stay unplaced, and nothing is known
		}
		from.columns = append(from.columns, c)
	}
	if fluid := p.fluid(); fluid.duals != nil { // no pattern is worth more at these than its node costs
		for _, item := range p.Items {
			from.duals = append(from.duals, item.Count*dot(fluid.duals, item.Amounts))
		}
	}
	return Columns(demand, from, price, func() bool { return time.Now().Before(deadline) }).bound
}

// single returns the cheapest way to place only pods of one item.
func (p Problem) single(item int) column {
	best := column{price: math.Inf(1), amounts: make([]float64, len(p.Items))}
	for _, b := range p.Bins {
		count := capacity(p.Items[item].Amounts, b.Room)
		share := count / p.Items[item].Count
		if count > 0 && (math.IsInf(best.price, 0) || b.Price/share < best.price/best.amounts[item]) {
			best.price, best.amounts[item] = b.Price, share
		}
	}
	return best
}

// capacity returns how many of the amounts fit into room.
func capacity(amounts, room []float64) float64 {
	count := math.Inf(1)
	for i, amount := range amounts {
		if amount > 0 {
			count = min(count, math.Floor(room[i]/amount+tolerance))
		}
	}
	return count
}

// bestPattern is the pricing of Columns over patterns. It takes bins in the order of the most that they can be worth
// for a dollar, and solves the knapsack of each, until no other bin can be worth more than the best.
func (p Problem) bestPattern(values []float64) (column, float64) {
	type guess struct {
		bin   Bin
		items []int
		most  fraction
	}
	var guesses []guess
	for _, b := range p.Bins {
		var items []int
		for i := range p.Items {
			if values[i] > 0 && fits(p.Items[i].Amounts, b.Room) {
				items = append(items, i)
			}
		}
		if len(items) > 0 {
			guesses = append(guesses, guess{b, items, p.fractional(values, items, b.Room)})
		}
	}
	slices.SortFunc(guesses,
		func(a, b guess) int { return cmp.Compare(b.most.value/b.bin.Price, a.most.value/a.bin.Price) })
	var best column
	worth, least := 0.0, math.Inf(1)
	for _, g := range guesses {
		if g.most.value/g.bin.Price <= worth {
			break
		}
		k := knapsack{problem: p, values: values, items: g.items, price: g.most.duals, best: make([]int, len(p.Items)),
			chosen: make([]int, len(p.Items))}
		value, pattern := k.solve(g.bin.Room, g.most)
		worth = max(worth, value/g.bin.Price)
		if g.bin.Price-value < least {
			least = g.bin.Price - value
			best = column{price: g.bin.Price, amounts: make([]float64, len(p.Items))}
			for i, count := range pattern {
				best.amounts[i] = count / p.Items[i].Count
			}
		}
	}
	if worth == 0 {
		return column{amounts: make([]float64, len(p.Items))}, 0
	}
	return best, 1 / worth
}

// knapsack looks for the most valuable whole pods that fit into a room, depth first.
type knapsack struct {
	problem      Problem
	values       []float64
	items        []int     // that fit, best value for their weight first
	price        []float64 // of each row, for the bound of what is left
	chosen, best []int
	highest      float64
	steps        int
}

// maxSteps bounds the search in one knapsack; beyond it the fractional solution stands in.
const maxSteps = 2000

// solve returns the highest value of a pattern, or an upper bound on it, and the pattern.
func (k *knapsack) solve(room []float64, most fraction) (float64, []float64) {
	slices.SortFunc(k.items, func(a, b int) int { return cmp.Compare(k.density(b), k.density(a)) })
	k.fill(0, append([]float64(nil), room...), 0)
	if k.steps >= maxSteps {
		return most.value, most.counts
	}
	pattern := make([]float64, len(k.best))
	for i, count := range k.best {
		pattern[i] = float64(count)
	}
	return k.highest, pattern
}

func (k *knapsack) density(item int) float64 {
	return k.values[item] / max(dot(k.price, k.problem.Items[item].Amounts), 1e-300)
}

func (k *knapsack) fill(from int, room []float64, value float64) {
	if k.steps++; k.steps >= maxSteps {
		return
	}
	if value > k.highest*(1+tolerance) {
		k.highest = value
		copy(k.best, k.chosen)
	}
	for at := from; at < len(k.items); at++ {
		item := k.items[at]
		if value+k.density(item)*dot(k.price, room) <= k.highest*(1+tolerance) {
			return // nor can what follows, which is less dense
		}
		amounts := k.problem.Items[item].Amounts
		for count := int(capacity(amounts, room)); count > 0; count-- {
			left := make([]float64, len(room))
			for i := range room {
				left[i] = max(0, room[i]-float64(count)*amounts[i])
			}
			k.chosen[item] = count
			k.fill(at+1, left, value+float64(count)*k.values[item])
			k.chosen[item] = 0
		}
	}
}
