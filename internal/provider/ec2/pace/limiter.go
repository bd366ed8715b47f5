package pace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// mostWaiting bounds the queue. It is far above the needs of one cluster; more waiters mean that something loops.
const mostWaiting = 10_000

// Limiter lets calls go at a pace that EC2 accepts. Its callbacks run on goroutines of its clock; none remains when
// nobody waits.
type Limiter struct {
	clock timer.Clock

	mu       sync.Mutex
	buckets  [buckets]bucket
	queue    []*waiter // in the order of earlier
	arrivals int
	stop     func() // of the next callback of serve; nil when there is none
}

type waiter struct {
	ask     Ask
	arrival int
	grant   Grant
	ready   chan struct{} // closed once grant is set
}

// New returns a limiter whose buckets are full.
func New(clock timer.Clock) *Limiter {
	l := &Limiter{clock: clock}
	for i, a := range allowances() {
		l.buckets[i] = newBucket(a, clock.Now())
	}
	return l
}

// Grant is the permission for one call.
type Grant struct {
	limiter *Limiter
	ask     Ask
	epochs  [buckets]int
}

// Throttled notes that EC2 refused the call because of too many calls. Of several calls under way, the first refused
// one halves the rate; the others change nothing.
func (g Grant) Throttled() {
	if g.limiter == nil {
		return
	}
	l := g.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.buckets {
		if b := &l.buckets[i]; g.ask.Tokens[i] > 0 && b.epoch == g.epochs[i] {
			b.halve(l.clock.Now())
		}
	}
	l.serve()
}

// Wait returns once the call may be made. An error means that it must not be made, and wraps [provider.ErrThrottled].
// Either ctx ended first, and the error wraps the context's error too, or too many callers wait already.
func (l *Limiter) Wait(ctx context.Context, ask Ask) (Grant, error) {
	if err := ctx.Err(); err != nil {
		return Grant{}, fmt.Errorf("%w: %w", provider.ErrThrottled, err)
	}
	w, err := l.join(ask)
	if err != nil {
		return Grant{}, err
	}
	if err := timer.Await(ctx, l.clock, w.ready); err != nil && l.leave(w) {
		return Grant{}, fmt.Errorf("%w: waited for earlier calls: %w", provider.ErrThrottled, err)
	}
	return w.grant, nil // if the context has ended, the tokens are spent, and the caller's own call will notice
}

// Rate returns how many tokens per second the bucket gets now, and how many callers wait for it.
func (l *Limiter) Rate(of Bucket) (perSecond float64, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buckets[of].advance(l.clock.Now())
	for _, w := range l.queue {
		if w.ask.Tokens[of] > 0 {
			waiting++
		}
	}
	return l.buckets[of].slowed, waiting
}

func (l *Limiter) join(ask Ask) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= mostWaiting {
		return nil, fmt.Errorf("%w: %d calls wait already", provider.ErrThrottled, mostWaiting)
	}
	w := &waiter{ask: ask, arrival: l.arrivals, ready: make(chan struct{})}
	l.arrivals++
	at, _ := slices.BinarySearchFunc(l.queue, w, earlier)
	l.queue = slices.Insert(l.queue, at, w)
	l.serve()
	return w, nil
}

// leave removes a waiter, and reports whether it was still waiting.
func (l *Limiter) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.queue, w)
	if at < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, at, at+1)
	l.serve() // others may have stood behind it
	return true
}

// serve releases all waiters that may go, and schedules its next call. Nobody overtakes a waiter for a bucket that
// both need: otherwise a large launch would never get its tokens. Call with the lock held.
func (l *Limiter) serve() {
	now := l.clock.Now()
	for i := range l.buckets {
		l.buckets[i].advance(now)
	}
	var taken [buckets]bool // by an earlier waiter
	left := l.queue[:0:0]
	for _, w := range l.queue {
		if l.free(w.ask, taken) {
			l.spend(w)
			continue
		}
		left = append(left, w)
		for i, n := range w.ask.Tokens {
			taken[i] = taken[i] || n > 0
		}
	}
	l.queue = left
	l.wake()
}

func (l *Limiter) free(ask Ask, taken [buckets]bool) bool {
	for i, n := range ask.Tokens {
		if n > 0 && (taken[i] || !l.buckets[i].has(n)) {
			return false
		}
	}
	return true
}

func (l *Limiter) spend(w *waiter) {
	w.grant = Grant{limiter: l, ask: w.ask}
	for i, n := range w.ask.Tokens {
		l.buckets[i].tokens -= float64(n)
		w.grant.epochs[i] = l.buckets[i].epoch
	}
	close(w.ready)
}

// wake schedules serve for the time when the next waiter may go, if anybody waits.
func (l *Limiter) wake() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	var taken [buckets]bool
	soonest := recoveryEvery
	for _, w := range l.queue {
		wait, first := time.Duration(0), true // first: nobody before it needs the same
		for i, n := range w.ask.Tokens {
			if n > 0 {
				wait, first = max(wait, l.buckets[i].wait(n)), first && !taken[i]
				taken[i] = true
			}
		}
		if first {
			soonest = min(soonest, wait)
		}
	}
	if len(l.queue) == 0 {
		return
	}
	l.stop = l.clock.AfterFunc(soonest, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.serve()
	})
}
