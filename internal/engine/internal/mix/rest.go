package mix

import (
	"cmp"
	"slices"
)

// rest packs the pods that are left, one node after the other: each time the pattern that is worth most for its price.
// As pods run out, patterns are worth less, never more. So two upper bounds of a bin are what it was worth before, and
// what it would be worth if pods could be split. Only the bin with the highest bound is searched.
func (p *problem) rest(worth []float64) []Pattern {
	bounds, exact := make([]float64, len(p.rooms)), make([]int, len(p.rooms)) // exact: len(patterns) at the search
	for bin := range p.rooms {
		bounds[bin], exact[bin] = p.most(bin, worth), -1
	}
	var patterns []Pattern
	for {
		bin := highest(bounds)
		if bounds[bin] <= 0 {
			return p.merge(patterns)
		}
		if exact[bin] == len(patterns) {
			patterns = append(patterns, p.take(bin))
			continue
		}
		if exact[bin] >= 0 { // the bound is out of date
			bounds[bin] = min(bounds[bin], p.most(bin, worth))
			if bin != highest(bounds) {
				continue
			}
		}
		bounds[bin] = p.fillers[bin].fill(p, bin, worth, p.steps) / p.prices[bin]
		exact[bin] = len(patterns)
	}
}

// These bound the search for a pattern: in Solve, in Sketch and Careful, and in Draft.
const (
	restSteps   = 1000
	sketchSteps = 50
	draftSteps  = 10
)

// most returns what pods on the bin would be worth for its price if they could be split, an upper bound. It also
// prepares the bin's filler for a search.
func (p *problem) most(bin int, worth []float64) float64 {
	if len(p.open[bin]) == 0 {
		return 0
	}
	items := p.items[:0]
	for _, item := range p.open[bin] {
		if p.left[item] > 0 {
			items = append(items, item)
		}
	}
	p.items = items
	f := &p.fillers[bin]
	f.reset()
	return f.relax(p, worth, items) / p.prices[bin]
}

func highest(ratios []float64) int {
	best := 0
	for i, ratio := range ratios {
		if ratio > ratios[best] {
			best = i
		}
	}
	return best
}

// take returns the pattern that the bin's filler found, as often as the pods last, and removes these pods from left.
func (p *problem) take(bin int) Pattern {
	found := Pattern{Bin: bin, Counts: make([]int, len(p.left)), Times: 1 << 30}
	for _, c := range p.fillers[bin].best {
		found.Times = min(found.Times, p.left[c.item]/c.n)
	}
	for _, c := range p.fillers[bin].best {
		found.Counts[c.item] = c.n
		p.left[c.item] -= c.n * found.Times
	}
	return found
}

// tail is how many of the last nodes merge looks at. Those before are full.
const tail = 48

// merge replaces pairs of the last nodes by one that costs no more. The last pods were packed in small pieces, each
// the best by itself.
func (p *problem) merge(nodes []Pattern) []Pattern {
	start := max(0, len(nodes)-tail)
	for i := start; i < len(nodes); i++ {
		if nodes[i].Times > 1 { // repeated as often as the pods lasted: full
			start = i + 1
		}
	}
	last := slices.Clone(nodes[start:])
	totals := make([][]float64, len(last))
	for i, node := range last {
		totals[i] = p.total(node.Counts)
	}
	byPrice := p.byPrice()
	for i := 0; i < len(last); i++ {
		for j := i + 1; j < len(last); j++ {
			bin := p.holder(byPrice, last[i], last[j], totals[i], totals[j])
			if bin < 0 {
				continue
			}
			last[i].Bin = bin
			for item, n := range last[j].Counts {
				last[i].Counts[item] += n
			}
			add(totals[i], totals[j])
			last, totals = slices.Delete(last, j, j+1), slices.Delete(totals, j, j+1)
			j = i
		}
	}
	return append(nodes[:start], last...)
}

// holder returns the cheapest bin that holds the pods of both nodes and costs no more than both, or -1.
func (p *problem) holder(byPrice []int, a, b Pattern, totalA, totalB []float64) int {
	for _, bin := range byPrice {
		if p.prices[bin] > p.prices[a.Bin]+p.prices[b.Bin] {
			return -1
		}
		room, ok := p.rooms[bin], true
		for r := range room {
			ok = ok && totalA[r]+totalB[r] <= max(room[r], 0)
		}
		if ok && p.takesAll(bin, a.Counts) && p.takesAll(bin, b.Counts) {
			return bin
		}
	}
	return -1
}

func (p *problem) byPrice() []int {
	bins := make([]int, len(p.prices))
	for bin := range bins {
		bins[bin] = bin
	}
	slices.SortStableFunc(bins, func(a, b int) int { return cmp.Compare(p.prices[a], p.prices[b]) })
	return bins
}

// total returns what pods ask for together. The sums are exact, since amounts are.
func (p *problem) total(counts []int) []float64 {
	total := make([]float64, len(p.rooms[0]))
	for item, n := range counts {
		if n > 0 {
			for r, amount := range p.amounts[item] {
				total[r] += float64(amount * float64(n))
			}
		}
	}
	return total
}

func add(to, amounts []float64) {
	for r, amount := range amounts {
		to[r] += amount
	}
}

func (p *problem) takesAll(bin int, counts []int) bool {
	for item, n := range counts {
		if n > 0 && !p.takes[bin][item] {
			return false
		}
	}
	return true
}
