package operator

import (
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written remembers the last write of each product, for three questions that the cache cannot answer. Is the cached
// object older than the operator's own write? Is a difference only what the API server made of the last write, so that
// writing again would change nothing? Is the product the operator's, though somebody removed its label and owner? It
// is safe for concurrent use. Forgetting costs at most one request.
type written struct {
	mu   sync.Mutex
	last map[string]record
	held map[string]types.UID // UIDs of products of wrappers, by name
}

type record struct {
	before string        // the overwritten resource version; empty if created
	after  client.Object // the answer
	wanted string        // what was written, as JSON
	at     time.Time
}

func newWritten() *written {
	return &written{last: map[string]record{}, held: map[string]types.UID{}}
}

// remember keeps the answer to a write; before is nil for a create.
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

// hold remembers that a product belongs to a wrapper, even if it needed no write.
func (w *written) hold(product client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[product.GetName()] = product.GetUID()
}

// holds reports whether the product has belonged to a wrapper since the operator's start, whatever its labels and
// owners, which anybody may change.
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

// newest returns the newest known state of a product: the answer to the last write if the cache shows the overwritten
// version, otherwise the cached object.
func (w *written) newest(cached client.Object) client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, found := w.last[cached.GetName()]; found && last.before == cached.GetResourceVersion() {
		return last.after.DeepCopyObject().(client.Object)
	}
	return cached
}

// same reports whether the product's spec is what the API server made of the same write, less than refusedAgainAfter
// ago. Whatever alters writes may disappear at any time, and no event tells of that.
func (w *written) same(product, wanted client.Object, now time.Time) bool {
	w.mu.Lock()
	last, found := w.last[product.GetName()]
	w.mu.Unlock()
	return found && last.after.GetUID() == product.GetUID() && product.GetGeneration() > 0 &&
		last.after.GetGeneration() == product.GetGeneration() && now.Sub(last.at) < refusedAgainAfter &&
		last.wanted == spelled(wanted)
}

// spelled returns a value of an API type as JSON. Such values always marshal.
func spelled(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}
