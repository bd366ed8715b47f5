package operator

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trusted remembers with which node class each pool may launch nodes while nothing new is known about that class: the
// one that was in line with a policy when the pool last used it. The pool as it is stored is no proof of that, since
// the guest's admin can write it by impersonation. It is safe for concurrent use.
type trusted struct {
	mu      sync.Mutex
	classes map[string]string // "" for a pool that may use none
}

// begin stores the class of a pool that is not known yet.
func (t *trusted) begin(pool, class string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.classes == nil {
		t.classes = map[string]string{}
	}
	if _, known := t.classes[pool]; !known {
		t.classes[pool] = class
	}
}

func (t *trusted) set(pool, class string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.classes[pool] = class
}

func (t *trusted) has(pool, class string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return class != "" && t.classes[pool] == class
}

func (t *trusted) forget(pool string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.classes, pool)
}

// meet decides at the first look at a pool whether its class is trusted. A new process knows no class yet, and does
// not close all pools for that: it trusts an open pool of a wrapper that is older than the process. A younger wrapper
// may adopt a pool, but its class must be in line first.
func (c *Controller) meet(s scene) {
	if c.config.Kind.class == nil {
		return
	}
	class := ""
	if s.product != nil && !isClosed(s.product) && !s.wrapper.GetCreationTimestamp().After(c.config.Board.start()) {
		class, _ = c.config.Kind.class(s.product)
	}
	c.trusted.begin(s.name, class)
}

// standings remembers the state in which this process last wrote each product or found it in line, or else the first
// state that it saw. It is safe for concurrent use.
type standings struct {
	mu   sync.Mutex
	last map[string]standing
}

// astray reports whether somebody else has changed a product that the step could not write, because what it is made
// from is missing. Nobody knows what such a product holds. A second process of the operator, which runs while one
// replaces the other, counts as somebody else.
func (l *standings) astray(name string, out outcome) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]standing{}
	}
	now := standing{}
	if out.product != nil {
		now = standingOf(out.product)
	}
	last, found := l.last[name]
	unmade := out.made.Product == nil
	if !found || !now.found || !unmade && out.refused == nil {
		l.last[name] = now
		return false
	}
	return unmade && last != now
}

func (l *standings) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, name)
}

func standingOf(product client.Object) standing {
	return standing{true, product.GetUID(), product.GetGeneration()}
}
