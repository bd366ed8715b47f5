package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// made is a call that was made.
type made struct {
	key  string
	at   time.Duration
	asks []int
}

// recorder answers every ask with its number, and notes the calls.
type recorder struct {
	clock timer.Clock
	start time.Time
	calls []made
}

func (r *recorder) gather(window Window) *Gatherer[int, string] {
	config := Config[int, string]{Clock: r.clock, Window: window, Compare: cmp.Compare[int], Call: r.call}
	return New(context.Background(), config)
}

func (r *recorder) call(_ context.Context, key string, asks []int) []Answer[string] {
	r.calls = append(r.calls, made{key: key, at: r.clock.Now().Sub(r.start), asks: slices.Clone(asks)})
	var answers []Answer[string]
	for _, ask := range asks {
		answers = append(answers, Answer[string]{Value: fmt.Sprint(key, ask)})
	}
	return answers
}

func onFake() (*timer.Fake, *recorder) {
	clock := timer.NewFake(time.Unix(0, 0))
	return clock, &recorder{clock: clock, start: clock.Now()}
}

// E-29: a call is made 35 ms after the last ask, 300 ms after the first, or at once for 100. Keys stay apart.
func TestHowLongAsksWait(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		every time.Duration
		asks  int
		want  []made
	}{
		"one":     {asks: 1, want: []made{{at: 35 * ms, asks: []int{0}}}},
		"company": {every: 30 * ms, asks: 3, want: []made{{at: 95 * ms, asks: []int{0, 1, 2}}}},
		"too far": {every: 40 * ms, asks: 2,
			want: []made{{at: 35 * ms, asks: []int{0}}, {at: 75 * ms, asks: []int{1}}}},
		"no end": {every: 30 * ms, asks: 11, want: []made{
			{at: 300 * ms, asks: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, {at: 335 * ms, asks: []int{10}},
		}},
	} {
		clock, r := onFake()
		g := r.gather(Launches())
		for i := range c.asks {
			g.join("", i, Company{})
			clock.Advance(c.every)
		}
		clock.Advance(time.Second)
		if fmt.Sprint(r.calls) != fmt.Sprint(c.want) {
			t.Errorf("%s: calls %v, want %v", name, r.calls, c.want)
		}
	}
	clock, r := onFake()
	g := r.gather(Launches())
	for i := range 250 {
		g.join("a", i, Company{})
		if i < 2 {
			g.join("b", i, Company{})
		}
	}
	clock.Advance(time.Second)
	var got []string
	for _, call := range r.calls {
		got = append(got, fmt.Sprint(call.key, len(call.asks), "/", call.at))
	}
	if want := []string{"a100/0s", "a100/0s", "b2/35ms", "a50/35ms"}; !slices.Equal(got, want) {
		t.Errorf("250 and 2 at once: %v, want %v", got, want)
	}
}

