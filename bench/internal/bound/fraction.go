package bound

import "math"

// fraction is a bin filled with pods, and with fractions of pods.
type fraction struct {
	value  float64   // an upper bound on the value of the best filling
	counts []float64 // by item
	duals  []float64 // what a unit of each row is worth, all above 0
}

// maxPivots bounds the simplex below; its duals give a valid value whenever it stops.
const maxPivots = 60

// fractional finds the most valuable items for room, where fractions count. It is a simplex with a row for each row of
// room.
func (p Problem) fractional(values []float64, items []int, room []float64) fraction {
	rows := len(room)
	inverse, basis, x := make([][]float64, rows), make([]int, rows), append([]float64(nil), room...)
	for i := range inverse {
		inverse[i] = make([]float64, rows)
		inverse[i][i] = 1
		basis[i] = -1 // slack
	}
	duals := make([]float64, rows)
	for range maxPivots {
		clear(duals)
		for i, item := range basis {
			if item < 0 {
				continue
			}
			for j := range duals {
				duals[j] += values[item] * inverse[i][j]
			}
		}
		entering, amounts := p.entering(values, items, duals)
		if amounts == nil || !pivot(inverse, basis, x, entering, amounts) {
			break
		}
	}
	return p.bounded(values, items, room, duals, basis, x)
}

// entering returns the item that raises the value most, with its column. If a row has a negative dual, its slack comes
// first, as item -1. amounts is nil if nothing raises the value.
func (p Problem) entering(values []float64, items []int, duals []float64) (item int, amounts []float64) {
	for row, dual := range duals {
		if dual < -tolerance {
			amounts = make([]float64, len(duals))
			amounts[row] = 1
			return -1, amounts
		}
	}
	gain := tolerance
	for _, i := range items {
		if g := 1 - dot(duals, p.Items[i].Amounts)/values[i]; g > gain {
			item, amounts, gain = i, p.Items[i].Amounts, g
		}
	}
	return item, amounts
}

// pivot brings a column into the basis; false when nothing bounds it.
func pivot(inverse [][]float64, basis []int, x []float64, entering int, amounts []float64) bool {
	leaving, step := -1, math.Inf(1)
	direction := make([]float64, len(basis))
	for i := range basis {
		direction[i] = dot(inverse[i], amounts)
		if direction[i] > 1e-14 && x[i]/direction[i] < step {
			leaving, step = i, x[i]/direction[i]
		}
	}
	if leaving < 0 {
		return false
	}
	for j := range inverse[leaving] {
		inverse[leaving][j] /= direction[leaving]
	}
	for i := range basis {
		if i == leaving {
			continue
		}
		for j := range inverse[i] {
			inverse[i][j] -= direction[i] * inverse[leaving][j]
		}
		x[i] = max(0, x[i]-step*direction[i])
	}
	x[leaving], basis[leaving] = step, entering
	return true
}

// bounded makes duals valid: it scales them until no item is worth more than its amounts at these prices. Then nothing
// that fits into room is worth more than the room.
func (p Problem) bounded(values []float64, items []int, room, duals []float64, basis []int, x []float64) fraction {
	f := fraction{counts: make([]float64, len(p.Items)), duals: make([]float64, len(room))}
	total := 0.0
	for j := range duals {
		total += max(0, duals[j]) * room[j]
	}
	for j := range duals {
		f.duals[j] = max(0, duals[j]) + 1e-12*total/max(room[j], 1e-300) // a little of every row, so that none is free
	}
	scale := 1.0
	for _, item := range items {
		scale = max(scale, values[item]/dot(f.duals, p.Items[item].Amounts))
	}
	for j := range f.duals {
		f.duals[j] *= scale
	}
	f.value = dot(f.duals, room)
	for i, item := range basis {
		if item >= 0 {
			f.counts[item] += x[i]
		}
	}
	return f
}
