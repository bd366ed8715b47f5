package topology

// Floors is a lower estimate of the minimum of spread constraints, by the constraint's position in the tracker; two
// trackers of the same shapes number them alike.
type Floors map[int]int32

// SetFloors makes the tracker take the minimum of the given constraints to be at most what floors says.
func (t *Tracker) SetFloors(floors Floors) {
	for i, floor := range floors {
		t.spreads[i].floor = floor
	}
}

// Violated returns a floor for each spread constraint that the finished plan breaks, nil when it breaks none. A
// placement was right when it was made, but a bin opened later may be an empty domain that lowers the minimum; a
// second round with the minimum known beforehand comes out right. changed tells which bins got pods in this round:
// what stood there before is not ours to judge.
func (t *Tracker) Violated(changed func(bin int) bool) Floors {
	var floors Floors
	for i, s := range t.spreads {
		lowest := s.lowest
		if s.used < s.constraint.MinDomains {
			lowest = 0
		}
		for bin, eligible := range s.eligible {
			domain := t.bins[s.key][bin]
			if !eligible || domain < 0 || !changed(bin) || s.counts.at(domain)-lowest <= s.constraint.MaxSkew {
				continue
			}
			if floors == nil {
				floors = Floors{}
			}
			floors[i] = lowest
			if s.floor >= 0 && s.floor <= lowest {
				floors[i] = 0 // a floor that did not help: take the strictest
			}
			break
		}
	}
	return floors
}
