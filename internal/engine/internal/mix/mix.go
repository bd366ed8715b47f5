// Package mix finds cheap nodes for many pods that only need room (P-22). Its result says which mixes of pods go on
// which kinds of nodes, and how often.
//
// Two methods are combined, and the cheapest result counts. A pass packs one node after the other. Each time it takes
// the mix of pods that is worth most for the price of the node. At first a pod is worth what it costs when only pods
// of its kind are packed. After each pass, pods that came onto nodes not worth their price become worth more
// (sequential value correction). The mixes found by the passes are then the variables (patterns) of a linear program.
// Patterns hold whole pods only. The program's prices say what a pod is worth. For each kind of node, a knapsack then
// looks for further mixes that are worth more than the node costs (column generation, Gilmore and Gomory 1961). Each
// pattern is taken as often as the solution uses it, rounded down. One more pass packs what is left.
//
// The result depends on the arguments alone. Floats only decide which of several valid mixes is taken. Amounts are
// whole numbers throughout. Products are rounded before they are added, so that every processor computes the same.
// Work is bounded by counted steps.
//
//	mix.go       the problem, and the way to its solution
//	rest.go      a pass: packing one node after the other
//	knapsack.go  the most valuable whole pods on one node
//	parts.go     the same if pods could be split: an upper bound
//	master.go    the linear program over patterns
//	fewer.go     fewer nodes for hardly more money
package mix

import (
	"math"
	"slices"
)

// Item is a kind of pod.
type Item struct {
	Amounts []int64 // what one asks for, by resource, in base units; at least one is above 0
	Count   int     // how many there are
}

// Bin is a kind of node, of which any number can be used.
type Bin struct {
	Room  []int64 // what pods can use, by resource; as many entries as the items' Amounts
	Price int64   // per hour, in micro-dollars, above 0
	Takes []bool  // by item: whether its pods may go there; nil for all
}

// Pattern is a mix of pods on a node.
type Pattern struct {
	Bin    int   // index of the bin
	Counts []int // by item
	Times  int   // how many such nodes
}

// Solve returns nodes for all of the items' pods that fit into some bin. Every pattern keeps to its bin's Room and
// Takes. Together the patterns hold each pod once. They come in the order in which they were found, those of the
// linear program first. Solve returns nil when no pod fits anywhere.
func Solve(items []Item, bins []Bin) []Pattern {
	p := newProblem(items, bins)
	if p == nil {
		return nil
	}
	return p.solve(p.pods() <= fewPods)
}

// Sketch is [Solve] with less effort, for questions that are asked often. Its nodes are a little dearer.
func Sketch(items []Item, bins []Bin) []Pattern { return quickly(items, bins, sketchSteps, fewPasses) }

// Careful is [Sketch] with more passes, for few pods. With more pods a pass takes longer, and pods fit together better
// anyway.
func Careful(items []Item, bins []Bin) []Pattern {
	return quickly(items, bins, sketchSteps, carefulPasses)
}

// Draft is [Sketch] with still less effort.
func Draft(items []Item, bins []Bin) []Pattern { return quickly(items, bins, draftSteps, fewPasses) }

func quickly(items []Item, bins []Bin, steps, passes int) []Pattern {
	p := newProblem(items, bins)
	if p == nil {
		return nil
	}
	p.steps, p.quick = steps, passes
	return p.solve(true)
}

// solve leaves out the linear program when quick is set.
func (p *problem) solve(quick bool) []Pattern {
	best, least := []Pattern(nil), math.Inf(1)
	keep := func(found []Pattern) {
		if price := p.price(found); price < least {
			best, least = found, price
		}
	}
	p.all = slices.Clone(p.left)
	m := p.start()
	worth, bound := m.worth(), p.bound()
	for range p.passes(quick) {
		copy(p.left, p.all)
		found := p.rest(worth)
		keep(found)
		if least <= bound*(1+goodEnough) {
			return best
		}
		m.learn(found, p.prices)
		p.adjust(worth, found)
	}
	copy(p.left, p.all)
	if len(m.rows) <= maxRows && !quick {
		p.relax(m)
		found := p.whole(m)
		keep(append(found, p.rest(m.worth())...))
	}
	return best
}

