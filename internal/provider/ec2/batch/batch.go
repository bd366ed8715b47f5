// Package batch merges the requests of several callers into one call (E-29, E-54). EC2 counts calls, and a call for a
// hundred machines costs as much as a call for one.
//
//   - [Gatherer] waits a moment for other callers, calls once, and gives each caller its part of the answer.
//   - [Deal] distributes machines among the callers.
//   - [Apart] finds the id that makes EC2 refuse a whole call.
//
// It makes no calls of its own. Safe for concurrent use.
package batch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// ErrUnanswered means that the answer of a call does not mention one of its asks. Its result is unknown.
var ErrUnanswered = errors.New("the answer says nothing about this request")

// ErrTaken means that an ask is accepted and will be sent with others that are on their way. Its caller need not wait.
var ErrTaken = errors.New("the request waits for others that are on their way")

// Window bounds how long callers wait for others, and how many asks a call has.
type Window struct {
	Idle    time.Duration // after the last ask
	Longest time.Duration // after the first ask
	Most    int           // asks of one call
	// Missing has the bounds while more asks are known to come ([Company], or Coming of a [Config]). A bound is
	// needed, since they may have failed on the way.
	Missing struct{ Idle, Longest time.Duration }
}

// Launches is the window for launches. A pod's node comes hardly later, and a thousand nodes take ten calls. With
// larger calls one refusal would fail too many claims. Claims that were created together are waited for as long as
// they keep coming. With a busy API server that may take some seconds.
func Launches() Window {
	w := Window{Idle: 35 * time.Millisecond, Longest: 300 * time.Millisecond, Most: 100}
	w.Missing.Idle, w.Missing.Longest = 2*time.Second, 10*time.Second
	return w
}

// Company says which asks come together. After an ask without one, others may or may not follow.
type Company struct {
	Group string // equal for asks of one company; "" for none
	Size  int    // the number of asks
	Name  string // of this ask, which may come again
}

// companyFor is how long a company is remembered after its last ask.
const companyFor = time.Minute

// gathered is the part of a company that has come, in any round.
type gathered struct {
	names map[string]bool
	last  time.Time
}

// Terminations is the window for ending machines, which is not urgent. While more asks are known to come, callers do
// not wait for the call at all. So it may take some seconds more: whatever drains a thousand nodes drains a few at a
// time.
func Terminations() Window {
	w := Window{Idle: 100 * time.Millisecond, Longest: time.Second, Most: 500}
	w.Missing.Idle, w.Missing.Longest = time.Second, 10*time.Second
	return w
}

// Deletions is the window for deleting messages of a queue: SQS takes ten at a time.
func Deletions() Window {
	return Window{Idle: 20 * time.Millisecond, Longest: 100 * time.Millisecond, Most: 10}
}

// Answer is what one caller gets.
type Answer[R any] struct {
	Value R
	Err   error
}

// Config configures a gatherer.
type Config[A, R any] struct {
	Clock  timer.Clock
	Window Window
	// Compare orders the asks of a call. Asks that compare as 0 are merged, and their callers share the answer.
	Compare func(a, b A) int
	// Call makes the call for asks of one key, in the order of Compare. It returns an answer to each in the same
	// order.
	Call func(ctx context.Context, key string, asks []A) []Answer[R]
	// Told is called before each call, with the number of asks and how long the first of them has waited; may be nil.
	Told func(asks int, waited time.Duration)
	// Coming reports whether more asks than these are known to come. It is called without a lock, when a call is due.
	// While it returns true, the call waits, within Missing of the window. Its callers get [ErrTaken]: the other asks
	// may wait for these very callers. Nil means unknown.
	Coming func(key string, asks []A) bool
}

// Gatherer gathers asks with equal keys.
type Gatherer[A, R any] struct {
	ctx    context.Context
	config Config[A, R]

	mu      sync.Mutex
	waiting map[string]*round[A, R] // by key: the round that still accepts asks
	came    map[string]*gathered    // by group of a company
}

// round is a set of asks that becomes one call.
type round[A, R any] struct {
	key   string
	began time.Time
	asks  []*place[A, R]
	stop  func() // of the callback that makes the call
	// sizes has the companies of its asks, by group. alone is false once an ask without a company has come.
	sizes map[string]int
	alone bool
	last  time.Time // when the last ask came
	joins int       // how many callers have come
	held  bool      // it waits for more asks; no caller waits for it
}

// place is an ask in a round, with all its callers.
type place[A, R any] struct {
	round   *round[A, R]
	ask     A
	callers int
	done    chan struct{} // closed once answer is set
	answer  Answer[R]
	taken   bool // its callers do not wait
}

// New returns a gatherer. Calls are made with ctx: it ends with the process, not with a caller. The calls run on the
// clock's goroutines.
func New[A, R any](ctx context.Context, config Config[A, R]) *Gatherer[A, R] {
	return &Gatherer[A, R]{ctx: ctx, config: config, waiting: map[string]*round[A, R]{}, came: map[string]*gathered{}}
}

// Do asks together with others of the same key and returns this caller's part of the answer. If ctx ends, it returns
// the context's error. Before the call the ask is then taken out, unless it has other callers. Once the call is under
// way it goes on, and its result is unknown to this caller.
func (g *Gatherer[A, R]) Do(ctx context.Context, key string, ask A) (R, error) {
	return g.DoWith(ctx, key, ask, Company{})
}

