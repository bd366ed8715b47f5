package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// queue is a busy EC2: calls come too late for their deadline.
type queue struct {
	mu   sync.Mutex
	asks []launcher.Ask
}

func (*queue) Claims(context.Context) ([]launchid.Claim, error)                  { return nil, nil }
func (*queue) Intend(context.Context, launchid.Claim, launchid.ID, string) error { return nil }
func (*queue) Mark(context.Context, string, func([]launchid.Claim) []launchid.Claim) ([]launchid.Claim, error) {
	return nil, nil
}
func (*queue) Of(context.Context, []launchid.ID) ([]launchid.Instance, error) { return nil, nil }

func (q *queue) Fleet(_ context.Context, _ string, ask launcher.Ask) (launcher.Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asks = append(q.asks, ask)
	return launcher.Answer{}, fmt.Errorf("sending: %w", provider.ErrExpired)
}

// L-14, E-37: a call for several claims must be sent by their earliest deadline. A call that was not sent has no
// effect: the claims get that error, no machines of it are searched for, and the next launch is a new one.
func TestACallIsForTheEarliestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, start := &queue{}, time.Now()
		l := launcher.New[string](t.Context(), "p", q, timer.Real{}, nil)
		for round := range 2 {
			var group sync.WaitGroup
			for i, left := range []time.Duration{time.Hour, time.Minute, 0} {
				group.Go(func() {
					order := launcher.Order[string]{
						Claim: launchid.Claim{UID: fmt.Sprint(i), Name: fmt.Sprint("n", i)},
					}
					if left > 0 {
						order.NotAfter = start.Add(left)
					}
					if _, err := l.Do(t.Context(), order); !errors.Is(err, provider.ErrExpired) {
						t.Errorf("claim %d: error %v, want that it came too late", i, err)
					}
				})
			}
			group.Wait()
			if len(q.asks) != round+1 {
				t.Fatalf("%d calls after %d launches", len(q.asks), round+1)
			}
			ask := q.asks[round]
			if _, n, _ := ask.Launch.Parse(); n != round || ask.Count != 3 ||
				!ask.NotAfter.Equal(start.Add(time.Minute)) {
				t.Errorf("launch %d is %s for %d claims, to be sent by %s; want round %d, 3 and a minute", round,
					ask.Launch, ask.Count, ask.NotAfter.Sub(start), round)
			}
		}
	})
}
