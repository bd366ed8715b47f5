package serve

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// E-61: what goes first does not wait for five hundred that asked before it, and does not hold them up for good.
func TestE61_ClaimsAreWrittenFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPrecedence(100, 1)
		var group sync.WaitGroup
		began := time.Now()
		ask := func(l flowcontrol.RateLimiter, n int) *[]time.Duration {
			var mu sync.Mutex
			var after []time.Duration
			for range n {
				group.Go(func() {
					if err := l.Wait(t.Context()); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					after = append(after, time.Since(began))
				})
			}
			return &after
		}
		others := ask(p.Rest(), 500)
		synctest.Wait()
		first := ask(p.First(), 90)
		group.Wait()
		if last := (*first)[89]; last > 1100*time.Millisecond {
			t.Errorf("90 that go first at 100 a second took %v, want about a second", last)
		}
		within := 0
		for _, after := range *others {
			if after < (*first)[89] {
				within++
			}
		}
		if within < 9 || within > 12 {
			t.Errorf("%d others went meanwhile, want one in ten", within)
		}
		if last := (*others)[499]; last < 5800*time.Millisecond || last > 6*time.Second {
			t.Errorf("590 requests at 100 a second took %v", last)
		}
	})
}

// Who gives up, waiting or asking, leaves its turn to the next one.
func TestATurnIsLeftToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPrecedence(1, 1)
		if !p.Rest().TryAccept() || p.First().TryAccept() {
			t.Fatal("want one at once, and no more")
		}
		ctx, stop := context.WithCancel(t.Context())
		failures := make(chan error, 3)
		for _, l := range []flowcontrol.RateLimiter{p.Rest(), p.First(), p.Rest()} { // one asks, two wait
			go func() { failures <- l.Wait(ctx) }()
			synctest.Wait()
		}
		stays := make(chan error, 1)
		go func() { stays <- p.Rest().Wait(t.Context()) }()
		synctest.Wait()
		stop()
		for range 3 {
			if err := <-failures; err == nil {
				t.Error("a caller that gave up was let through")
			}
		}
		began := time.Now()
		if err := <-stays; err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("the one that stayed got %v after %v", err, time.Since(began))
		}
		if p.First().QPS() != 1 {
			t.Errorf("QPS %v, want 1", p.First().QPS())
		}
	})
}

// E-61: while a request with precedence is under way, only a few others are. All others go once it has ended. A watch
// is not held. A request that gives up leaves its place to the next one.
func TestE61_OthersMakeWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPrecedence(1000, 1000)
		server := &server{answer: make(chan struct{})}
		first, rest := p.Among(true)(server), p.Among(false)(server)
		var group sync.WaitGroup
		failed := atomic.Int32{}
		ask := func(ctx context.Context, by http.RoundTripper, path string) {
			group.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api"+path, nil)
				if err == nil {
					_, err = by.RoundTrip(r)
				}
				if err != nil {
					failed.Add(1)
				}
			})
			synctest.Wait()
		}
		ask(t.Context(), rest, "/old")
		ask(t.Context(), first, "/first")
		ctx, stop := context.WithCancel(t.Context())
		ask(ctx, rest, "/gives-up-under-way")
		for range 4 {
			ask(t.Context(), rest, "/other")
		}
		ask(ctx, rest, "/gives-up-waiting")
		ask(t.Context(), rest, "/pods?watch=true")
		if got, want := server.under.Load(), int32(1+besideFirst+1); got != want {
			t.Errorf("%d requests are under way, want %d: the first, %d others and the watch", got, want, besideFirst)
		}
		stop()
		synctest.Wait()
		if failed.Load() != 1 {
			t.Errorf("%d requests failed, want the one that gave up while it waited", failed.Load())
		}
		server.answer <- struct{}{} // whichever it is: another one of the rest goes in its place, or all do
		close(server.answer)
		group.Wait()
		if p.flying != 0 || p.others != 0 || len(p.held) != 0 {
			t.Errorf("at the end %d of the first and %d others count as under way, and %d wait", p.flying, p.others,
				len(p.held))
		}
		if got := server.came.Load(); got != 1+6+1 {
			t.Errorf("%d requests came, want all but the one that gave up", got)
		}
	})
}

// server answers when it is told to.
type server struct {
	answer      chan struct{}
	came, under atomic.Int32
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.came.Add(1)
	s.under.Add(1)
	defer s.under.Add(-1)
	<-s.answer
	return &http.Response{}, nil
}
