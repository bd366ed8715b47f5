package topology

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Floors holds low estimates of the minimum of spread constraints, by the constraint's position in the tracker.
// Trackers of the same shapes number constraints alike.
type Floors map[int]int32

// SetFloors bounds the minimum of the given constraints: it is taken to be at most what floors says.
func (t *Tracker) SetFloors(floors Floors) {
	for i, floor := range floors {
		t.spreads[i].floor = floor
	}
}

// Violated returns a floor for each spread constraint that the finished plan breaks because a bin was opened later;
// nil when it breaks none. Each placement was right when it was made. But a later bin may be an empty domain, which
// lowers the minimum. A second round that knows the minimum beforehand comes out right. Constraints that knew all
// their domains from the start need no second look. Domains in which this round placed no pod with the constraint are
// not judged.
func (t *Tracker) Violated() Floors {
	var floors Floors
	for i, s := range t.spreads {
		if !s.late || s.floor == 0 { // with a floor of 0 it has been at its strictest
			continue
		}
		lowest := s.lowest
		if s.used < s.constraint.MinDomains {
			lowest = 0
		}
		if !slices.ContainsFunc(s.landed,
			func(domain int32) bool { return s.most(domain)-lowest > s.constraint.MaxSkew }) {
			continue
		}
		if floors == nil {
			floors = Floors{}
		}
		floors[i] = lowest
		if s.floor >= 0 && s.floor <= lowest {
			floors[i] = 0 // a floor that did not help: take the strictest
		}
	}
	return floors
}

// Late returns floors of 0 for the spread constraints that got a new domain after their pods had landed; nil when
// there are none. Their pods may not be bindable in the order of placing.
func (t *Tracker) Late() Floors {
	var floors Floors
	for i, s := range t.spreads {
		if s.late {
			if floors == nil {
				floors = Floors{}
			}
			floors[i] = 0
		}
	}
	return floors
}

// LateIsStrict reports whether all constraints that Late names had a floor of 0 while pods were placed. What came
// later changed nothing for them, so pods can be bound as they were placed.
func (t *Tracker) LateIsStrict() bool {
	return !slices.ContainsFunc(t.spreads, func(s *spread) bool { return s.late && s.floor != 0 })
}

// Strictest returns floors of 0 for the spread constraints of these shapes.
func (t *Tracker) Strictest(shapes []*cluster.Shape) Floors {
	floors := Floors{}
	for _, shape := range shapes {
		for _, own := range t.Rules(shape).spreads {
			floors[slices.Index(t.spreads, own)] = 0
		}
	}
	return floors
}

// Rare returns floors of 0 for the spread constraints over hostnames that count fewer pods than most, a number of
// nodes. On so many nodes, at least one has none of these pods. counts is the number of pods by shape.
func (t *Tracker) Rare(shapes []*cluster.Shape, counts map[*cluster.Shape]int, most int) Floors {
	sums := map[*spread]int{}
	for _, shape := range shapes {
		for _, c := range t.Rules(shape).counted {
			if c.spread != nil {
				sums[c.spread] += counts[shape]
			}
		}
	}
	floors := Floors{}
	for i, s := range t.spreads {
		if t.Hostname(s.key) && sums[s] < most {
			floors[i] = 0
		}
	}
	return floors
}

// Strict reports whether all spread constraints over hostnames of a shape have a floor of 0.
func (t *Tracker) Strict(rules *Rules) bool {
	return !slices.ContainsFunc(rules.spreads, func(s *spread) bool { return t.Hostname(s.key) && s.floor != 0 })
}
