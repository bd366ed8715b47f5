// Package timer has the clock for code that waits. Such code takes a [Clock], so that its tests move time and never
// sleep.
package timer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells the time and calls back.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, after d, from a goroutine that is not the caller's. stop prevents the call if it has not
	// begun yet.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Scheduler is a clock that also decides which goroutine runs. The simulation has one: goroutines announce that they
// wait, and only one runs at a time. Code does not call its methods but [Await] and [Go].
type Scheduler interface {
	Clock
	// Await returns once done is closed, or with the context's error.
	Await(ctx context.Context, done <-chan struct{}) error
	// Go runs f concurrently.
	Go(f func())
}

// Await waits until done is closed and returns nil, or until the context ends and returns its error. Nothing must be
// sent through done.
func Await(ctx context.Context, c Clock, done <-chan struct{}) error {
	if s, is := c.(Scheduler); is {
		return s.Await(ctx, done)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Go runs f concurrently.
func Go(c Clock, f func()) {
	if s, is := c.(Scheduler); is {
		s.Go(f)
		return
	}
	go f()
}

// Each calls do for 0 to n-1 with this number of concurrent workers, and returns when all are done. The caller is one
// of the workers.
func Each(c Clock, workers, n int, do func(int)) {
	workers = min(workers, n)
	var left atomic.Int64
	left.Store(int64(workers))
	done := make(chan struct{})
	work := func(first int) {
		for i := first; i < n; i += workers {
			do(i)
		}
		if left.Add(-1) == 0 {
			close(done)
		}
	}
	for worker := 1; worker < workers; worker++ {
		Go(c, func() { work(worker) })
	}
	if workers > 0 {
		work(0)
		_ = Await(context.Background(), c, done) // this context never ends
	}
}

// Real is the clock of the machine.
type Real struct{}

// Now implements [Clock].
func (Real) Now() time.Time { return time.Now() }

// AfterFunc implements [Clock].
func (Real) AfterFunc(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// Fake is a clock that stands still until Advance. Safe for concurrent use.
type Fake struct {
	mu      sync.Mutex
	now     time.Time
	next    int
	waiting map[int]call
}

type call struct {
	at time.Time
	f  func()
}

// NewFake returns a clock that shows start.
func NewFake(start time.Time) *Fake { return &Fake{now: start, waiting: map[int]call{}} }

// Now implements [Clock].
func (c *Fake) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements [Clock]. f runs in the goroutine of Advance, also when d is 0.
func (c *Fake) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next++
	c.waiting[id] = call{at: c.now.Add(max(0, d)), f: f}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}
}

// Advance moves the clock by d and makes the calls that fall due on the way, earliest first, each at its own time.
// This includes calls that these schedule.
func (c *Fake) Advance(d time.Duration) {
	end := c.Now().Add(d)
	for {
		due, found := c.take(end)
		if !found {
			break
		}
		due()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = end
}

// Waiting returns the number of pending calls.
func (c *Fake) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// take removes and returns the first call that is due by end, and moves the clock to it.
func (c *Fake) take(end time.Time) (f func(), found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := -1
	for id, each := range c.waiting {
		if each.at.After(end) {
			continue
		}
		if first < 0 || each.at.Before(c.waiting[first].at) || each.at.Equal(c.waiting[first].at) && id < first {
			first = id
		}
	}
	if first < 0 {
		return nil, false
	}
	due := c.waiting[first]
	delete(c.waiting, first)
	c.now = due.at
	return due.f, true
}
