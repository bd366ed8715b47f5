package operator

import (
	"encoding/json"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written remembers the last write of each product, for two questions that the cache cannot answer: is what it shows older
// than the operator's own write; and is a difference only what the API server fills in, so that writing again would change
// nothing. It is safe for concurrent use. What it forgets costs a request at most.
type written struct {
	mu   sync.Mutex
	last map[string]record
}

type record struct {
	before string        // resource version that was written over
	after  client.Object // the answer
	wanted string        // what was asked for
}

func newWritten() *written { return &written{last: map[string]record{}} }

func (w *written) remember(before, after, wanted client.Object) {
	text := spelled(wanted)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[after.GetName()] = record{before: before.GetResourceVersion(), after: after, wanted: text}
}

func (w *written) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, name)
}

// newest returns the product as it is known best: the answer to the last write, when the cache shows what was written over.
func (w *written) newest(cached client.Object) client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, found := w.last[cached.GetName()]; found && last.before == cached.GetResourceVersion() {
		return last.after.DeepCopyObject().(client.Object)
	}
	return cached
}

// same reports whether the product's spec is what the API server made of an equal wish.
func (w *written) same(product, wanted client.Object) bool {
	w.mu.Lock()
	last, found := w.last[product.GetName()]
	w.mu.Unlock()
	return found && last.after.GetUID() == product.GetUID() && product.GetGeneration() > 0 &&
		last.after.GetGeneration() == product.GetGeneration() && last.wanted == spelled(wanted)
}

// spelled is an object as text; API types always marshal.
func spelled(object client.Object) string {
	data, err := json.Marshal(object)
	if err != nil {
		return ""
	}
	return string(data)
}
