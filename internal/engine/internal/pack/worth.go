package pack

import "math"

// maxPivots bounds the simplex method. Each pivot improves the value or breaks a tie by Bland's rule, so a few times
// the number of resources is enough; what it has then is good enough to compare patterns by.
const maxPivots = 200

// worthOf returns what a unit of each resource is worth, in micro-dollars: the prices at which the lots' total demand is
// worth most while no candidate sells for less than its room is worth. It is the dual of "buy enough of everything as
// cheaply as possible", the same linear program whose value is the lower bound on the cost. Resources that nothing asks
// for are worth nothing.
//
// Numbers are floats here and in fill: they only decide which of several valid patterns comes first. Products are
// rounded explicitly before they are added, so that every processor computes the same.
func worthOf(candidates []candidate, lots []*lot) []float64 {
	var demand []float64
	for _, l := range lots {
		for r, amount := range l.info.Requests {
			for len(demand) <= r {
				demand = append(demand, 0)
			}
			demand[r] += float64(float64(amount) * float64(len(l.pods)))
		}
	}
	// Every resource is measured in the largest room of it, so that the tableau's numbers are near 1.
	unit := make([]float64, len(demand))
	for _, c := range candidates {
		for r := range unit {
			unit[r] = max(unit[r], float64(c.room.At(r)))
		}
	}
	t := newTableau(len(candidates), len(demand))
	for j, c := range candidates {
		for r := range demand {
			if unit[r] > 0 {
				t.cell[j][r] = max(0, float64(c.room.At(r))) / unit[r]
			}
		}
		t.bound[j] = c.price
	}
	for r := range demand {
		if unit[r] > 0 {
			t.gain[r] = demand[r] / unit[r]
		}
	}
	worth := t.solve()
	largest := 0
	for _, c := range candidates {
		largest = max(largest, len(c.room))
	}
	for len(worth) < largest {
		worth = append(worth, 0)
	}
	for r := range unit {
		if unit[r] > 0 {
			worth[r] /= unit[r]
		}
	}
	return worth
}

// tableau is a linear program in the form: maximize gain·y where cell·y ≤ bound and y ≥ 0, with bound ≥ 0, so that y = 0
// is where it starts.
type tableau struct {
	cell  [][]float64 // by row and column
	bound []float64   // by row
	gain  []float64   // by column
	basic []int       // by row: the variable that is basic there; columns first, then slacks
	free  []int       // by column: the variable that is not basic there
}

func newTableau(rows, columns int) *tableau {
	t := &tableau{bound: make([]float64, rows), gain: make([]float64, columns)}
	for j := range rows {
		t.cell = append(t.cell, make([]float64, columns))
		t.basic = append(t.basic, columns+j)
	}
	for r := range columns {
		t.free = append(t.free, r)
	}
	return t
}

const tiny = 1e-12

// solve returns the values of y.
func (t *tableau) solve() []float64 {
	columns := len(t.gain)
	for range maxPivots {
		enter := -1
		for r, gain := range t.gain {
			if gain > tiny && (enter < 0 || t.free[r] < t.free[enter]) {
				enter = r
			}
		}
		if enter < 0 {
			break
		}
		leave, least := -1, math.Inf(1)
		for j := range t.bound {
			if t.cell[j][enter] <= tiny {
				continue
			}
			if ratio := t.bound[j] / t.cell[j][enter]; ratio < least || ratio == least && t.basic[j] < t.basic[leave] {
				leave, least = j, ratio
			}
		}
		if leave < 0 {
			break // nothing sells it: worth nothing, since no lot that asks for it has a candidate
		}
		t.pivot(leave, enter)
	}
	y := make([]float64, columns)
	for j, variable := range t.basic {
		if variable < columns {
			y[variable] = max(0, t.bound[j])
		}
	}
	return y
}

// pivot exchanges the basic variable of a row with the free one of a column.
func (t *tableau) pivot(row, column int) {
	p := t.cell[row][column]
	for r := range t.cell[row] {
		t.cell[row][r] /= p
	}
	t.cell[row][column] = 1 / p
	t.bound[row] /= p
	for j := range t.cell {
		if j == row {
			continue
		}
		factor := t.cell[j][column]
		if factor == 0 {
			continue
		}
		for r := range t.cell[j] {
			if r == column {
				t.cell[j][r] = -factor / p
			} else {
				t.cell[j][r] -= float64(factor * t.cell[row][r])
			}
		}
		t.bound[j] -= float64(factor * t.bound[row])
	}
	factor := t.gain[column]
	for r := range t.gain {
		if r == column {
			t.gain[r] = -factor / p
		} else {
			t.gain[r] -= float64(factor * t.cell[row][r])
		}
	}
	t.basic[row], t.free[column] = t.free[column], t.basic[row]
}
