package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// Precedence bounds the requests of two clients together, and lets those of one go first. client-go's own limiter gives turns in the order
// of asking: five hundred workers that have asked make everybody else wait for seconds. And an API server that is busy shares what it has
// among all requests that it has got: so few of the others are under way while one that goes first is. Safe for concurrent use.
type Precedence struct {
	bucket flowcontrol.RateLimiter
	pause  time.Duration // from one token to the next

	mu          sync.Mutex
	asking      bool            // somebody asks the bucket; the others wait
	first, rest []chan struct{} // of callers that wait, in the order in which they came; one is closed when its caller is to ask
	row         int             // how many of the first have gone in a row while others waited

	flying, others int             // requests that are under way: of the first, and of the rest
	held           []chan struct{} // of requests of the rest that wait for others to end, in order; one is closed when its request may go
}

// besideFirst is how many requests of the rest are under way beside those that go first.
const besideFirst = 3

// firstInRow is how many of the first go before one of the others has its turn: what goes first holds nothing up for good.
const firstInRow = 9

// NewPrecedence returns a bound of qps requests a second, which is more than 0, after up to burst at once.
func NewPrecedence(qps float32, burst int) *Precedence {
	return &Precedence{
		bucket: flowcontrol.NewTokenBucketRateLimiter(qps, burst), pause: time.Duration(float64(time.Second) / float64(qps)),
	}
}

// First returns the limiter of the client whose requests go first.
func (p *Precedence) First() flowcontrol.RateLimiter { return lane{p, &p.first} }

// Rest returns the limiter of the other client.
func (p *Precedence) Rest() flowcontrol.RateLimiter { return lane{p, &p.rest} }

// pass lets the next caller ask the bucket.
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

// Wait implements flowcontrol.RateLimiter. The error is that of a context that has ended.
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

// turn waits until the caller is the one who asks the bucket.
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
	if i < 0 { // called at that moment: the turn is the next one's
		l.pass()
	}
	return ctx.Err()
}

// Among returns a transport for the requests of the client that goes first, or of the other one. A watch is not counted: it goes on.
func (p *Precedence) Among(first bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &crossing{next, p, first} }
}

// crossing is a transport whose requests make way.
type crossing struct {
	next  http.RoundTripper
	p     *Precedence
	first bool
}

// WrappedRoundTripper is how client-go finds what is below.
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

// begin waits until a request may go. The error is that of a context that has ended.
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
	if i < 0 { // it was called in the same moment, and counts as under way
		p.others--
		p.release()
		return ctx.Err()
	}
	p.held = slices.Delete(p.held, i, i+1)
	return ctx.Err()
}

// end lets go who waits for a request that has ended.
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

// release lets those go that may. p.mu is held.
func (p *Precedence) release() {
	for len(p.held) > 0 && (p.flying == 0 || p.others < besideFirst) {
		p.others++
		close(p.held[0])
		p.held = p.held[1:]
	}
}
