// Package presence tells an instance that EC2 does not show yet from one that is gone (E-39). EC2 may not know an
// instance for a while after it has made it, and whoever takes that for the truth gives up a claim whose machine
// runs. It makes no calls.
package presence

import (
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const (
	// NotSeenFor is how long after its launch EC2's not knowing an instance says nothing: two minutes, and as much as
	// this clock may have been set on since.
	NotSeenFor = 2*time.Minute + provider.ClockSkew
	// Apart is how long has to be between two answers that do not know an instance, before it counts as gone.
	Apart = 10 * time.Second

	// mostKnown bounds the memory. Beyond it, what was not asked about for forgottenAfter is dropped, which costs
	// asking twice.
	mostKnown      = 10_000
	forgottenAfter = time.Hour
)

// Book remembers which instances EC2 did not know. It is lost with the process, which costs asking twice more. The
// zero value is ready for use; safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	unknown map[string]absence
}

// absence is what answers in a row said of an instance that they did not know.
type absence struct {
	first time.Time // when EC2 was first asked
	since time.Time // when it was first asked and the instance was old enough to be known; zero for never
	last  time.Time
	gone  bool
}

// Seen takes in that EC2 shows the instance. One that it shows as terminated is gone without more ado.
func (b *Book) Seen(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unknown, id)
}

// Unknown takes in that EC2 does not know the instance, asked at that time, and reports whether it is gone. launched
// is when it was launched; zero when that is not known: then it counts from the first question. Answers come in any
// order.
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
