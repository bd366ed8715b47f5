package mix

// filler looks for the best pattern of one bin. Unless it is reset, its last basis is the start of the next search.
type filler struct {
	room []float64
	// The basis of the linear program in which pods can be split, by resource: an item, or -1 for room that stays
	// free.
	basis   []int
	inverse [][]float64
	x       []float64
	price   []float64 // of each resource; at these prices no item is worth more than its amounts
	// Memory of pivot and entering.
	direction, slack []float64

	// Of the search over whole pods.
	most    float64 // what pods would be worth if they could be split
	list    []candidate
	chosen  []count
	best    []count
	highest float64
	steps   int
	rooms   [][]float64 // by depth
}

// count is pods of an item.
type count struct{ item, n int }

// newFillers returns a filler for each room. Their numbers share one allocation: there are many fillers, and most are
// asked only once or twice.
func newFillers(rooms [][]float64) []filler {
	if len(rooms) == 0 {
		return nil
	}
	n := len(rooms[0])
	fillers, numbers := make([]filler, len(rooms)), make([]float64, len(rooms)*(n+4)*n)
	bases, inverses := make([]int, len(rooms)*n), make([][]float64, len(rooms)*n)
	row := func() []float64 {
		first := numbers[:n:n]
		numbers = numbers[n:]
		return first
	}
	for i, room := range rooms {
		f := &fillers[i]
		f.room, f.x, f.price, f.direction, f.slack = room, row(), row(), row(), row()
		f.basis, f.inverse = bases[i*n:(i+1)*n], inverses[i*n:(i+1)*n]
		for r := range f.inverse {
			f.inverse[r] = row()
		}
	}
	return fillers
}

func (f *filler) reset() {
	copy(f.x, f.room)
	for r, row := range f.inverse {
		clear(row)
		row[r], f.basis[r] = 1, -1
	}
}

// partPivots bounds the pivots of relax, which makes the prices valid whenever it stops.
const partPivots = 40

// relax returns an upper bound on what any pattern on the node is worth: the worth of pods if they could be split. It
// sets the prices of the resources at which that holds.
func (f *filler) relax(p *problem, worth []float64, items []int) float64 {
	for range partPivots {
		f.dual(worth)
		entering, amounts := f.entering(p, worth, items)
		if amounts == nil || !f.pivot(entering, amounts) {
			break
		}
	}
	scale := 1.0
	for r := range f.price {
		f.price[r] = max(0, f.price[r])
	}
	for _, item := range items {
		if v := worth[item]; v > 0 {
			scale = max(scale, v/max(dot(f.price, p.amounts[item]), v*1e-6))
		}
	}
	sum := 0.0
	for r := range f.price {
		f.price[r] *= scale
		sum += float64(f.price[r] * max(f.room[r], 0))
	}
	f.most = sum
	return sum
}

func (f *filler) dual(worth []float64) {
	clear(f.price)
	for i, item := range f.basis {
		if item < 0 {
			continue
		}
		for r := range f.price {
			f.price[r] += float64(worth[item] * f.inverse[i][r])
		}
	}
}

// entering returns what enters the basis, with its column: the slack (-1) of a resource with a negative price, else
// the item that gains most for its worth. amounts is nil when nothing gains.
func (f *filler) entering(p *problem, worth []float64, items []int) (item int, amounts []float64) {
	highest := 0.0
	for _, price := range f.price {
		highest = max(highest, price)
	}
	for r, price := range f.price {
		if price < -1e-9*highest {
			clear(f.slack)
			f.slack[r] = 1
			return -1, f.slack
		}
	}
	gain := 1e-7
	for _, i := range items {
		if worth[i] <= 0 {
			continue
		}
		if g := 1 - dot(f.price, p.amounts[i])/worth[i]; g > gain {
			item, amounts, gain = i, p.amounts[i], g
		}
	}
	return item, amounts
}

func (f *filler) pivot(entering int, amounts []float64) bool {
	direction := f.direction
	leaving, step := -1, 0.0
	for i := range f.basis {
		direction[i] = dot(f.inverse[i], amounts)
		if direction[i] <= 1e-12 {
			continue
		}
		if ratio := f.x[i] / direction[i]; leaving < 0 || ratio < step {
			leaving, step = i, ratio
		}
	}
	if leaving < 0 {
		return false
	}
	own := f.inverse[leaving]
	for j := range own {
		own[j] /= direction[leaving]
	}
	for i := range f.basis {
		if i == leaving {
			continue
		}
		for j := range own {
			f.inverse[i][j] -= float64(direction[i] * own[j])
		}
		f.x[i] = max(0, f.x[i]-float64(step*direction[i]))
	}
	f.x[leaving], f.basis[leaving] = step, entering
	return true
}
