package pace

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// E-60: many concurrent callers, some of which give up, on the production clock: each gets a grant or an error, no
// more go than the rate allows, and nothing is left behind.
func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, patient = 300, 200
		l := New(timer.Real{})
		began := time.Now()
		var mu sync.Mutex
		granted, refused := 0, 0
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if i >= patient {
					ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				}
				defer cancel()
				_, err := l.Wait(ctx, For("CreateTags", 0))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					granted++
				case errors.Is(err, provider.ErrThrottled) && errors.Is(err, context.DeadlineExceeded):
					refused++
				default:
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		if granted < patient || granted+refused != callers {
			t.Errorf("%d granted and %d refused of %d, of whom %d are patient", granted, refused, callers, patient)
		}
		if most := 50 + took.Seconds()*5 + 1e-3; float64(granted) > most {
			t.Errorf("%d granted in %s, at most %g", granted, took, most)
		}
		if _, waiting := l.Rate(Changes); waiting != 0 || l.stop != nil {
			t.Errorf("%d wait, callback left: %t", waiting, l.stop != nil)
		}
	})
}
