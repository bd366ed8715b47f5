package serve

import (
	"context"
	"net/http"
	"time"
)

// LingerFor is how long a webhook still answers after the signal to stop. In this time those who call it learn that it
// goes: the Service loses the pod's address, and every node's proxy follows. It is above one period of the readiness
// probe, and with EndWithin it stays below the grace period of pods, 30 s.
const LingerFor = 5 * time.Second

// Linger returns a context that ends a while after ctx. It is for servers that others call until they have learnt that
// it goes. If nothing is served when ctx ends, nobody can call, and the context ends at once.
func Linger(ctx context.Context, while time.Duration, serves func() bool) (context.Context, context.CancelFunc) {
	lingering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		defer cancel()
		if !serves() {
			return
		}
		timer := time.NewTimer(while)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-lingering.Done():
		}
	})
	return lingering, cancel
}

// Parting answers like next. Once ctx has ended, it also has clients open a new connection for their next request, so
// that they come to a server that stays.
func Parting(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
