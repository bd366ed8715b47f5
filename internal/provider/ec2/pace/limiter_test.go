package pace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

func gone(w *waiter) bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// shares reports whether two asks need tokens of one bucket.
func shares(a, b Ask) bool {
	for i := range a.Tokens {
		if a.Tokens[i] > 0 && b.Tokens[i] > 0 {
			return true
		}
	}
	return false
}

func mustJoin(t interface{ Fatal(...any) }, l *Limiter, ask Ask) *waiter {
	w, err := l.join(ask)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// E-60: the numbers: how many calls go at once, and how many a second after that.
func TestBurstAndRate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask          Ask
		burst, later int // later: in 10 s after the burst
	}{
		"reads":     {ask: For("DescribeInstances", 0), burst: 100, later: 200},
		"changes":   {ask: For("CreateTags", 0), burst: 50, later: 50},
		"instances": {ask: Ask{Rank: Launching, Tokens: [buckets]int{Instances: 10}}, burst: 100, later: 2},
	} {
		clock := timer.NewFake(time.Unix(0, 0))
		l := New(clock)
		var all []*waiter
		for range c.burst + c.later + 10 {
			all = append(all, mustJoin(t, l, c.ask))
		}
		count := func() (n int) {
			for _, w := range all {
				if gone(w) {
					n++
				}
			}
			return n
		}
		if n := count(); n != c.burst {
			t.Errorf("%s: %d go at once, want %d", name, n, c.burst)
		}
		clock.Advance(10 * time.Second)
		if n := count(); n != c.burst+c.later {
			t.Errorf("%s: %d went in 10 s, want %d", name, n-c.burst, c.later)
		}
	}
}

// E-60: which bucket a call is counted by, and its rank.
func TestWhatCallsNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action    string
		instances int
		want      Ask
	}{
		{"DescribeSubnets", 0, Ask{Discovery, [buckets]int{Reads: 1}}},
		{"GetParameter", 0, Ask{Discovery, [buckets]int{Reads: 1}}},
		{"DescribeInstanceStatus", 0, Ask{Urgent, [buckets]int{Reads: 1}}},
		{"TerminateInstances", 0, Ask{Urgent, [buckets]int{Changes: 1}}},
		{"CreateFleet", 40, Ask{Launching, [buckets]int{Changes: 1, Instances: 40}}},
		{"CreateLaunchTemplate", 0, Ask{Launching, [buckets]int{Changes: 1}}},
		{"CreateTags", 0, Ask{Tagging, [buckets]int{Changes: 1}}},
		{"CreateInstanceProfile", 0, Ask{Discovery, [buckets]int{Changes: 1}}},
	} {
		if got := For(c.action, c.instances); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.action, got, c.want)
		}
	}
}

// E-60: when tokens are short, terminations go before launches, these before discovery, and tags last, in any order of
// arrival.
func TestTheUrgentGoFirst(t *testing.T) {
	t.Parallel()
	clock := timer.NewFake(time.Unix(0, 0))
	l := New(clock)
	for range 50 {
		mustJoin(t, l, For("CreateTags", 0)) // uses up the burst
	}
	actions := []string{
		"CreateTags", "CreateInstanceProfile", "CreateFleet", "TerminateInstances", "CreateTags", "TerminateInstances",
	}
	var all []*waiter
	for _, action := range actions {
		all = append(all, mustJoin(t, l, For(action, 1)))
	}
	var order []string
	for range 10 {
		for i, w := range all {
			if w != nil && gone(w) {
				order, all[i] = append(order, fmt.Sprint(i)), nil
			}
		}
		clock.Advance(200 * time.Millisecond)
	}
	if want := []string{"3", "5", "2", "1", "0", "4"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v of %v", order, want, actions)
	}
}

// E-60: a refusal halves the rate, never below 0.5 a second; it comes back by a tenth every 10 s, never above what
// it was. Calls that were under way together halve it once.
func TestRefusalsSlowDown(t *testing.T) {
	t.Parallel()
	clock := timer.NewFake(time.Unix(0, 0))
	l := New(clock)
	rate := func(of Bucket, want float64) {
		t.Helper()
		if got, _ := l.Rate(of); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("after %s: %g a second, want %g", clock.Now().Sub(time.Unix(0, 0)), got, want)
		}
	}
	first, second := mustJoin(t, l, For("DescribeImages", 0)), mustJoin(t, l, For("DescribeSubnets", 0))
	first.grant.Throttled()
	rate(Reads, 10)
	second.grant.Throttled()
	rate(Reads, 10)
	rate(Changes, 5)
	late := mustJoin(t, l, For("DescribeSubnets", 0))
	if gone(late) {
		t.Error("a call goes right after EC2 refused one")
	}
	clock.Advance(100 * time.Millisecond)
	if !gone(late) {
		t.Error("0.1 s at 10 a second are not enough for a call")
	}
	clock.Advance(9900 * time.Millisecond)
	rate(Reads, 11)
	clock.Advance(10 * time.Second)
	rate(Reads, 12.1)
	clock.Advance(10 * time.Minute)
	rate(Reads, 20)
	for range 20 {
		w := mustJoin(t, l, For("DescribeImages", 0))
		clock.Advance(2 * time.Second)
		w.grant.Throttled()
	}
	rate(Reads, 0.5)
	Grant{}.Throttled() // of a call that never had one
}

