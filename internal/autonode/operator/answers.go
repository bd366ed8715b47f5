package operator

import (
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxSuperseded is how many resource versions in a row, overwritten by the operator itself, are remembered for an
// object. A step writes twice.
const maxSuperseded = 4

// answers remembers the API server's answers to the operator's last writes of each wrapper. Until the watch has caught
// up, a step that starts from the cache would write the same again, and be refused. It is safe for concurrent use.
// Forgetting costs at most one request.
type answers struct {
	mu   sync.Mutex
	last map[string]answer
}

type answer struct {
	over   []string // overwritten resource versions, oldest first
	object client.Object
}

func newAnswers() *answers { return &answers{last: map[string]answer{}} }

// remember keeps the answer to a write that overwrote a resource version.
func (a *answers) remember(over string, object client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := answer{over: []string{over}, object: object.DeepCopyObject().(client.Object)}
	if last, found := a.last[object.GetName()]; found && last.object.GetResourceVersion() == over {
		next.over = append(slices.Clone(last.over[max(0, len(last.over)+1-maxSuperseded):]), over)
	}
	a.last[object.GetName()] = next
}

// newest returns the answer to the last write if the cache still shows an overwritten version, otherwise the cached
// object.
func (a *answers) newest(cached client.Object) client.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, found := a.last[cached.GetName()]
	if found && last.object.GetUID() == cached.GetUID() && slices.Contains(last.over, cached.GetResourceVersion()) {
		return last.object.DeepCopyObject().(client.Object)
	}
	return cached
}

func (a *answers) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, name)
}
