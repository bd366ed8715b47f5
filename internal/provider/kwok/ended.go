package kwok

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// rememberFor is how long an ended machine is remembered. Its node and its NodeClaim are gone within seconds.
	rememberFor = 10 * time.Minute
	// askedAgainFor is how long only this process can have launched another machine of that name: otherwise another
	// process must have become leader in between, and this one again after it.
	askedAgainFor = 20 * time.Second
)

// ended remembers machines that were ended while their nodes were being deleted, by provider ID. After a restart they
// are ended once more. The zero value is ready for use; it is safe for concurrent use.
type ended struct {
	mu       sync.Mutex
	machines map[string]endedMachine
}

type endedMachine struct {
	node types.UID // there may be a newer machine of that name
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

// forget forgets a machine, because a new one may have its name.
func (e *ended) forget(providerID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.machines, providerID)
}

// justNow reports whether the machine was ended a moment ago, so that it is gone for sure without a look-up.
func (e *ended) justNow(providerID string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, known := e.machines[providerID]
	return known && now.Sub(m.at) < askedAgainFor
}

// is reports whether the node belongs to a machine that was ended.
func (e *ended) is(node *corev1.Node) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, known := e.machines[node.Spec.ProviderID]
	return known && m.node == node.UID
}
