package bound

import (
	"math"
	"slices"
)

// column is a way to cover demand: an amount of each row, for a price.
type column struct {
	amounts []float64
	price   float64
}

// pricing looks for columns at dual prices y of the rows, all at least 0. best is the column with the least price
// minus value. factor is the largest by which y can be multiplied such that no column is worth more than its price.
type pricing func(y []float64) (best column, factor float64)

// maxIterations bounds column generation; the bound is valid after any number of iterations.
const maxIterations = 5000

// closeEnough ends column generation: when the bound reaches this share of the price found so far.
const closeEnough = 0.9995

// tolerance is how far from 0 a number still counts as 0, relative to prices.
const tolerance = 1e-9

// start is what column generation begins with.
type start struct {
	columns []column  // one for each row, which covers nothing else
	duals   []float64 // a guess at dual prices, which are tried first; nil for none
}

// answer is a lower bound, and the dual prices that prove it: at these, no column is worth more than its price.
type answer struct {
	bound float64
	duals []float64
}

// Columns returns a lower bound on the least price of columns that together cover demand in every row. It solves the
// linear program by a revised simplex, and generates columns as they are needed. In each iteration the dual prices
// times pricing's factor are feasible, and give a bound (Farley 1990). Columns returns the best one, so neither
// rounding nor stopping early can make it wrong. After each iteration it asks more whether there is time.
//
// While there are few columns, the dual prices are far off. So pricing is asked about a point between the duals of the
// best bound and the present ones (Wentges 1997). If that finds no column, it is asked about the present ones.
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
		if negative >= -tolerance { // pricing needs duals of at least 0; if one is below, its surplus enters
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

// nearBest is the weight of the best bound's duals in the point that pricing is asked about first.
const nearBest = 0.8

// generated returns a column, and its price minus its value at the duals y. If that is negative, the column lowers the
// price of the basis.
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

// simplex keeps a basis of the program: the least price of columns x ≥ 0 with Σ column · x - surplus = demand.
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

// enter brings a column into the basis. It returns false, and changes nothing, if nothing bounds the column.
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

// Fluid returns the lower bound for pods that may be split, in dollars per hour: the price of the cheapest nodes that
// together cover the demand of every row. It is at least [Problem.Simple].
func (p Problem) Fluid() float64 { return max(p.Simple(), p.fluid().bound) }

// fluid returns the bound of the linear program alone, with the dual price of each row.
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