// E-29, E-35: a single ask goes at once, and a company as soon as it is complete, however long that takes. A missing
// member is waited for two seconds, all of them together ten.
func TestCompanyIsWaitedFor(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		every      time.Duration
		size, asks int
		want       string
	}{
		"alone":            {0, 1, 1, "1 at 0s"},
		"slow":             {250 * ms, 3, 3, "3 at 500ms"},
		"one never comes":  {250 * ms, 3, 2, "2 at 2.25s"},
		"all but one":      {0, 2, 1, "1 at 2s"},
		"slower and slow":  {1900 * ms, 12, 12, "6 at 10s, 6 at 20.9s"},
		"too far apart":    {2100 * ms, 2, 2, "1 at 2s, 1 at 2.1s"},
		"more than a call": {40 * ms, 250, 250, "100 at 3.96s, 100 at 7.96s, 50 at 9.96s"},
		"five calls": {
			10 * ms, 500, 500, "100 at 990ms, 100 at 1.99s, 100 at 2.99s, 100 at 3.99s, 100 at 4.99s",
		},
	} {
		clock, r := onFake()
		g := r.gather(Launches())
		for i := range c.asks {
			g.join("", i, Company{Group: "g", Size: c.size, Name: fmt.Sprint(i)})
			clock.Advance(c.every)
		}
		clock.Advance(20 * time.Second)
		if got := r.said(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// said returns how many asks each call had, and when it was made.
func (r *recorder) said() string {
	var calls []string
	for _, call := range r.calls {
		calls = append(calls, fmt.Sprint(len(call.asks), " at ", call.at))
	}
	return strings.Join(calls, ", ")
}

// E-29: a repeated ask does not count twice, others in the round are still waited for, and companies are forgotten.
func TestCompanyIsCounted(t *testing.T) {
	t.Parallel()
	clock, r := onFake()
	g := r.gather(Launches())
	of := func(group string, size int, name string) Company {
		return Company{Group: group, Size: size, Name: name}
	}
	g.join("a", 1, of("g", 2, "one"))
	g.join("a", 1, of("g", 2, "one"))
	g.join("b", 3, of("h", 1, "three"))
	g.join("b", 4, Company{})
	clock.Advance(34 * time.Millisecond)
	if got := r.said(); got != "" {
		t.Errorf("%s: want nothing yet", got)
	}
	clock.Advance(time.Millisecond)
	g.join("c", 2, of("g", 2, "two")) // of another key: the first waits no longer than for one that never comes
	clock.Advance(3 * time.Second)
	if got := r.said(); got != "2 at 35ms, 1 at 35ms, 1 at 2s" {
		t.Errorf("%s: want the stranger after 35 ms, the second at once, the first after two seconds", got)
	}
	clock.Advance(companyFor + time.Second)
	g.join("d", 5, of("i", 1, "five"))
	if len(g.came) != 1 {
		t.Errorf("%d companies are remembered, want the last one", len(g.came))
	}
}

// E-54: the window for ending machines.
func TestTheWindowForTerminations(t *testing.T) {
	t.Parallel()
	if w := Terminations(); w.Idle != 100*time.Millisecond || w.Most != 500 {
		t.Errorf("%+v: want 100ms and 500", w)
	}
}

// answers are what callers got, by ask.
type answers struct {
	mu   sync.Mutex
	errs map[int]error
}

func (a *answers) add(n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs[n] = err
}

func (a *answers) all() map[int]error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.errs)
}

// E-29: a caller that gives up gets its context's error at once; the others get their answers. An ask without callers
// is dropped, and a running call is not cancelled.
func TestGivingUpIsNoMatterToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock, r := onFake()
		release := make(chan struct{})
		slow := func(ctx context.Context, key string, asks []int) []Answer[string] {
			<-release
			if ctx.Err() != nil {
				t.Error("the call's context has ended")
			}
			return r.call(ctx, key, asks)
		}
		g := New(t.Context(), Config[int, string]{Clock: clock, Window: Launches(), Compare: cmp.Compare[int],
			Call: slow})
		ctx, cancel := context.WithCancel(t.Context())
		late, cancelLate := context.WithCancel(t.Context())
		answers := answers{errs: map[int]error{}}
		ask := func(ctx context.Context, n int) {
			go func() {
				value, err := g.Do(ctx, "k", n)
				if answers.add(n, err); err == nil && value != fmt.Sprint("k", n) {
					t.Errorf("%d was answered %s", n, value)
				}
			}()
			synctest.Wait()
		}
		ask(ctx, 1)
		ask(t.Context(), 2)
		ask(late, 3)
		cancel()
		synctest.Wait()
		if got := answers.all(); !errors.Is(got[1], context.Canceled) || len(got) != 1 {
			t.Errorf("after 1 gave up: %v", got)
		}
		go clock.Advance(time.Second)
		synctest.Wait() // the call is under way
		cancelLate()
		synctest.Wait()
		if got := answers.all(); !errors.Is(got[3], context.Canceled) || len(got) != 2 {
			t.Errorf("after 3 gave up: %v", got)
		}
		close(release)
		synctest.Wait()
		if got := answers.all(); got[2] != nil || len(got) != 3 {
			t.Errorf("2 has no answer: %v", got)
		}
		if len(r.calls) != 1 || !slices.Equal(r.calls[0].asks, []int{2, 3}) {
			t.Errorf("calls %v, want one for 2 and 3", r.calls)
		}
		if _, err := g.Do(ctx, "k", 4); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}

