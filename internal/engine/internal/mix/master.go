package mix

import "math"

// column is a pattern as the linear program sees it.
type column struct {
	bin    int
	price  float64
	items  []int     // ascending
	counts []float64 // of each of items
}

// master is the linear program over the patterns so far: the least price of columns that together hold the demand. It
// is solved by the revised simplex method, and the inverse of the basis is kept explicitly. A column below 0 in the
// basis is the surplus of row -1-column.
type master struct {
	rows    []int // item of each row
	row     []int // by item; -1 when it has none
	columns []column
	inverse [][]float64 // by basis position and row
	basis   []int       // by basis position: the column
	x       []float64   // by basis position: how often it is used
	y       []float64   // by row: what one more pod would cost
	// direction is that of the entering column, by basis position.
	direction []float64
}

const (
	// enough is how much more than its price a new pattern must be worth to be added, as a share of the price. With
	// exact knapsacks the solution would be at most that share above the optimum.
	enough = 0.004
	// enter is the same for known patterns, which need no search.
	enter = 0.002
	// pivotsPerRow and rounds bound the work; stopping early only costs money.
	pivotsPerRow = 15
	rounds       = 12
	// perturb makes demands a little unequal, to avoid ties between pivots.
	perturb = 1e-5
)

// learn adds the patterns to the columns.
func (m *master) learn(patterns []Pattern, prices []float64) {
	for _, found := range patterns {
		var c column
		c.bin = found.Bin
		for item, n := range found.Counts {
			if n > 0 {
				c.items, c.counts = append(c.items, item), append(c.counts, float64(n))
			}
		}
		c.price = prices[c.bin]
		m.columns = append(m.columns, c)
	}
}

// relax solves the program over the known columns, then over patterns generated as needed.
func (p *problem) relax(m *master) {
	p.begin(m)
	m.solve(pivotsPerRow * len(m.rows))
	pivots := pivotsPerRow * len(m.rows)
	for range rounds {
		if !p.generate(m) {
			break
		}
		if pivots -= m.solve(pivots); pivots <= 0 {
			break
		}
	}
}

// solve brings columns into the basis until none gains any more, in at most so many pivots. It returns how many it
// made.
func (m *master) solve(most int) int {
	for pivots := range most {
		if !m.improve() {
			return pivots
		}
	}
	return most
}

// start returns the program with one pattern for each item: the cheapest way to place its pods alone.
func (p *problem) start() *master {
	m := &master{row: make([]int, len(p.left))}
	for item, left := range p.left {
		m.row[item] = -1
		if left > 0 {
			m.row[item] = len(m.rows)
			m.rows = append(m.rows, item)
		}
	}
	for _, item := range m.rows {
		c := p.alone(item)
		m.columns = append(m.columns, c)
		m.y = append(m.y, c.price/c.counts[0])
	}
	return m
}

// begin makes the columns of start the basis.
func (p *problem) begin(m *master) {
	n := len(m.rows)
	for row, item := range m.rows {
		count := m.columns[row].counts[0]
		inverse := make([]float64, n)
		inverse[row] = 1 / count
		m.inverse = append(m.inverse, inverse)
		m.basis = append(m.basis, row)
		m.x = append(m.x, (float64(p.left[item])+perturb*float64(1+row*7919%n))/count)
	}
	m.direction = make([]float64, n)
}

// alone returns the pattern that places pods of one item at the least price for each pod.
func (p *problem) alone(item int) column {
	best := column{bin: -1}
	for bin := range p.open {
		if !p.takes[bin][item] {
			continue
		}
		count := float64(capacity(p.amounts[item], p.rooms[bin], p.left[item]))
		if best.bin < 0 || p.prices[bin]/count < best.price/best.counts[0] {
			best = column{bin: bin, price: p.prices[bin], items: []int{item}, counts: []float64{count}}
		}
	}
	return best
}

// generate adds each bin's best pattern, if that is worth enough more than the bin costs. It reports whether it added
// any.
func (p *problem) generate(m *master) bool {
	worth := m.worth()
	found := false
	for bin := range p.rooms {
		f := &p.fillers[bin]
		most := f.relax(p, worth, p.open[bin])
		if most <= p.prices[bin]*(1+enough) {
			continue // not even pods in parts would be worth it
		}
		value := f.fill(p, bin, worth, searchSteps)
		if value > p.prices[bin]*(1+enough) {
			m.add(bin, p.prices[bin], f.best)
			found = true
		}
	}
	return found
}

func (m *master) add(bin int, price float64, counts []count) {
	c := column{bin: bin, price: price}
	for _, n := range counts {
		c.items = append(c.items, n.item)
		c.counts = append(c.counts, float64(n.n))
	}
	m.columns = append(m.columns, c)
}

// value is what the pods of a column are worth.
func (m *master) value(c column) float64 {
	sum := 0.0
	for j, item := range c.items {
		sum += float64(m.y[m.row[item]] * c.counts[j])
	}
	return sum
}

// improve brings the column or surplus that gains most into the basis. It returns false when none gains enough.
func (m *master) improve() bool {
	entering, gain := none, 0.0
	for i := range m.columns {
		c := &m.columns[i]
		if value := m.value(*c); value-c.price > gain && value > c.price*(1+enter) {
			entering, gain = i, value-c.price
		}
	}
	for row, y := range m.y { // a pod worth less than nothing: having one too many would help
		if -y > gain {
			entering, gain = -1-row, -y
		}
	}
	return entering != none && m.bring(entering)
}

// none is no column, and no surplus.
const none = math.MinInt

// bring makes a column basic. It returns false when nothing would change.
func (m *master) bring(entering int) bool {
	reduced := m.direct(entering)
	leaving, step := -1, math.Inf(1)
	for i, d := range m.direction {
		if d <= 1e-9 {
			continue
		}
		if ratio := m.x[i] / d; ratio < step || ratio == step && m.basis[i] < m.basis[leaving] {
			leaving, step = i, ratio
		}
	}
	if leaving < 0 {
		return false
	}
	pivot := m.direction[leaving]
	own := m.inverse[leaving]
	for j := range own {
		own[j] /= pivot
	}
	for i, d := range m.direction {
		if i == leaving || d == 0 {
			continue
		}
		other := m.inverse[i]
		for j, v := range own {
			if v != 0 {
				other[j] -= float64(d * v)
			}
		}
		m.x[i] = max(0, m.x[i]-float64(step*d))
	}
	for j, v := range own {
		m.y[j] += float64(reduced * v)
	}
	m.x[leaving], m.basis[leaving] = step, entering
	return true
}

// direct computes the direction of a column and returns its reduced price: below 0 when it gains.
func (m *master) direct(entering int) float64 {
	if entering < 0 {
		row := -1 - entering
		for i := range m.direction {
			m.direction[i] = -m.inverse[i][row]
		}
		return m.y[row]
	}
	c := m.columns[entering]
	for i, inverse := range m.inverse {
		sum := 0.0
		for j, item := range c.items {
			sum += float64(inverse[m.row[item]] * c.counts[j])
		}
		m.direction[i] = sum
	}
	return c.price - m.value(c)
}

// leastWorth is the least worth of a pod, as a share of what it costs alone. A pod worth nothing would not be packed.
const leastWorth = 0.01

// worth returns what a pod of each item is worth, above 0 where there are pods.
func (m *master) worth() []float64 {
	worth := make([]float64, len(m.row))
	for item, row := range m.row {
		if row >= 0 {
			alone := &m.columns[row]
			worth[item] = max(m.y[row], leastWorth*alone.price/alone.counts[0])
		}
	}
	return worth
}
