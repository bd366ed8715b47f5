// Package machinetime measures how fast this machine is for this process. Bounds in seconds assume a machine that has
// time for us. On a machine that is busy with other work they are measured in machine time, with [Now] instead of
// time.Now.
package machinetime

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// Parameters of the measurement: a piece of work that takes a few milliseconds, several times a second. That costs
// about two percent of a core.
const (
	tick      = 250 * time.Millisecond
	workload  = 5 * time.Millisecond
	calibrate = 20 // repetitions; the fastest counts
	lateTick  = 50 * time.Millisecond
)

// Clock measures machine time: the time that would have passed on this machine if it had nothing else to do. It
// repeats a piece of work, and measures how much longer that takes than the best time. At half the speed, half the
// time passes. A stall of the whole process, which then wakes up late, does not count at all.
type Clock struct {
	rounds int           // of the work
	best   time.Duration // of the work when nothing else runs

	mu      sync.Mutex
	machine time.Duration // until last
	last    time.Time
	began   time.Time
	slow    float64 // how many times slower the last piece was; at least 1
}

// New calibrates a clock and lets it run until ctx ends.
func New(ctx context.Context) *Clock {
	c := &Clock{rounds: 1000, slow: 1}
	for c.best = c.shortest(3); c.best < workload; c.best = c.shortest(3) {
		c.rounds *= 2
	}
	c.best = c.shortest(calibrate)
	c.began = time.Now()
	c.last = c.began
	go c.run(ctx)
	return c
}

func (c *Clock) shortest(times int) time.Duration {
	best := time.Hour
	for range times {
		best = min(best, c.work())
	}
	return best
}

// work does a piece of work and returns how long that took.
func (c *Clock) work() time.Duration {
	began := time.Now()
	var block [64]byte
	for range c.rounds {
		sum := sha256.Sum256(block[:])
		copy(block[:], sum[:])
	}
	return time.Since(began)
}

func (c *Clock) run(ctx context.Context) {
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			took := c.work()
			c.note(time.Now(), took)
		}
	}
}

// note records a piece of work that ended now.
func (c *Clock) note(now time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.best = min(c.best, took)
	c.slow = max(1, float64(took)/float64(c.best))
	passed := now.Sub(c.last) - took
	if late := passed - tick; late > lateTick {
		passed = tick
	}
	c.machine += time.Duration(float64(passed+took) / c.slow)
	c.last = now
}

// Now returns how much machine time has passed since the clock was started.
func (c *Clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine
}

// Now returns the machine time of a clock that begins with the first call and runs until the process ends.
func Now() time.Duration { return process().Now() }

// process is the clock of this process.
var process = sync.OnceValue(func() *Clock { return New(context.Background()) })

// String returns how fast the machine was.
func (c *Clock) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.last.Sub(c.began)
	if wall <= 0 {
		return "not measured yet"
	}
	return fmt.Sprintf("%.0f s of machine time in %.0f s", c.machine.Seconds(), wall.Seconds())
}