const (
	// goodEnough ends the search: a result is good enough at this share above the lower bound.
	goodEnough = 0.015
	// maxPasses is how often all pods are packed before the linear program. Each further pass gains less.
	maxPasses = 6
	// fewPods are always packed quickly: in fewPasses and without the linear program. There is little to mix.
	fewPods   = 60
	fewPasses = 3
	// carefulPasses are those of [Careful]. In 16 random inputs of 100 pods, 16 passes found nothing better, and 6
	// passes missed some.
	carefulPasses = 10
	// manyItems is the number of items above which there are fewer passes, so that the work stays about the same.
	manyItems = 400
	// maxRows is the most items for the linear program, whose cost grows with the cube of their number.
	maxRows = 400
)

// bound returns a lower bound on the price of any plan for the pods. For each resource it takes the whole demand at
// the lowest price of the resource. The highest of these sums counts.
func (p *problem) bound() float64 {
	highest := 0.0
	for r := range p.rooms[0] {
		demand, most := 0.0, 0.0 // most of it for the price
		for item, amounts := range p.amounts {
			demand += float64(amounts[r] * float64(p.left[item]))
		}
		for bin, room := range p.rooms {
			most = max(most, room[r]/p.prices[bin])
		}
		if most > 0 {
			highest = max(highest, demand/most)
		}
	}
	return highest
}

// pods counts the pods without a place.
func (p *problem) pods() int {
	sum := 0
	for _, left := range p.left {
		sum += left
	}
	return sum
}

func (p *problem) passes(quick bool) int {
	kinds := 0
	for _, left := range p.left {
		kinds += min(left, 1)
	}
	if quick {
		return p.quick
	}
	return min(maxPasses, 1+(maxPasses-1)*manyItems/max(kinds, 1))
}

// price is what the nodes cost.
func (p *problem) price(nodes []Pattern) float64 {
	sum := 0.0
	for _, node := range nodes {
		sum += float64(p.prices[node.Bin] * float64(node.Times))
	}
	return sum
}

// adjust raises the worth of pods on nodes worth less than their price, and lowers it on nodes worth more. So the next
// pass gives the pods a better place (sequential value correction, Mukhacheva and others).
func (p *problem) adjust(worth []float64, nodes []Pattern) {
	sum, pods := make([]float64, len(worth)), make([]float64, len(worth))
	for _, node := range nodes {
		value := 0.0
		for item, n := range node.Counts {
			value += float64(worth[item] * float64(n))
		}
		for item, n := range node.Counts {
			times := float64(n * node.Times)
			sum[item] += float64(p.prices[node.Bin] / value * times)
			pods[item] += times
		}
	}
	for item := range worth {
		if pods[item] > 0 {
			worth[item] *= math.Sqrt(sum[item] / pods[item])
		}
	}
}

// problem holds the arguments of Solve in the form that its parts work on.
type problem struct {
	amounts [][]float64 // by item and resource, scaled by powers of two so that they are exact and near 1
	left    []int       // by item: pods without a place
	all     []int       // by item: left at the beginning
	rooms   [][]float64 // by bin and resource
	prices  []float64   // by bin, with what favourFew adds
	open    [][]int     // by bin: the items that it takes and has room for, ascending
	takes   [][]bool    // by bin and item: whether the item is in open
	fillers []filler    // by bin
	items   []int       // memory of most
	steps   int         // bounds the search for a pattern in a pass
	quick   int         // number of passes when it has to be quick
}