// DoWith is Do for an ask with a company. The call is made at once when the whole company has come, and waits for the
// missing ones.
func (g *Gatherer[A, R]) DoWith(ctx context.Context, key string, ask A, with Company) (R, error) {
	if err := ctx.Err(); err != nil {
		var none R
		return none, err
	}
	p := g.join(key, ask, with)
	if err := timer.Await(ctx, g.config.Clock, p.done); err != nil {
		g.leave(p)
		var none R
		return none, err
	}
	return p.answer.Value, p.answer.Err
}

// Add asks together with others of the same key, and does not wait. The answer is dropped.
func (g *Gatherer[A, R]) Add(key string, ask A) { g.join(key, ask, Company{}) }

// join adds an ask to a round.
func (g *Gatherer[A, R]) join(key string, ask A, with Company) *place[A, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.config.Clock.Now()
	r := g.waiting[key]
	if r == nil {
		r = &round[A, R]{key: key, began: now, sizes: map[string]int{}, alone: true}
		g.waiting[key] = r
	} else {
		r.stop()
	}
	compare := func(p *place[A, R], ask A) int { return g.config.Compare(p.ask, ask) }
	at, found := slices.BinarySearchFunc(r.asks, ask, compare)
	if !found {
		r.asks = slices.Insert(r.asks, at, &place[A, R]{round: r, ask: ask, done: make(chan struct{})})
	}
	p := r.asks[at]
	p.callers++
	r.last, r.joins = now, r.joins+1
	if r.held {
		p.take()
	}
	g.met(r, with, now)
	wait := g.wait(r, now)
	if len(r.asks) >= g.config.Window.Most {
		wait = 0
		delete(g.waiting, key) // later asks begin another round
	}
	r.stop = g.config.Clock.AfterFunc(wait, func() { g.due(r) })
	return p
}

// met notes the company of an ask that has come.
func (g *Gatherer[A, R]) met(r *round[A, R], with Company, now time.Time) {
	if with.Group == "" {
		r.alone = false
		return
	}
	r.sizes[with.Group] = with.Size
	c := g.came[with.Group]
	if c == nil {
		maps.DeleteFunc(g.came, func(_ string, c *gathered) bool { return now.Sub(c.last) > companyFor })
		c = &gathered{names: map[string]bool{}}
		g.came[with.Group] = c
	}
	c.names[with.Name], c.last = true, now
}

// wait returns how much longer a round waits if no ask comes.
func (g *Gatherer[A, R]) wait(r *round[A, R], now time.Time) time.Duration {
	w := g.config.Window
	idle, longest := w.Idle, w.Longest
	if r.alone {
		idle = 0
	}
	if r.held {
		longest = w.Missing.Longest
	}
	for group, size := range r.sizes {
		if c := g.came[group]; c != nil && len(c.names) < size {
			idle, longest = w.Missing.Idle, w.Missing.Longest
		}
	}
	return min(idle, r.began.Add(longest).Sub(now))
}

// leave removes a caller. An ask without callers is dropped, if its call has not begun.
func (g *Gatherer[A, R]) leave(p *place[A, R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.callers--
	r := p.round
	if p.callers > 0 || p.taken || r.stop == nil {
		return
	}
	r.asks = slices.DeleteFunc(r.asks, func(each *place[A, R]) bool { return each == p })
	if len(r.asks) == 0 {
		r.stop()
		if g.waiting[r.key] == r {
			delete(g.waiting, r.key)
		}
	}
}

// due makes the call of a round, unless the round waits for more asks.
func (g *Gatherer[A, R]) due(r *round[A, R]) {
	if g.config.Coming == nil || !g.hold(r) {
		g.call(r)
	}
}

// hold makes a round wait for more asks, and releases its callers. It returns false when the call must be made.
func (g *Gatherer[A, R]) hold(r *round[A, R]) bool {
	g.mu.Lock()
	asks, joins := r.list(), r.joins
	open := r.stop != nil && g.waiting[r.key] == r
	g.mu.Unlock()
	if !open || !g.config.Coming(r.key, asks) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.stop == nil || r.joins != joins {
		return true // others have come meanwhile, and their callback will call this again
	}
	w, now := g.config.Window.Missing, g.config.Clock.Now()
	wait := min(r.last.Add(w.Idle).Sub(now), r.began.Add(w.Longest).Sub(now))
	if wait <= 0 {
		return false
	}
	r.held = true
	for _, p := range r.asks {
		p.take()
	}
	r.stop = g.config.Clock.AfterFunc(wait, func() { g.due(r) })
	return true
}

// take releases the callers of an ask with ErrTaken.
func (p *place[A, R]) take() {
	if !p.taken {
		p.taken, p.answer.Err = true, ErrTaken
		close(p.done)
	}
}

// list returns the asks of a round.
func (r *round[A, R]) list() []A {
	asks := make([]A, len(r.asks))
	for i, p := range r.asks {
		asks[i] = p.ask
	}
	return asks
}

// call makes the call of a round, without the lock.
func (g *Gatherer[A, R]) call(r *round[A, R]) {
	asks := g.begin(r)
	if len(asks) == 0 {
		return
	}
	if g.config.Told != nil {
		g.config.Told(len(asks), g.config.Clock.Now().Sub(r.began))
	}
	answers := g.config.Call(g.ctx, r.key, asks)
	for i, p := range r.asks {
		if p.taken {
			continue
		}
		if i < len(answers) {
			p.answer = answers[i]
		} else {
			p.answer.Err = ErrUnanswered
		}
		close(p.done)
	}
}

// begin closes a round and returns its asks. A round begins once: a callback that could no longer be stopped finds
// nothing to do.
func (g *Gatherer[A, R]) begin(r *round[A, R]) []A {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.stop == nil {
		return nil
	}
	r.stop = nil
	if g.waiting[r.key] == r {
		delete(g.waiting, r.key)
	}
	return r.list()
}
