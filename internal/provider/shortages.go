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
// counts as unavailable for a while, and for twice as long each time that it is noted again after that. A provider
// keeps one, and leaves what it lacks out of its catalogue and of its launches. It is lost with the process, which
// costs one refused launch for each offering. The zero value is ready for use; it is safe for concurrent use.
type Shortages struct{ backoff Backoff[Offering] }

// Note takes in that an offering was refused, or taken away, at now. While it counts as unavailable already nothing
// changes: all launches of one round meet the same shortage.
func (s *Shortages) Note(o Offering, now time.Time) { s.backoff.Note(o, now) }

// Clear takes in that an offering could be had: its next shortage is a first one.
func (s *Shortages) Clear(o Offering) { s.backoff.Clear(o) }

// Without returns the catalogue in which what counts as unavailable at now is unavailable; c itself when nothing does.
func (s *Shortages) Without(c catalog.Catalog, now time.Time) catalog.Catalog {
	lacking := s.backoff.Lacking(now)
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

// Backoff is what [Shortages] goes by, for a provider whose offerings have more to tell them apart. The zero value is
// ready for use; it is safe for concurrent use.
type Backoff[K comparable] struct {
	mu    sync.Mutex
	noted map[K]shortage // bounded by what the provider has, and old ones are forgotten
}

type shortage struct {
	until, paused time.Time
	lasts         time.Duration // until the first one of these
}

// Note is as that of [Shortages].
func (b *Backoff[K]) Note(key K, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.noted[key]
	if now.Before(known.until) {
		return
	}
	lasts := firstShortage
	// else it was fine for so long that this is another one
	if known.lasts > 0 && now.Before(known.until.Add(mostShortage)) {
		lasts = min(2*known.lasts, mostShortage)
	}
	b.set(key, shortage{until: now.Add(lasts), lasts: lasts, paused: known.paused})
}

// Pause makes a key count as unavailable for as long as a first shortage lasts. How long the next shortage lasts is
// the same as without it: nobody knows whether this very key was refused.
func (b *Backoff[K]) Pause(key K, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.noted[key]
	known.paused = now.Add(firstShortage)
	b.set(key, known)
}

func (b *Backoff[K]) set(key K, s shortage) {
	if b.noted == nil {
		b.noted = map[K]shortage{}
	}
	b.noted[key] = s
}

// Clear is as that of [Shortages].
func (b *Backoff[K]) Clear(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.noted, key)
}

// Lacking returns what counts as unavailable at now.
func (b *Backoff[K]) Lacking(now time.Time) map[K]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	lacking := map[K]bool{}
	for key, each := range b.noted {
		switch {
		case now.Before(each.until), now.Before(each.paused):
			lacking[key] = true
		case !now.Before(each.until.Add(mostShortage)):
			delete(b.noted, key) // its next shortage is a first one either way
		}
	}
	return lacking
}
