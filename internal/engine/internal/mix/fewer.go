package mix

import (
	"cmp"
	"slices"
)

// Way is [Solve], [Sketch], or one of them with what [Beside] adds.
type Way func([]Item, []Bin) []Pattern

// Fewer returns nodes for the items' pods: as few as it finds among those whose price is at most tolerance, a share, above
// that of the cheapest ones that way finds (P-22). 0 is way itself.
//
// It begins with the cheapest nodes, takes away those whose pods would go best with others on larger nodes, and packs these
// pods anew at a higher price for each node. It takes away as many as the tolerance allows, found by halving.
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

// Beside returns way for bins whose prices hold what each node costs beside its own price (B-20). Nodes that it finds
// are never more than way finds for the prices alone, nor do they cost more in all: way is asked for both, since it
// finds a good answer and not always the best one. overhead is in micro-dollars per hour; 0 is way itself.
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

// extra is what a node counts beside its price while pods are packed anew: as a multiple of what it would count if the
// whole tolerance were spent and no node were left. Of 2 to 32 it found the fewest nodes for the time in plain-5000.
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

// search finds how many nodes can be packed anew. Sketches find it nearly. They are dearer than what way finds, so that way
// is asked for half of the others too.
func (f *fewer) search(way Way) {
	low, high := 0, len(f.nodes) // low can be had, high cannot
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

// exactness is to which part of all nodes the number of those to pack anew is looked for.
const exactness = 100

// keep takes nodes that are fewer than the best so far, or as few and cheaper. It reports whether they cost too much.
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

// order puts those nodes first whose pods are worth least beside the node's price. Worth is what they cost when all are
// packed at the higher price for each node.
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

// dearer returns the bins at a price that is higher by extra, in micro-dollars per hour.
func dearer(bins []Bin, extra int64) []Bin {
	list := slices.Clone(bins)
	for i := range list {
		list[i].Price += extra
	}
	return list
}

// Nodes is how many nodes patterns are.
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
