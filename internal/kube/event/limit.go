package event

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// burstSeconds is how many seconds' worth of events may come at once.
	burstSeconds = 10
	// forWarnings is the share of these reserved for warnings. So a failed launch is still reported while many nodes
	// come or go.
	forWarnings = 0.25
)

// Limit bounds the events of a process, whatever their reasons (K-15). It allows a rate per second and a burst of ten
// times that, with the last quarter for warnings only. It drops and counts the rest. It is safe for concurrent use;
// its lock is never held while the sink runs.
type Limit struct {
	perSecond float64

	mu      sync.Mutex
	bucket  burst
	dropped func(reason string)
}

// NewLimit returns a limit of perSecond events a second; 0 means no limit.
func NewLimit(perSecond int) *Limit { return &Limit{perSecond: float64(perSecond)} }

// Dropped sets the function that is called for each dropped event from now on.
func (l *Limit) Dropped(count func(reason string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = count
}

// Before returns a sink that passes events within the limit on to another sink.
func (l *Limit) Before(sink Sink, now func() time.Time) Bounded {
	return func(about client.Object, kind Kind, reason, message string) bool {
		passes, dropped := l.take(kind, now())
		switch {
		case passes:
			sink(about, kind, reason, message)
		case dropped != nil:
			dropped(reason)
		}
		return passes
	}
}

// take reports whether one more event of a kind passes, and otherwise returns the function to call.
func (l *Limit) take(kind Kind, now time.Time) (bool, func(reason string)) {
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
	kept := 0.0
	if kind != Warning {
		kept = most * forWarnings
	}
	if l.bucket.left-kept < 1 {
		return false, l.dropped
	}
	l.bucket.left--
	return true, nil
}
