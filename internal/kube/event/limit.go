package event

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// burstSeconds is of how many seconds events may come at once.
const burstSeconds = 10

// Limit bounds the events of a process, whatever their reasons (K-15): so many a second, and ten times as many at
// once. What is above it is dropped, and counted. It is safe for concurrent use; its lock is never held while the
// sink runs.
type Limit struct {
	perSecond float64

	mu      sync.Mutex
	bucket  burst
	dropped func(reason string)
}

// NewLimit returns a limit of so many events a second; 0 is none.
func NewLimit(perSecond int) *Limit { return &Limit{perSecond: float64(perSecond)} }

// Dropped makes count hear of each event that is dropped from now on.
func (l *Limit) Dropped(count func(reason string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = count
}

// Before returns a sink that passes on to another what the limit lets through.
func (l *Limit) Before(sink Sink, now func() time.Time) Sink {
	return func(about client.Object, kind Kind, reason, message string) {
		passes, dropped := l.take(now())
		switch {
		case passes:
			sink(about, kind, reason, message)
		case dropped != nil:
			dropped(reason)
		}
	}
}

// take reports whether one more event passes, and otherwise who is to hear of it.
func (l *Limit) take(now time.Time) (bool, func(reason string)) {
	if l.perSecond == 0 {
		return true, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.perSecond * burstSeconds
	if l.bucket.at.IsZero() {
		l.bucket = burst{left: most, at: now}
	}
	l.bucket.left = min(most, l.bucket.left+max(0, now.Sub(l.bucket.at).Seconds())*l.perSecond)
	l.bucket.at = now
	if l.bucket.left < 1 {
		return false, l.dropped
	}
	l.bucket.left--
	return true, nil
}
