package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// Precedence bounds the requests of two clients together, and lets those of one go first. The limiter of client-go is
// first come, first served: five hundred waiting workers make everybody else wait for seconds. A busy API server also
// divides its capacity among all requests that it has received. So only few of the other requests are under way while
// one of the first client is. Safe for concurrent use.
type Precedence struct {
	bucket flowcontrol.RateLimiter
	pause  time.Duration // from one token to the next

	mu     sync.Mutex
	asking bool // a caller polls the bucket; the others wait
	// waiting callers, in the order of arrival; a channel is closed when its caller may poll
	first, rest []chan struct{}
	row         int // how many of first have gone in a row while rest waited

	flying, others int // requests under way: of the first client, and of the rest
	// waiting requests of the rest, in order; a channel is closed when its request may go
	held []chan struct{}
}

// besideFirst is how many requests of the rest may be under way beside those that go first.
const besideFirst = 3

// firstInRow is how many of the first go before one of the others has its turn, so that these never starve.
const firstInRow = 9

// NewPrecedence returns a limit of qps requests per second, after up to burst at once. qps must be above 0.
func NewPrecedence(qps float32, burst int) *Precedence {
	return &Precedence{
		bucket: flowcontrol.NewTokenBucketRateLimiter(qps, burst),
		pause:  time.Duration(float64(time.Second) / float64(qps)),
	}
}

// First returns the limiter of the client whose requests go first.
func (p *Precedence) First() flowcontrol.RateLimiter { return lane{p, &p.first} }

// Rest returns the limiter of the other client.
func (p *Precedence) Rest() flowcontrol.RateLimiter { return lane{p, &p.rest} }

// pass lets the next caller poll the bucket.
func (p *Precedence) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var next *[]chan struct{}
	switch {
	case len(p.first) > 0 && len(p.rest) == 0:
		next, p.row = &p.first, 0
	case len(p.first) > 0 && p.row < firstInRow:
		next = &p.first
		p.row++
	case len(p.rest) > 0:
		next, p.row = &p.rest, 0
	default:
		p.asking = false
		return
	}
	close((*next)[0])
	*next = (*next)[1:]
}

// lane is the limiter of one client.
type lane struct {
	*Precedence
	waiting *[]chan struct{}
}

// TryAccept implements flowcontrol.RateLimiter.
func (l lane) TryAccept() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.asking && l.bucket.TryAccept()
}

// Accept implements flowcontrol.RateLimiter.
func (l lane) Accept() { _ = l.Wait(context.Background()) }

// Stop implements flowcontrol.RateLimiter.
func (lane) Stop() {}

// QPS implements flowcontrol.RateLimiter.
func (l lane) QPS() float32 { return l.bucket.QPS() }

// Wait implements flowcontrol.RateLimiter. It only fails with the error of an ended context.
func (l lane) Wait(ctx context.Context) error {
	if err := l.turn(ctx); err != nil {
		return err
	}
	defer l.pass()
	for !l.bucket.TryAccept() {
		select {
		case <-time.After(l.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// turn waits until the caller may poll the bucket.
func (l lane) turn(ctx context.Context) error {
	l.mu.Lock()
	if !l.asking {
		l.asking = true
		l.mu.Unlock()
		return nil
	}
	called := make(chan struct{})
	*l.waiting = append(*l.waiting, called)
	l.mu.Unlock()
	select {
	case <-called:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(*l.waiting, called)
	if i >= 0 {
		*l.waiting = slices.Delete(*l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // called at that moment: pass the turn on
		l.pass()
	}
	return ctx.Err()
}

// Among returns a transport for the client that goes first, or for the other one. Watches are not counted, since they
// last.
func (p *Precedence) Among(first bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &crossing{next, p, first} }
}

// crossing is the transport of one client; its requests wait in begin.
type crossing struct {
	next  http.RoundTripper
	p     *Precedence
	first bool
}

// WrappedRoundTripper is how client-go finds the transport below.
func (c *crossing) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper.
func (c *crossing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		return c.next.RoundTrip(r)
	}
	if err := c.p.begin(r.Context(), c.first); err != nil {
		return nil, err
	}
	defer c.p.end(c.first)
	return c.next.RoundTrip(r)
}

// begin waits until a request may go. It only fails with the error of an ended context.
func (p *Precedence) begin(ctx context.Context, first bool) error {
	p.mu.Lock()
	switch {
	case first:
		p.flying++
		p.mu.Unlock()
		return nil
	case p.flying == 0 || p.others < besideFirst:
		p.others++
		p.mu.Unlock()
		return nil
	}
	called := make(chan struct{})
	p.held = append(p.held, called)
	p.mu.Unlock()
	select {
	case <-called:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.held, called)
	if i < 0 { // called at that moment, so it counts as under way
		p.others--
		p.release()
		return ctx.Err()
	}
	p.held = slices.Delete(p.held, i, i+1)
	return ctx.Err()
}

// end counts a request as ended, and releases requests that waited for that.
func (p *Precedence) end(first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first {
		p.flying--
	} else {
		p.others--
	}
	p.release()
}

// release lets go of the held requests that may go now. p.mu is held.
func (p *Precedence) release() {
	for len(p.held) > 0 && (p.flying == 0 || p.others < besideFirst) {
		p.others++
		close(p.held[0])
		p.held = p.held[1:]
	}
}
