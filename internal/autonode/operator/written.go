package operator

import (
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written remembers the last write of each product, for three questions that the cache cannot answer: is what it shows
// older than the operator's own write; is a difference only what the API server fills in, so that writing again would
// change nothing; and is it the operator's own, though somebody took the signs of that off. It is safe for concurrent
// use. What it forgets costs a request at most.
type written struct {
	mu   sync.Mutex
	last map[string]record
	held map[string]types.UID // products that a wrapper had, by name
}

type record struct {
	before string        // resource version that was written over; empty: it was created
	after  client.Object // the answer
	wanted string        // what was asked for
	at     time.Time
}

func newWritten() *written {
	return &written{last: map[string]record{}, held: map[string]types.UID{}}
}

// remember takes the answer to a write; before is nil for a create.
func (w *written) remember(before, after, wanted client.Object, now time.Time) {
	last := record{after: after.DeepCopyObject().(client.Object), wanted: spelled(wanted), at: now}
	if before != nil {
		last.before = before.GetResourceVersion()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[after.GetName()] = last
	w.held[after.GetName()] = after.GetUID()
}

// hold says that a product belongs to a wrapper, though it did not have to be written.
func (w *written) hold(product client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[product.GetName()] = product.GetUID()
}

// holds reports whether the product is one that a wrapper had since the operator's start, whatever became of its
// labels and owners, which everybody may change.
func (w *written) holds(product client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := w.held[product.GetName()]
	return uid != "" && uid == product.GetUID()
}

func (w *written) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, name)
	delete(w.held, name)
}

// newest returns the product as it is known best: the answer to the last write, when the cache shows what was written
// over.
func (w *written) newest(cached client.Object) client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, found := w.last[cached.GetName()]; found && last.before == cached.GetResourceVersion() {
		return last.after.DeepCopyObject().(client.Object)
	}
	return cached
}

// same reports whether the product's spec is what the API server made of an equal wish a short while ago. What alters
// writes may go at any time, and nothing tells of that.
func (w *written) same(product, wanted client.Object, now time.Time) bool {
	w.mu.Lock()
	last, found := w.last[product.GetName()]
	w.mu.Unlock()
	return found && last.after.GetUID() == product.GetUID() && product.GetGeneration() > 0 &&
		last.after.GetGeneration() == product.GetGeneration() && now.Sub(last.at) < refusedAgainAfter &&
		last.wanted == spelled(wanted)
}

// spelled is a value of an API type as JSON; those always marshal.
func spelled(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}
