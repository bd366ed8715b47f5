package timer_test

import (
	"slices"
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
