package mix

import (
	"cmp"
	"slices"
)

// candidate is an item that may go onto the node.
type candidate struct {
	item    int
	value   float64 // of one pod
	density float64 // value divided by the price of the room that it takes
}

// sparse is how many items a search looks at: the densest ones.
const sparse = 48

// candidates lists the items for a search, densest first.
func (f *filler) candidates(p *problem, bin int, worth []float64) {
	f.list = f.list[:0]
	for _, item := range p.open[bin] {
		v := worth[item]
		if v <= 0 || p.left[item] == 0 {
			continue
		}
		used := max(dot(f.price, p.amounts[item]), 1e-300)
		f.list = append(f.list, candidate{item: item, value: v, density: v / used})
	}
	slices.SortFunc(f.list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.density, a.density), cmp.Compare(b.value, a.value), cmp.Compare(a.item, b.item))
	})
	if len(f.list) > sparse {
		f.list = f.list[:sparse]
	}
}

// searchSteps bounds the search for one pattern.
const searchSteps = 300

// fill searches for the whole pods that are worth most on the node, depth first, and returns their worth. The first
// try is greedy by density. Branches that cannot beat the best so far are cut. It needs the prices set by relax. The
// pods are in f.best afterwards.
func (f *filler) fill(p *problem, bin int, worth []float64, steps int) float64 {
	f.candidates(p, bin, worth)
	f.highest, f.steps = 0, steps
	f.chosen, f.best = f.chosen[:0], f.best[:0]
	f.search(p, 0, f.roomAt(0, f.room), 0)
	return f.highest
}

// roomAt returns the room of a depth of the search, set to room.
func (f *filler) roomAt(depth int, room []float64) []float64 {
	for len(f.rooms) <= depth {
		f.rooms = append(f.rooms, make([]float64, len(f.room)))
	}
	copy(f.rooms[depth], room)
	return f.rooms[depth]
}

// closeEnough is the share of the upper bound at which a search ends. Large nodes come close at once.
const closeEnough = 0.99

func (f *filler) search(p *problem, from int, room []float64, value float64) {
	f.steps--
	if value > f.highest*(1+1e-9) {
		f.highest = value
		f.best = append(f.best[:0], f.chosen...)
		if value >= f.most*closeEnough {
			f.steps = 0
		}
	}
	worth := dot(f.price, room)
	for at := from; at < len(f.list); at++ {
		c := f.list[at]
		if value+float64(c.density*worth) <= f.highest*(1+1e-9) {
			return // nor can what follows, which is less dense
		}
		amounts := p.amounts[c.item]
		for n := capacity(amounts, room, p.left[c.item]); n > 0; n-- {
			depth := len(f.chosen) + 1
			left := f.roomAt(depth, room)
			for r, amount := range amounts {
				left[r] -= float64(amount * float64(n))
			}
			f.chosen = append(f.chosen, count{c.item, n})
			f.search(p, at+1, left, value+float64(c.value*float64(n)))
			f.chosen = f.chosen[:depth-1]
			if f.steps <= 0 {
				return
			}
		}
	}
}
