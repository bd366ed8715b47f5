package operator

import (
	"maps"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file is about what a process hears of the guest. Events come late. A watch that breaks loses them: the informer
// lists the kind anew, and an object that came and went in between never shows.

// lostAll is the version up to which events are lost while a watch is broken.
const lostAll = math.MaxUint64

// hear brings an event of the guest to the process: each kind in order, and as late as the world is slow.
func (p *process) hear(e apiserver.Event) {
	watches := p.watches[e.Kind()]
	if p.dead || watches == nil {
		return
	}
	w := p.world
	at := w.now.Add(w.lag())
	if last := p.shown[e.Kind()]; at.Before(last) {
		at = last
	}
	p.shown[e.Kind()] = at
	w.after(at.Sub(w.now), func() {
		lost := p.lost[e.Kind()]
		if p.dead || e.Version < lost || e.Version == lost && !e.Listed {
			return
		}
		old, fresh := p.cache.Apply(e)
		if !fresh {
			return
		}
		object := e.Object
		if e.Type == apiserver.Deleted {
			old, object = e.Object, nil
		}
		p.tellWatches(e.Kind(), old, object)
	})
}

func (w *world) lag() time.Duration {
	if w.healed {
		return time.Millisecond
	}
	return w.between(0, w.slow)
}

// breakWatch breaks the watch of a kind, or of all kinds, for a while. In half of the cases a pool comes and goes in
// that time.
func (w *world) breakWatch() {
	kinds := slices.Sorted(maps.Keys(w.process.watches))
	if w.dice.IntN(3) > 0 {
		kinds = kinds[:0]
		for _, kind := range w.process.deps.kinds {
			kinds = append(kinds, serve.KindOf(kind.NewWrapper()), serve.KindOf(kind.NewProduct()))
		}
		kinds = []string{pick(w, kinds...)}
	}
	lasts := w.between(0, pick(w, 50*time.Millisecond, 2*time.Second, 20*time.Second, time.Minute))
	if w.dice.IntN(2) == 0 {
		begin, end := w.between(0, lasts), w.between(0, lasts)
		w.after(min(begin, end), w.putPool)
		w.after(max(begin, end), w.deleteWrapper)
	}
	for _, kind := range kinds {
		w.process.deafen(kind)
		w.after(lasts, func() { w.process.relist(kind) })
	}
}

func (p *process) deafen(kind string) {
	if !p.dead && p.cache.Serves(kind) {
		p.world.tell("the watch of %s breaks", kind)
		p.lost[kind] = lostAll
	}
}

// relist lists a kind anew if its watch is broken, and takes in the differences, like an informer.
func (p *process) relist(kind string) {
	w := p.world
	if p.dead || p.lost[kind] != lostAll || w.undefined[kind] {
		return
	}
	changes := p.cache.Relist(kind, w.dice.IntN(2) == 0)
	p.lost[kind] = w.guest.Version()
	w.tell("%s is listed anew: %d differ", kind, len(changes))
	for _, e := range changes {
		p.hear(e)
	}
}

// undefine deletes the definition of a kind, with all its objects, and makes it again after a while.
func (w *world) undefine() {
	kind := pick(w, w.process.deps.kinds...)
	like := pick(w, kind.NewWrapper(), kind.NewProduct())
	name := serve.KindOf(like)
	if w.closed[name] {
		return
	}
	w.tell("somebody deletes the definition of %s", name)
	w.closed[name] = true
	w.vanish(like, w.now.Add(30*time.Second))
}

// vanish deletes the objects of a kind, and its definition when the last one is gone. Somebody takes finalizers off
// those that stay for too long.
func (w *world) vanish(like client.Object, patience time.Time) {
	var names []string
	w.guest.All(like, func(o client.Object) { names = append(names, o.GetName()) })
	for _, name := range names {
		_ = w.guest.Delete(like, client.ObjectKey{Name: name}, apiserver.DeleteOptions{})
		if w.now.After(patience) {
			change(w, like, name, apiserver.Main, func(o client.Object) { o.SetFinalizers(nil) })
		}
	}
	if len(names) > 0 {
		w.after(time.Second, func() { w.vanish(like, patience) })
		return
	}
	kind := serve.KindOf(like)
	w.tell("the definition of %s is gone", kind)
	w.undefined[kind] = true
	for _, p := range []*process{w.process, w.before} {
		p.deafen(kind)
	}
	w.after(w.between(0, pick(w, time.Second, time.Minute)), func() { w.define(kind) })
}

// define makes a definition again. An informer that failed for a while looks for it only after a while.
func (w *world) define(kind string) {
	w.tell("the definition of %s is back", kind)
	delete(w.undefined, kind)
	delete(w.closed, kind)
	for _, p := range []*process{w.process, w.before} {
		w.after(w.between(0, 30*time.Second), func() { p.relist(kind) })
	}
}

// unserved returns what the guest says of a kind that is not defined, or whose definition is going. It returns nil for
// others.
func (w *world) unserved(verb, kind string) error {
	switch {
	case w.undefined[kind]:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404,
			Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}}
	case w.closed[kind] && verb == "create":
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: kind}, verb)
	}
	return nil
}
