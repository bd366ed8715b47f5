package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// E-54, E-61: an end waits while others are on their way: a second for the next one, ten in total. Without others it
// goes at once.
func TestOthersOnTheirWayAreWaitedFor(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		every        time.Duration
		asks, coming int // so many are waited for
		want         string
	}{
		"nobody else":     {0, 1, 1, "1 at 100ms"},
		"all of them":     {300 * ms, 10, 10, "10 at 2.8s"},
		"one never comes": {300 * ms, 3, 4, "3 at 1.6s"},
		"too far apart":   {1500 * ms, 3, 3, "1 at 1s, 1 at 2.5s, 1 at 3.1s"},
		"for ever":        {900 * ms, 14, 99, "12 at 10s, 2 at 12.7s"},
		"more than many":  {2 * ms, 1100, 1100, "500 at 998ms, 500 at 1.998s, 100 at 3.198s"},
	} {
		clock, r := onFake()
		seen := map[int]bool{}
		g := New(context.Background(), Config[int, string]{Clock: clock, Window: Terminations(),
			Compare: cmp.Compare[int], Call: r.call, Coming: func(_ string, asks []int) bool {
				for _, ask := range asks {
					seen[ask] = true
				}
				return len(seen) < c.coming
			}})
		for i := range c.asks {
			g.join("", i, Company{})
			clock.Advance(c.every)
		}
		clock.Advance(20 * time.Second)
		if got := r.said(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// E-61: callers do not wait for others on their way: after a short time a caller gets ErrTaken, later ones get it at
// once, and the call is still made.
func TestNobodyWaitsForOthersOnTheirWay(t *testing.T) {
	t.Parallel()
	clock, r := onFake()
	coming := true
	g := New(context.Background(), Config[int, string]{Clock: clock, Window: Terminations(), Compare: cmp.Compare[int],
		Call: r.call, Coming: func(string, []int) bool { return coming }})
	let := func(p *place[int, string]) string {
		select {
		case <-p.done:
			return fmt.Sprint(p.answer.Value, errors.Is(p.answer.Err, ErrTaken))
		default:
			return "waits"
		}
	}
	first := g.join("k", 1, Company{})
	clock.Advance(99 * time.Millisecond)
	got := let(first)
	clock.Advance(time.Millisecond)
	got += ", " + let(first) + ", " + let(g.join("k", 2, Company{})) + ", " + let(g.join("k", 1, Company{}))
	g.leave(first)
	coming = false
	clock.Advance(time.Second)
	last := g.join("k", 3, Company{})
	clock.Advance(time.Second)
	if want := "waits, true, true, true, k3false"; got+", "+let(last) != want {
		t.Errorf("%s, %s; want %s", got, let(last), want)
	}
	if got := r.said(); got != "2 at 200ms, 1 at 1.2s" {
		t.Errorf("calls: %s", got)
	}
}
