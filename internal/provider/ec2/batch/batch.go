// Package batch makes one call of what several callers ask for (E-29, E-54). EC2 counts calls, and a call for a
// hundred machines costs as much as one for a single one.
//
//   - [Gatherer] waits a moment for company, calls once, and gives each caller its part of the answer.
//   - [Deal] shares out machines among those who asked.
//   - [Apart] finds the id for which EC2 refuses a whole call.
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

// ErrUnanswered means that a call said nothing about one of its asks. Whether it was done is not known.
var ErrUnanswered = errors.New("the answer says nothing about this request")

// ErrTaken means that an ask is taken and will be made, with others that are on their way. Its caller need not wait.
var ErrTaken = errors.New("the request waits for others that are on their way")

// Window bounds how long callers wait for company, and how many they become.
type Window struct {
	Idle    time.Duration // after the last one came
	Longest time.Duration // after the first one came
	Most    int           // of one call
	// Missing bounds the same while it is known that others are still to come ([Company], or Coming of a [Config]).
	// They may have failed on the way.
	Missing struct{ Idle, Longest time.Duration }
}

// Launches is the window for machines. A pod's node comes a blink later, and a thousand nodes are ten calls; more
// for each call would let one refused call fail them all. Claims that were made together are waited for as long as
// they keep coming, which may take some seconds with an API server that is busy.
func Launches() Window {
	w := Window{Idle: 35 * time.Millisecond, Longest: 300 * time.Millisecond, Most: 100}
	w.Missing.Idle, w.Missing.Longest = 2*time.Second, 10*time.Second
	return w
}

// Company says which asks come together. Who has none may be followed by others, or not.
type Company struct {
	Group string // equal for asks of one company; "" for none
	Size  int    // how many they are
	Name  string // of this ask, which may ask again
}

// companyFor is how long after its last ask a company is remembered.
const companyFor = time.Minute

// gathered is how much of a company has come, in whichever round.
type gathered struct {
	names map[string]bool
	last  time.Time
}

// Terminations is the window for ending machines, where nobody waits for a moment. While others are on their way
// nobody waits for the call either, so that it may take some seconds more: what drains a thousand nodes does so a few
// at a time.
func Terminations() Window {
	w := Window{Idle: 100 * time.Millisecond, Longest: time.Second, Most: 500}
	w.Missing.Idle, w.Missing.Longest = time.Second, 10*time.Second
	return w
}

// Deletions is the window for messages of a queue that are done with: SQS takes ten at a time.
func Deletions() Window {
	return Window{Idle: 20 * time.Millisecond, Longest: 100 * time.Millisecond, Most: 10}
}

// Answer is what one caller gets.
type Answer[R any] struct {
	Value R
	Err   error
}

// Config is what a gatherer works with.
type Config[A, R any] struct {
	Clock  timer.Clock
	Window Window
	// Compare orders the asks of a call. Asks that compare as 0 are one: their callers share its answer.
	Compare func(a, b A) int
	// Call does what is asked, all of one key, in the order of Compare. It returns the answer to each in the same
	// order.
	Call func(ctx context.Context, key string, asks []A) []Answer[R]
	// Told is told of each call before it is made: how many asks, and how long the first of them has waited; nil for
	// nobody.
	Told func(asks int, waited time.Duration)
	// Coming reports whether others than these asks are known to be on their way. It is called without a lock, when a
	// call is due. As long as they are, the call waits within Missing of the window, and its callers get [ErrTaken]:
	// they may be the very ones on whom the others wait. Nil: nobody knows.
	Coming func(key string, asks []A) bool
}

// Gatherer gathers asks with equal keys.
type Gatherer[A, R any] struct {
	ctx    context.Context
	config Config[A, R]

	mu      sync.Mutex
	waiting map[string]*round[A, R] // by key: the round that still takes asks
	came    map[string]*gathered    // by group of a company
}

// round is what becomes one call.
type round[A, R any] struct {
	key   string
	began time.Time
	asks  []*place[A, R]
	stop  func() // of the callback that makes the call
	// sizes are the companies of its asks, by group; alone is false once one came of which no company is known.
	sizes map[string]int
	alone bool
	last  time.Time // when the last ask came
	joins int       // how many callers have come
	held  bool      // it waits for others that are on their way; no caller waits for it
}

// place is an ask in a round, with all callers who ask for it.
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

// Do asks together with others of the same key and returns this caller's part of the answer. A caller whose context
// ends gets the context's error. Before the call its ask is taken out, unless somebody else asks for it too; once
// the call is under way it goes on, and whether the ask is done is not known.
func (g *Gatherer[A, R]) Do(ctx context.Context, key string, ask A) (R, error) {
	return g.DoWith(ctx, key, ask, Company{})
}

// DoWith is Do of an ask that comes in company: the call is made at once when all of it have come, and waits for those
// that have not.
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

// Add asks together with others of the same key, and does not wait: nobody gets this ask's part of the answer.
func (g *Gatherer[A, R]) Add(key string, ask A) { g.join(key, ask, Company{}) }

// join takes an ask in.
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
		delete(g.waiting, key) // who comes now begins another round
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

// wait is how much longer a round waits, if nobody comes.
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

// leave takes a caller out. An ask that nobody wants any more is not made, if its call has not begun.
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

// due makes the call of a round, unless it waits for others that are on their way.
func (g *Gatherer[A, R]) due(r *round[A, R]) {
	if g.config.Coming == nil || !g.hold(r) {
		g.call(r)
	}
}

// hold lets a round wait for others that are on their way, and its callers go. It returns false when the call is to be
// made.
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
		return true // others have come meanwhile, and a callback of theirs will call this again
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

// take lets the callers of an ask go.
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

// begin closes a round and returns what it asks for. A round begins once: a callback that could not be stopped any
// more finds nothing to do.
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