// A call with too few answers leaves no caller waiting, and gives none another's answer.
func TestWhatIsNotAnsweredIsUnknown(t *testing.T) {
	t.Parallel()
	clock := timer.NewFake(time.Unix(0, 0))
	short := func(_ context.Context, _ string, asks []int) []Answer[int] { return []Answer[int]{{Value: asks[0]}} }
	g := New(t.Context(), Config[int, int]{Clock: clock, Window: Launches(), Compare: cmp.Compare[int], Call: short})
	b, a := g.join("", 7, Company{}), g.join("", 3, Company{})
	clock.Advance(time.Second)
	if a.answer.Value != 3 || a.answer.Err != nil || !errors.Is(b.answer.Err, ErrUnanswered) {
		t.Errorf("%+v and %+v", a.answer, b.answer)
	}
}

// caller is one who asked, in the law below.
type caller struct {
	place *place[int, string]
	key   string
	ask   int
	came  time.Duration
	left  bool
}

// E-29, E-54, as a law: in whatever way callers arrive, ask for the same and give up, each remaining one gets the
// answer to its own ask, from a call made in time. No call is too large, unordered or has an ask twice, and nothing is
// left behind.
func TestEachGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock, r := onFake()
		window := Launches()
		window.Most = rapid.IntRange(1, 6).Draw(t, "most")
		g := r.gather(window)
		var all []*caller
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				clock.Advance(time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond)
			case 1:
				if len(all) > 0 {
					if c := rapid.SampledFrom(all).Draw(t, "leaves"); !c.left {
						g.leave(c.place)
						c.left = true
					}
				}
			default:
				c := &caller{key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
					ask: rapid.IntRange(0, 9).Draw(t, "ask")}
				c.came, c.place = clock.Now().Sub(r.start), g.join(c.key, c.ask, Company{})
				all = append(all, c)
			}
		}
		clock.Advance(window.Longest)
		for _, call := range r.calls {
			distinct := slices.Compact(slices.Clone(call.asks))
			n := len(call.asks)
			if n == 0 || n > window.Most || !slices.IsSorted(call.asks) || len(distinct) != n {
				t.Fatalf("a call for %v, at most %d", call.asks, window.Most)
			}
		}
		for _, c := range all {
			answered := c.place.answer.Value != ""
			if !c.left && !answered || answered && c.place.answer.Value != fmt.Sprint(c.key, c.ask) {
				t.Fatalf("%s%d was answered %+v", c.key, c.ask, c.place.answer)
			}
			inTime := func(call made) bool {
				its := call.key == c.key && slices.Contains(call.asks, c.ask)
				return its && call.at >= c.came && call.at <= c.came+window.Longest
			}
			if !c.left && !slices.ContainsFunc(r.calls, inTime) {
				t.Fatalf("%s%d came at %s, calls %v", c.key, c.ask, c.came, r.calls)
			}
		}
		if clock.Waiting() != 0 || len(g.waiting) != 0 {
			t.Fatalf("%d callbacks and %d rounds are left", clock.Waiting(), len(g.waiting))
		}
	})
}

// E-29, E-61: 500 claims that come within a moment, on the clock that is used in production, are five calls.
func TestFiveHundredClaimsAreFiveCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		call := func(_ context.Context, key string, asks []int) []Answer[string] {
			mu.Lock()
			defer mu.Unlock()
			calls++
			var answers []Answer[string]
			for _, ask := range asks {
				answers = append(answers, Answer[string]{Value: fmt.Sprint(key, ask)})
			}
			return answers
		}
		clock := timer.Real{} // the bubble's
		g := New(t.Context(), Config[int, string]{Clock: clock, Window: Launches(), Compare: cmp.Compare[int],
			Call: call})
		began := clock.Now()
		var all sync.WaitGroup
		for i := range 500 {
			all.Add(1)
			clock.AfterFunc(time.Duration(i%20)*time.Millisecond, func() {
				defer all.Done()
				if got, err := g.Do(t.Context(), "k", i); err != nil || got != fmt.Sprint("k", i) {
					t.Errorf("%d was answered %s, %v", i, got, err)
				}
			})
		}
		all.Wait()
		if took := clock.Now().Sub(began); calls != 5 || took > 54*time.Millisecond {
			t.Errorf("%d calls in %s, want 5 within 35ms of the last claim", calls, took)
		}
	})
}
