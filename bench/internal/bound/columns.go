package bound

import (
	"math"
	"slices"
)

// column is a way to cover demand: so much of every row for a price.
type column struct {
	amounts []float64
	price   float64
}

// pricing looks for columns under dual prices y of the rows, all at least 0: the column with the least price less
// value, and the largest factor by which y may be multiplied so that no column at all is worth more than its price.
type pricing func(y []float64) (best column, factor float64)

// maxIterations bounds column generation; the bound is valid after any number of iterations.
const maxIterations = 5000

// closeEnough ends column generation when the bound is this share of the price that it has found.
const closeEnough = 0.9995

// tolerance is what counts as nothing, relative to prices.
const tolerance = 1e-9

// start is what column generation begins with.
type start struct {
	columns []column  // for each row one that covers nothing else
	duals   []float64 // a guess at dual prices, which are tried first; nil for none
}

// answer is a lower bound, and the dual prices that prove it: no column is worth more at them than its price.
type answer struct {
	bound float64
	duals []float64
}

// Columns returns a lower bound on the least price of columns that together cover demand in every row: the linear
// program is solved by a revised simplex with the columns generated as they are needed. After each iteration the dual
// prices, scaled by pricing's factor until they are feasible, give a bound (Farley 1990); the best one is returned, so
// that neither rounding nor stopping early makes it wrong. more is asked before each iteration whether there is time.
//
// Dual prices of few columns are far off. So pricing is asked between those of the best bound and the present ones
// (Wentges 1997), and about the present ones themselves where that finds no column.
func Columns(demand []float64, from start, price pricing, more func() bool) answer {
	s, known := newSimplex(demand, from.columns), answer{}
	ask := func(y []float64) column {
		best, factor := price(y)
		if value := dot(y, demand) * factor; !math.IsInf(value, 0) && !math.IsNaN(value) && value > known.bound {
			known = answer{bound: value, duals: slices.Clone(y)}
			for i := range known.duals {
				known.duals[i] *= factor
			}
		}
		return best
	}
	if from.duals != nil {
		ask(from.duals)
	}
	for range maxIterations {
		y := s.duals()
		row, negative := s.surplusToEnter(y)
		entering, reduced := s.surplus(row), negative
		if negative >= -tolerance { // with a dual below 0 the reduced prices are not those of y
			for i := range y {
				y[i] = max(0, y[i])
			}
			entering, reduced = s.generated(y, known.duals, ask)
		}
		if reduced > -tolerance*max(1, known.bound) || known.bound > closeEnough*s.objective() || !s.enter(entering) ||
			!more() {
			break
		}
	}
	return known
}

// nearBest is the share of the best duals in those that pricing is asked about.
const nearBest = 0.8

// generated returns a column that lowers the price at the duals y, and by how much for one of it.
func (s *simplex) generated(y, best []float64, ask func([]float64) column) (column, float64) {
	if best != nil {
		between := make([]float64, len(y))
		for i := range y {
			between[i] = nearBest*best[i] + (1-nearBest)*y[i]
		}
		c := ask(between)
		if reduced := c.price - dot(y, c.amounts); reduced < -tolerance {
			return c, reduced
		}
	}
	c := ask(y)
	return c, c.price - dot(y, c.amounts)
}

// simplex keeps a basis for: least price of columns x ≥ 0 with Σ column · x - surplus = demand.
type simplex struct {
	inverse [][]float64 // of the basis
	basis   []column
	x       []float64
}

func newSimplex(demand []float64, start []column) *simplex {
	s := &simplex{basis: slices.Clone(start)}
	for i, c := range start {
		row := make([]float64, len(demand))
		row[i] = 1 / c.amounts[i]
		s.inverse = append(s.inverse, row)
		s.x = append(s.x, demand[i]/c.amounts[i])
	}
	return s
}

// objective is the price of the basis.
func (s *simplex) objective() float64 {
	sum := 0.0
	for i, c := range s.basis {
		sum += c.price * s.x[i]
	}
	return sum
}

func (s *simplex) duals() []float64 {
	y := make([]float64, len(s.basis))
	for i, c := range s.basis {
		for j := range y {
			y[j] += c.price * s.inverse[i][j]
		}
	}
	return y
}

// surplusToEnter returns the row whose surplus would lower the price most, and by how much: its dual, when negative.
func (s *simplex) surplusToEnter(y []float64) (row int, reduced float64) {
	for i, dual := range y {
		if dual < reduced {
			row, reduced = i, dual
		}
	}
	return row, reduced
}

func (s *simplex) surplus(row int) column {
	amounts := make([]float64, len(s.basis))
	amounts[row] = -1
	return column{amounts: amounts}
}

// enter brings a column into the basis; false when that would not end or not change anything.
func (s *simplex) enter(c column) bool {
	direction := make([]float64, len(s.basis))
	for i := range direction {
		direction[i] = dot(s.inverse[i], c.amounts)
	}
	leaving, step := -1, math.Inf(1)
	for i, d := range direction {
		if d > tolerance && (s.x[i]/d < step || s.x[i]/d == step && s.basis[i].price > s.basis[leaving].price) {
			leaving, step = i, s.x[i]/d
		}
	}
	if leaving < 0 {
		return false
	}
	pivot := direction[leaving]
	for j := range s.inverse[leaving] {
		s.inverse[leaving][j] /= pivot
	}
	for i := range s.inverse {
		if i == leaving || direction[i] == 0 {
			continue
		}
		for j := range s.inverse[i] {
			s.inverse[i][j] -= direction[i] * s.inverse[leaving][j]
		}
		s.x[i] = max(0, s.x[i]-step*direction[i])
	}
	s.x[leaving] = step
	s.basis[leaving] = c
	return true
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// Fluid returns the bound in dollars per hour of pods that could be split: the cheapest nodes that together have the
// demand of every row. It is at least [Problem.Simple].
func (p Problem) Fluid() float64 { return max(p.Simple(), p.fluid().bound) }

// fluid also returns what the demand of each row is worth.
func (p Problem) fluid() answer {
	demand := make([]float64, p.rows)
	for i := range demand {
		demand[i] = 1 // rows are scaled
	}
	price := func(y []float64) (column, float64) {
		var best column
		factor, least := math.Inf(1), math.Inf(1)
		for _, b := range p.Bins {
			value := dot(y, b.Room)
			if b.Price-value < least {
				best, least = column{amounts: b.Room, price: b.Price}, b.Price-value
			}
			if value > 0 {
				factor = min(factor, b.Price/value)
			}
		}
		return best, factor
	}
	var from start
	for row := range p.rows {
		from.columns = append(from.columns, p.onlyRow(row))
	}
	return Columns(demand, from, price, func() bool { return true })
}

// onlyRow returns the bin with the most of a row for its price, as if it had nothing else.
func (p Problem) onlyRow(row int) column {
	best := column{price: 1, amounts: make([]float64, p.rows)}
	best.amounts[row] = 1e-9 // where no bin has any
	for _, b := range p.Bins {
		if b.Room[row]/b.Price > best.amounts[row]/best.price {
			best.price, best.amounts[row] = b.Price, b.Room[row]
		}
	}
	return best
}
