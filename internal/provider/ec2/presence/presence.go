// Package presence distinguishes an instance that EC2 does not show yet from one that is gone (E-39). EC2 may not know
// an instance for a while after its launch. Whoever believes that gives up a claim whose machine runs. It makes no
// calls.
package presence

import (
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const (
	// NotSeenFor is how long after a launch it means nothing that EC2 does not know the instance: two minutes, and as
	// much as this clock may have been set forward since.
	NotSeenFor = 2*time.Minute + provider.ClockSkew
	// Apart is the minimum time between two answers that do not know an instance, before it counts as gone.
	Apart = 10 * time.Second

	// mostKnown bounds the memory. Beyond it, instances that nobody asked about for forgottenAfter are dropped, which
	// costs asking twice.
	mostKnown      = 10_000
	forgottenAfter = time.Hour
)

// Book remembers which instances EC2 did not know. A restart loses it, which costs asking twice more. The zero value
// is ready for use; safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	unknown map[string]absence
}

// absence is what consecutive answers said about an instance that EC2 did not know.
type absence struct {
	first time.Time // when EC2 was first asked
	since time.Time // when it was first asked and the instance was old enough to be known; zero for never
	last  time.Time
	gone  bool
}

// Seen notes that EC2 shows the instance. Do not call it for one shown as terminated: that one is gone.
func (b *Book) Seen(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unknown, id)
}

// Unknown notes that EC2 did not know the instance when asked, and reports whether it is gone. launched is when it was
// launched. Zero means unknown; then the time of the first question counts. Answers may come in any order.
func (b *Book) Unknown(id string, launched, asked time.Time) (gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, known := b.unknown[id]
	if !known || asked.Before(a.first) {
		a.first = asked
	}
	if launched.IsZero() {
		launched = a.first
	}
	if old := !asked.Before(launched.Add(NotSeenFor)); old && (a.since.IsZero() || asked.Before(a.since)) {
		a.since = asked
	}
	if asked.After(a.last) {
		a.last = asked
	}
	a.gone = a.gone || !a.since.IsZero() && !a.last.Before(a.since.Add(Apart))
	if b.unknown == nil {
		b.unknown = map[string]absence{}
	}
	b.unknown[id] = a
	if len(b.unknown) > mostKnown {
		for other, each := range b.unknown {
			if asked.Sub(each.last) > forgottenAfter {
				delete(b.unknown, other)
			}
		}
	}
	return a.gone
}
