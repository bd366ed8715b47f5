package mix

import (
	"cmp"
	"slices"
)

// Way is a function such as [Solve] or [Sketch], or what [Beside] makes of one.
type Way func([]Item, []Bin) []Pattern

// Fewer returns as few nodes for the items' pods as it finds below a price limit (P-22). The limit is the price of the
// nodes that way finds, plus tolerance, a share of that price. With a tolerance of 0 it returns what way finds.
//
// It begins with the nodes that way finds. It takes away those whose pods would gain most from larger nodes, and packs
// these pods again with a higher price for each node. How many nodes the tolerance allows to take away is found by
// bisection.
func Fewer(way Way, items []Item, bins []Bin, tolerance float64) []Pattern {
	best := way(items, bins)
	if tolerance <= 0 || Nodes(best) <= 1 {
		return best
	}
	price, nodes := priceOf(best, bins), single(best)
	f := fewer{
		items: items, bins: bins, nodes: nodes, most: price * (1 + tolerance), best: best,
		dearer: dearer(bins, 1+int64(extra*tolerance*price/float64(len(nodes)))),
	}
	f.order()
	f.search(way)
	return f.best
}

// Beside returns way for bins whose prices include an overhead for each node, in micro-dollars per hour (B-20). Its
// nodes are never more than way finds for the prices without overhead, and never cost more with it. It asks way for
// both, since way finds a good answer and not always the best. With an overhead of 0 it returns way itself.
func Beside(way Way, overhead int64) Way {
	if overhead == 0 {
		return way
	}
	return func(items []Item, bins []Bin) []Pattern {
		alone, found := way(items, dearer(bins, -overhead)), way(items, bins)
		if Nodes(found) <= Nodes(alone) && priceOf(found, bins) < priceOf(alone, bins) {
			return found
		}
		return alone
	}
}

// extra is what a node counts beside its price while pods are packed again. Its unit is the whole tolerance divided by
// the number of nodes. Of 2 to 32 it found the fewest nodes for the time in plain-5000.
const extra = 8

// fewer is a search for fewer nodes than the cheapest ones.
type fewer struct {
	items  []Item
	bins   []Bin
	dearer []Bin     // with extra in their prices
	nodes  []Pattern // the cheapest ones, each once
	most   float64   // what nodes may cost, in micro-dollars per hour
	best   []Pattern
}

// search finds how many nodes can be packed again. It bisects with Sketch, whose nodes are dearer than those of way.
// So way may afford more: it is asked once, halfway between that number and all nodes.
func (f *fewer) search(way Way) {
	low, high := 0, len(f.nodes) // low is within the price limit, high is not
	if f.keep(f.anew(Sketch, high)) {
		low = high
	}
	for high-low > 1+len(f.nodes)/exactness {
		middle := (low + high) / 2
		if f.keep(f.anew(Sketch, middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	f.keep(f.anew(way, (low+len(f.nodes))/2))
}

// exactness ends the bisection of search, at a step of 1/exactness of all nodes.
const exactness = 100

// keep takes nodes that are fewer than the best so far, or as few and cheaper. It reports whether they are within the
// price limit.
func (f *fewer) keep(found []Pattern) bool {
	price := priceOf(found, f.bins)
	if price > f.most {
		return false
	}
	if c := cmp.Compare(Nodes(found), Nodes(f.best)); c < 0 || c == 0 && price < priceOf(f.best, f.bins) {
		f.best = found
	}
	return true
}

// anew packs the pods of the first n nodes anew.
func (f *fewer) anew(way Way, n int) []Pattern {
	items := slices.Clone(f.items)
	for i := range items {
		items[i].Count = 0
	}
	for _, node := range f.nodes[:n] {
		for i, count := range node.Counts {
			items[i].Count += count
		}
	}
	return append(slices.Clone(f.nodes[n:]), way(items, f.dearer)...)
}

// order sorts the nodes. First come those whose pods are worth least compared with the price of the node. Pods are
// worth what they cost when all are packed at the higher price for each node.
func (f *fewer) order() {
	p := newProblem(f.items, f.dearer)
	p.steps = sketchSteps
	p.all = slices.Clone(p.left)
	worth := p.start().worth()
	for range fewPasses {
		copy(p.left, p.all)
		p.adjust(worth, p.rest(worth))
	}
	gain := make([]float64, len(f.nodes))
	at := make([]int, len(f.nodes))
	for n, node := range f.nodes {
		at[n] = n
		gain[n] = p.prices[node.Bin]
		for item, count := range node.Counts {
			gain[n] -= float64(worth[item] * float64(count))
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	nodes := make([]Pattern, len(f.nodes))
	for n, from := range at {
		nodes[n] = f.nodes[from]
	}
	f.nodes = nodes
}

// single lists each node of patterns by itself.
func single(patterns []Pattern) []Pattern {
	var nodes []Pattern
	for _, found := range patterns {
		for range found.Times {
			nodes = append(nodes, Pattern{Bin: found.Bin, Counts: found.Counts, Times: 1})
		}
	}
	return nodes
}

// dearer returns the bins with extra added to each price, in micro-dollars per hour.
func dearer(bins []Bin, extra int64) []Bin {
	list := slices.Clone(bins)
	for i := range list {
		list[i].Price += extra
	}
	return list
}

// Nodes returns the number of nodes in patterns.
func Nodes(patterns []Pattern) int {
	sum := 0
	for _, found := range patterns {
		sum += found.Times
	}
	return sum
}

// priceOf is what the nodes of patterns cost, in micro-dollars per hour.
func priceOf(patterns []Pattern, bins []Bin) float64 {
	sum := 0.0
	for _, found := range patterns {
		sum += float64(float64(bins[found.Bin].Price) * float64(found.Times))
	}
	return sum
}
