package provider

import (
	"slices"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
)

// How long an offering counts as unavailable after a refusal: the first time, and at most. Each further refusal
// doubles the time. The first time is long enough that a round of launches does not try the offering again, and short
// enough that a brief shortage costs little.
const (
	firstShortage = time.Minute
	mostShortage  = 30 * time.Minute
)

// Shortages remembers offerings without capacity, with exponential back-off (P-31). A noted offering counts as
// unavailable for a while, and for twice as long each time it is noted again after that. A provider keeps one, and
// leaves unavailable offerings out of its catalogue and its launches. A restart loses it, which costs one refused
// launch for each offering. The zero value is ready for use; it is safe for concurrent use.
type Shortages struct{ backoff Backoff[Offering] }

// Note notes that an offering was refused, or taken away, at now. If it counts as unavailable already, nothing
// changes: all launches of one round meet the same shortage.
func (s *Shortages) Note(o Offering, now time.Time) { s.backoff.Note(o, now) }

// Clear notes that an offering had capacity: its next shortage counts as the first.
func (s *Shortages) Clear(o Offering) { s.backoff.Clear(o) }

// Without returns the catalogue with the offerings marked unavailable that count as such at now; c itself when there
// are none.
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

// Backoff is the logic of [Shortages], for a provider whose offerings need a larger key. The zero value is ready for
// use; it is safe for concurrent use.
type Backoff[K comparable] struct {
	mu    sync.Mutex
	noted map[K]shortage // bounded by the offerings of the provider; old entries are forgotten
}

type shortage struct {
	until, paused time.Time
	lasts         time.Duration // from the shortage to until
}

// Note is like [Shortages.Note].
func (b *Backoff[K]) Note(key K, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.noted[key]
	if now.Before(known.until) {
		return
	}
	lasts := firstShortage
	// otherwise it had capacity for so long that this is a new shortage
	if known.lasts > 0 && now.Before(known.until.Add(mostShortage)) {
		lasts = min(2*known.lasts, mostShortage)
	}
	b.set(key, shortage{until: now.Add(lasts), lasts: lasts, paused: known.paused})
}

// Pause makes a key count as unavailable for the time of a first shortage. It does not change how long the next
// shortage lasts: nobody knows whether this very key was refused.
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

// Clear is like [Shortages.Clear].
func (b *Backoff[K]) Clear(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.noted, key)
}

// Lacking returns the keys that count as unavailable at now.
func (b *Backoff[K]) Lacking(now time.Time) map[K]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	lacking := map[K]bool{}
	for key, each := range b.noted {
		switch {
		case now.Before(each.until), now.Before(each.paused):
			lacking[key] = true
		case !now.Before(each.until.Add(mostShortage)):
			delete(b.noted, key) // its next shortage counts as the first anyway
		}
	}
	return lacking
}
