package kwok

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// rememberFor is how long a machine that was ended is remembered. Its node and its NodeClaim are gone within
	// seconds.
	rememberFor = 10 * time.Minute
	// askedAgainFor is how long nobody but this process can have launched another machine of that name: another one
	// has to become the leader first, and this one after it.
	askedAgainFor = 20 * time.Second
)

// ended remembers the machines that were ended while their nodes were going, by provider ID. A process that comes
// after this one ends them once more. The zero value is ready for use; it is safe for concurrent use.
type ended struct {
	mu       sync.Mutex
	machines map[string]endedMachine
}

type endedMachine struct {
	node types.UID // there may be another machine of that name
	at   time.Time
}

func (e *ended) add(node *corev1.Node, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.machines, func(_ string, m endedMachine) bool { return now.Sub(m.at) > rememberFor })
	if e.machines == nil {
		e.machines = map[string]endedMachine{}
	}
	e.machines[node.Spec.ProviderID] = endedMachine{node.UID, now}
}

// forget makes room for a new machine of that name.
func (e *ended) forget(providerID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.machines, providerID)
}

// justNow reports whether there is no machine of that name, since it was ended a moment ago: nobody has to look.
func (e *ended) justNow(providerID string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, known := e.machines[providerID]
	return known && now.Sub(m.at) < askedAgainFor
}

// is reports whether that node is the one of a machine that was ended.
func (e *ended) is(node *corev1.Node) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, known := e.machines[node.Spec.ProviderID]
	return known && m.node == node.UID
}
