// Package timer is the clock of what waits. Code that waits takes a [Clock], so that its tests move time and sleep
// never.
package timer

import (
	"sync"
	"time"
)

// Clock tells the time and calls back.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, after d, from a goroutine that is not the caller's. stop prevents that as long as the
	// call has not begun.
	AfterFunc(d time.Duration, f func()) (stop func())
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
// Calls that these ask for are made too when they fall due.
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

// Waiting returns how many calls are still to be made.
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
