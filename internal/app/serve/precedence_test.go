package serve

import (
	"context"
	"sync"
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
