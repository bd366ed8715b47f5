package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"
)

// feeds read again after some ninety seconds, each at a moment of its own. Two of them pause equally long only
// by chance.
func TestA47_FeedsDoNotAskAtTheSameMoment(t *testing.T) {
	t.Parallel()
	const least, most = 72, 108
	watched, paused := map[int64]int{}, map[time.Duration]int{}
	f := feed{
		what: "nothing", log: logr.Discard(), read: func(context.Context) (string, error) { return "1", nil },
		watch: func(_ context.Context, _ string, seconds int64) (watch.Interface, error) {
			watched[seconds]++
			return nil, errors.New("not served")
		},
	}
	for range 500 {
		paused[spreadOut(f.round(t.Context()))]++
	}
	for seconds := range watched {
		if seconds < least || seconds > most {
			t.Errorf("it watches for %d s, want %d to %d", seconds, least, most)
		}
	}
	for pause := range paused {
		if pause < retryAfter*8/10 || pause > retryAfter*12/10 {
			t.Errorf("it asks again after %s, want %s and a fifth more or less", pause, retryAfter)
		}
	}
	if len(watched) < (most-least)/2 || len(paused) < 400 {
		t.Errorf("of 500 rounds %d watch for a time of their own, and %d pause so", len(watched), len(paused))
	}
}