// E-60: a caller that gives up leaves the queue, and those behind it move up. The error says that nothing was done,
// and why.
func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	clock := timer.NewFake(time.Unix(0, 0))
	l := New(clock)
	mustJoin(t, l, For("CreateFleet", 1000))
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := l.Wait(ctx, For("CreateFleet", 100))
		got <- err
	}()
	for waiting := 0; waiting == 0; _, waiting = l.Rate(Instances) {
	}
	small := mustJoin(t, l, For("CreateFleet", 2))
	clock.Advance(time.Second)
	if gone(small) {
		t.Fatal("a later launch overtakes a large one, which then never gets its turn")
	}
	cancel()
	if err := <-got; !errors.Is(err, provider.ErrThrottled) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v: want ErrThrottled and the context's", err)
	}
	if !gone(small) {
		t.Error("two tokens are there and nobody is before it")
	}
	if clock.Waiting() != 0 {
		t.Errorf("%d callbacks are left though nobody waits", clock.Waiting())
	}
	if _, err := l.Wait(ctx, For("DescribeImages", 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := l.Wait(t.Context(), For("DescribeImages", 0)); err != nil {
		t.Errorf("a call that may go: %v", err)
	}
}

// E-60: the queue is bounded; a call that finds it full is throttled.
func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	l := New(timer.NewFake(time.Unix(0, 0)))
	l.queue = make([]*waiter, mostWaiting)
	if _, err := l.join(For("CreateTags", 0)); !errors.Is(err, provider.ErrThrottled) {
		t.Errorf("%v: want ErrThrottled", err)
	}
}

// E-60, as a law: for any asks and refusals, no more calls go in any span than the rate allows, no caller waits for
// ever, none overtakes another of the same rank with the same needs, and with an empty queue no callback is left.
func TestPaceHolds(t *testing.T) {
	t.Parallel()
	actions := []string{
		"DescribeInstances", "CreateFleet", "TerminateInstances", "CreateTags", "CreateLaunchTemplate",
		"DescribeInstanceStatus",
	}
	const mostInstances = 1500
	rapid.Check(t, func(t *rapid.T) {
		clock := timer.NewFake(time.Unix(0, 0))
		l := New(clock)
		var all []*waiter
		var order []*waiter
		counted := map[*waiter]bool{}
		var spent [buckets]float64
		// A call that needs more than the burst goes when the burst is available.
		debt := [buckets]float64{Instances: mostInstances - 1000}
		look := func() {
			for _, w := range all {
				if !counted[w] && gone(w) {
					for _, other := range l.queue {
						if earlier(other, w) < 0 && shares(other.ask, w.ask) {
							t.Fatalf("%+v went before %+v", w.ask, other.ask)
						}
					}
					counted[w], order = true, append(order, w)
					for i, n := range w.ask.Tokens {
						spent[i] += float64(n)
					}
				}
			}
			for i, a := range allowances() {
				if most := a.burst + clock.Now().Sub(time.Unix(0, 0)).Seconds()*a.rate + debt[i] +
					1e-3; spent[i] > most {
					t.Fatalf("bucket %d: %g spent, at most %g", i, spent[i], most)
				}
			}
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				if len(order) > 0 {
					rapid.SampledFrom(order).Draw(t, "refused").grant.Throttled()
				}
			case 1:
				if waiting := slices.Clone(l.queue); len(waiting) > 0 {
					w := rapid.SampledFrom(waiting).Draw(t, "leaves")
					l.leave(w)
					all = slices.DeleteFunc(all, func(each *waiter) bool { return each == w })
				}
			case 2:
				clock.Advance(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			default:
				n := rapid.IntRange(1, mostInstances).Draw(t, "instances")
				all = append(all, mustJoin(t, l, For(rapid.SampledFrom(actions).Draw(t, "action"), n)))
			}
			look()
		}
		for range 500 { // each of 150 launches of 1,000 may need half an hour at the least rate
			clock.Advance(time.Hour)
		}
		look()
		for _, w := range all {
			if !gone(w) {
				t.Fatalf("%+v waits for ever", w.ask)
			}
		}
		if clock.Waiting() != 0 {
			t.Fatalf("%d callbacks are left", clock.Waiting())
		}
	})
}
