package mix

import (
	"cmp"
	"slices"
)

// rest packs the pods that are left one node after the other: again and again the pattern that is worth most for its
// price. As pods run out patterns are worth less, never more, so that what a bin was worth before bounds what it is now.
func (p *problem) rest(worth []float64) []Pattern {
	ratios := make([]float64, len(p.rooms))
	for bin := range p.rooms {
		ratios[bin] = p.ratio(bin, worth)
	}
	var patterns []Pattern
	for {
		bin := highest(ratios)
		if ratios[bin] <= 0 {
			break
		}
		before := ratios[bin]
		ratios[bin] = p.ratio(bin, worth)
		if ratios[bin] < before && bin != highest(ratios) {
			continue
		}
		if ratios[bin] <= 0 {
			continue
		}
		patterns = append(patterns, p.take(bin))
	}
	return p.merge(patterns)
}

// restSteps bounds the search for a pattern of the rest, of which there are few.
const restSteps = 1000

// ratio returns what the best pattern of a bin is worth for its price, and leaves it in the bin's filler.
func (p *problem) ratio(bin int, worth []float64) float64 {
	f := p.fillers[bin]
	if len(p.open[bin]) == 0 {
		return 0
	}
	var items []int
	for _, item := range p.open[bin] {
		if p.left[item] > 0 {
			items = append(items, item)
		}
	}
	f.reset()
	f.relax(p, worth, items)
	return f.fill(p, bin, worth, restSteps) / p.prices[bin]
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

// take removes the pattern that the bin's filler found, once.
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

// tail is how many of the last nodes are looked at for merging: the first ones are full.
const tail = 48

// merge replaces pairs of the last nodes by one that costs no more: what was left in the end was packed in small pieces,
// each the best for itself.
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

// total returns what pods ask for together; amounts are exact, so that sums are.
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
