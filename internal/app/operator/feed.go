package operator

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// readWithin bounds one request to the management cluster.
	readWithin = 10 * time.Second
	// rereadAfter is how long to watch before reading again. A watch survives when the right to read is taken away:
	// this time and a fifth bounds how long that goes unnoticed (G15).
	rereadAfter = 90 * time.Second
	// retryAfter is the pause after a failure. It is short, so that a policy applies soon after it becomes readable.
	retryAfter = 2 * time.Second
	// feedPause bounds the rate of requests to a management cluster that ends watches at once.
	feedPause = 200 * time.Millisecond
)

// spread is the fraction by which a time between two requests varies. Otherwise, after the restart of an API server,
// the feeds of all hosted clusters on it would ask at the same moment for ever.
const spread = 0.2

// spreadOut returns a random time around d.
func spreadOut(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - spread + 2*spread*rand.Float64()))
}

// feed reads something of the management cluster and watches it, over and over. It is no informer. An informer would
// not tell that its state is old because reads are refused, and the controllers would wait for its first list.
type feed struct {
	what string // for the log
	// read asks, takes in the answer or the error, and returns the version to watch from.
	read func(ctx context.Context) (version string, err error)
	// watch streams the changes since a version, for some seconds.
	watch func(ctx context.Context, version string, seconds int64) (watch.Interface, error)
	// follow takes in an event of a watch, and reports whether more events are worth waiting for.
	follow func(ctx context.Context, event watch.Event) bool
	log    logr.Logger
}

// run goes on until ctx ends.
func (f feed) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := time.NewTimer(spreadOut(f.round(ctx)))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

// round reads once, watches for a while, and returns how long to pause before the next round.
func (f feed) round(ctx context.Context) time.Duration {
	version, err := f.read(ctx)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		return retryAfter
	}
	reread := spreadOut(rereadAfter)
	watching, cancel := context.WithTimeout(ctx, reread+readWithin)
	defer cancel()
	events, err := f.watch(watching, version, int64(reread/time.Second))
	if err != nil {
		f.log.V(1).Info(f.what+" cannot be watched, it is read instead", "reason", err.Error())
		return retryAfter
	}
	defer events.Stop()
	for {
		select {
		case <-watching.Done():
			return feedPause
		case event, open := <-events.ResultChan():
			if !open || !f.follow(ctx, event) {
				return feedPause
			}
		}
	}
}
