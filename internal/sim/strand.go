package sim

import (
	"context"
	"fmt"
	"iter"
)

// strand is a coroutine that runs one reconcile after another. It is reused because its stack has already grown.
type strand struct {
	next    func() (*call, bool) // runs to the next call; nil says that the reconcile has ended
	stop    func()
	yield   func(*call) bool
	process *process
}

// idleStrand returns a strand that is free for a reconcile.
func (w *World) idleStrand() *strand {
	if last := len(w.strands) - 1; last >= 0 {
		s := w.strands[last]
		w.strands = w.strands[:last]
		return s
	}
	s := &strand{}
	s.next, s.stop = iter.Pull(func(yield func(*call) bool) {
		s.yield = yield
		for s.process.run() && yield(nil) {
		}
	})
	return s
}

// stopStrands ends the idle strands.
func (w *World) stopStrands() {
	for _, s := range w.strands {
		s.stop()
	}
	w.strands = nil
}

// run runs the reconcile. It returns false if the process died on the way.
func (p *process) run() (ended bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(fmt.Sprintf("controller %s, request %s: %v", p.line.Name, p.request, r))
			}
		}
	}()
	if p.body != nil {
		p.body()
		return !p.dead
	}
	p.result, p.err = p.line.Reconciler.Reconcile(context.Background(), p.request)
	return !p.dead
}