// newProblem returns nil when no pod fits anywhere. Items that fit nowhere get no pods.
func newProblem(items []Item, bins []Bin) *problem {
	scale := scales(items, bins)
	p := &problem{steps: restSteps, quick: fewPasses}
	for _, item := range items {
		p.amounts = append(p.amounts, scaled(item.Amounts, scale))
		p.left = append(p.left, item.Count)
	}
	homeless := make([]bool, len(items))
	for i := range homeless {
		homeless[i] = true
	}
	p.rooms, p.prices = make([][]float64, 0, len(bins)), make([]float64, 0, len(bins))
	p.open, p.takes = make([][]int, 0, len(bins)), make([][]bool, 0, len(bins))
	for _, bin := range bins {
		room := scaled(bin.Room, scale)
		open, takes := make([]int, 0, len(items)), make([]bool, len(items))
		for i := range items {
			if items[i].Count > 0 && (bin.Takes == nil || bin.Takes[i]) && fits(p.amounts[i], room) {
				open, takes[i] = append(open, i), true
				homeless[i] = false
			}
		}
		p.rooms = append(p.rooms, room)
		p.prices = append(p.prices, float64(max(bin.Price, 1)))
		p.open, p.takes = append(p.open, open), append(p.takes, takes)
	}
	p.fillers = newFillers(p.rooms)
	p.favourFew()
	any := false
	for i := range p.left {
		if homeless[i] {
			p.left[i] = 0
		}
		any = any || p.left[i] > 0
	}
	if !any {
		return nil
	}
	return p
}

// perNode is added to the price of each node, as a share of the price of the cheapest one. So of mixes that cost the
// same, the one with fewer nodes wins.
const perNode = 0.005

func (p *problem) favourFew() {
	if len(p.prices) == 0 {
		return
	}
	extra := slices.Min(p.prices) * perNode
	for bin := range p.prices {
		p.prices[bin] += extra
	}
}

// scales returns a power of two for each resource that brings the largest room near 1.
func scales(items []Item, bins []Bin) []float64 {
	var most []float64
	for _, bin := range bins {
		for r, room := range bin.Room {
			if len(most) <= r {
				most = append(most, 1)
			}
			most[r] = max(most[r], float64(room))
		}
	}
	for _, item := range items {
		for len(most) < len(item.Amounts) {
			most = append(most, 1)
		}
	}
	for r := range most {
		_, exponent := math.Frexp(most[r])
		most[r] = math.Ldexp(1, -exponent)
	}
	return most
}

func scaled(amounts []int64, scale []float64) []float64 {
	own := make([]float64, len(scale))
	for r, amount := range amounts {
		own[r] = float64(float64(amount) * scale[r])
	}
	return own
}

func fits(amounts, room []float64) bool {
	for r, amount := range amounts {
		if amount > max(room[r], 0) {
			return false
		}
	}
	return true
}

// capacity returns how many of amounts fit into room, at most limit.
func capacity(amounts, room []float64, limit int) int {
	n := float64(limit)
	for r, amount := range amounts {
		if amount > 0 {
			n = min(n, math.Floor(room[r]/amount))
		}
	}
	count := max(int(n), 0)
	for count > 0 && !holds(amounts, room, count) { // the division may have been rounded up
		count--
	}
	return count
}

func holds(amounts, room []float64, count int) bool {
	for r, amount := range amounts {
		if float64(amount*float64(count)) > room[r] && amount > 0 {
			return false
		}
	}
	return true
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// whole takes each pattern as often as the solution uses it, rounded down, while the pods last.
func (p *problem) whole(m *master) []Pattern {
	var patterns []Pattern
	for _, used := range m.solution() {
		c := m.columns[used.column]
		times := int(used.times + 1e-6)
		for j, item := range c.items {
			times = min(times, p.left[item]/int(c.counts[j]))
		}
		if times == 0 {
			continue
		}
		counts := make([]int, len(p.left))
		for j, item := range c.items {
			counts[item] = int(c.counts[j])
			p.left[item] -= times * int(c.counts[j])
		}
		patterns = append(patterns, Pattern{Bin: c.bin, Counts: counts, Times: times})
	}
	return patterns
}

// used is a column and how often a solution uses it.
type used struct {
	column int
	times  float64
}

// solution lists the columns of the basis, those used most first.
func (m *master) solution() []used {
	var list []used
	for row, column := range m.basis {
		if column >= 0 && m.x[row] > 0 {
			list = append(list, used{column, m.x[row]})
		}
	}
	slices.SortFunc(list, func(a, b used) int {
		switch {
		case a.times > b.times:
			return -1
		case a.times < b.times:
			return 1
		}
		return a.column - b.column
	})
	return list
}
