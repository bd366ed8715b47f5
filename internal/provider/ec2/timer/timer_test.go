package timer_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// The fake clock makes calls in the order of their times, each at its own time, and none that was stopped.
func TestAFakeClockCallsInOrder(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	clock := timer.NewFake(start)
	var got []time.Duration
	note := func() { got = append(got, clock.Now().Sub(start)) }
	clock.AfterFunc(3*time.Second, note)
	clock.AfterFunc(time.Second, func() {
		note()
		clock.AfterFunc(time.Second, note)
	})
	stop := clock.AfterFunc(2*time.Second, func() { t.Error("a call that was stopped is made") })
	stop()
	clock.AfterFunc(time.Minute, note)
	clock.Advance(10 * time.Second)
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("calls at %v, want %v", got, want)
	}
	if now := clock.Now().Sub(start); now != 10*time.Second || clock.Waiting() != 1 {
		t.Errorf("the clock shows %s and %d calls wait, want 10s and 1", now, clock.Waiting())
	}
}

// The machine's clock calls back, and stops.
func TestTheRealClockCalls(t *testing.T) {
	t.Parallel()
	called := make(chan struct{})
	stop := timer.Real{}.AfterFunc(time.Hour, func() { t.Error("called an hour early") })
	stop()
	timer.Real{}.AfterFunc(0, func() { close(called) })
	<-called
}

// turns is a clock that runs one thing at a time, in the order in which they came.
type turns struct {
	timer.Fake
	waiting []func()
	awaited int
}

func (s *turns) Go(f func()) { s.waiting = append(s.waiting, f) }

func (s *turns) Await(_ context.Context, done <-chan struct{}) error {
	s.awaited++
	for {
		select {
		case <-done:
			return nil
		default:
		}
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		next()
	}
}

// A clock that schedules goroutines is asked whenever one waits or begins; otherwise the runtime decides.
func TestWhoRunsIsTheClocksDecision(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]timer.Clock{"by turns": &turns{}, "real": timer.Real{}} {
		var done [10]atomic.Int64
		timer.Each(clock, 3, len(done), func(i int) { done[i].Add(1) })
		for i := range done {
			if n := done[i].Load(); n != 1 {
				t.Errorf("%s: %d was done %d times", name, i, n)
			}
		}
		timer.Each(clock, 3, 0, func(int) { t.Errorf("%s: there is nothing to do", name) })
		if s, is := clock.(*turns); is && (s.awaited != 1 || len(s.waiting) > 0) {
			t.Errorf("the clock was asked to wait %d times, and %d do not run", s.awaited, len(s.waiting))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := timer.Await(ctx, timer.Real{}, make(chan struct{})); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}
