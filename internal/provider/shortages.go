package provider

import (
	"slices"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
)

// How long an offering counts as unavailable after it was refused: the first time, and at most. Each further refusal
// doubles the time. The first is long enough that a round of launches does not run into the same offering again, and
// short enough that a passing shortage costs little.
const (
	firstShortage = time.Minute
	mostShortage  = 30 * time.Minute
)

// Shortages remembers which offerings could not be had, with exponential back-off (P-31): an offering that is noted
// counts as unavailable for a while, and for twice as long each time that it is noted again after that. A provider keeps
// one, and leaves what it lacks out of its catalogue and of its launches. It is lost with the process, which costs one
// refused launch for each offering. The zero value is ready for use; it is safe for concurrent use.
type Shortages struct {
	mu    sync.Mutex
	noted map[Offering]shortage // bounded by the offerings that the provider has
}

type shortage struct {
	until time.Time
	lasts time.Duration
}

// Note takes in that an offering was refused, or taken away, at now. While it counts as unavailable already nothing
// changes: all launches of one round meet the same shortage.
func (s *Shortages) Note(o Offering, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, found := s.noted[o]
	if found && now.Before(known.until) {
		return
	}
	lasts := firstShortage
	if found && now.Before(known.until.Add(mostShortage)) { // else it was fine for so long that this is another one
		lasts = min(2*known.lasts, mostShortage)
	}
	if s.noted == nil {
		s.noted = map[Offering]shortage{}
	}
	s.noted[o] = shortage{until: now.Add(lasts), lasts: lasts}
}

// Clear takes in that an offering could be had: its next shortage is a first one.
func (s *Shortages) Clear(o Offering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.noted, o)
}

// Without returns the catalogue in which what counts as unavailable at now is unavailable; c itself when nothing does.
func (s *Shortages) Without(c catalog.Catalog, now time.Time) catalog.Catalog {
	lacking := s.lacking(now)
	if len(lacking) == 0 {
		return c
	}
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		t := &c.Types[i]
		copied := false
		for j, o := range t.Offerings {
			if !o.Available || !lacking[Offering{Type: t.Name, Zone: o.Zone, CapacityType: o.CapacityType}] {
				continue
			}
			if !copied {
				t.Offerings, copied = slices.Clone(t.Offerings), true
			}
			t.Offerings[j].Available = false
		}
	}
	return c
}

func (s *Shortages) lacking(now time.Time) map[Offering]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	lacking := map[Offering]bool{}
	for o, each := range s.noted {
		if now.Before(each.until) {
			lacking[o] = true
		}
	}
	return lacking
}
