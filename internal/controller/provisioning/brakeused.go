package provisioning

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file is about claims that pods have used. They are most claims of a large cluster, and each pod that is made
// may lead to a look. So such a claim costs a look no more than finding that it is one.

// usedNode is a node, by its name, that has had a pod other than daemons.
type usedNode struct {
	missed bool   // the last look without an event has not seen the node
	look   uint64 // the last look that has seen it
}

// isOver reports whether the try of a node's claim is over: a pod other than daemons was on the node, or it was
// launched for itself and has come.
func (b *Brake) isOver(node *cluster.Node) bool {
	_, over := b.over[node.ClaimUID]
	before := over
	for _, ask := range node.For {
		if node.Initialized && plan.ForItself(ask) {
			over = true
			b.helped(cluster.Hold{Pool: node.Pool, Ask: ask})
		}
	}
	if over = over || node.Name != "" && b.used[node.Name] != nil ||
		slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool { return !p.Fixed }); over && !before {
		b.retire(node.ClaimUID)
	}
	return over
}

// retire ends the try of a claim for good: it does not count any more, whatever becomes of it.
func (b *Brake) retire(uid string) {
	delete(b.tries, uid)
	b.over[uid] = struct{}{}
}

// sweep forgets retired claims that are gone, once they are as many as those that still stand.
func (b *Brake) sweep(s *cluster.Snapshot, stand int) {
	if len(b.over) <= 2*stand {
		return
	}
	over := make(map[string]struct{}, stand)
	for _, node := range s.Nodes {
		if _, is := b.over[node.ClaimUID]; is {
			over[node.ClaimUID] = struct{}{}
		}
	}
	b.over = over
}

// RemoveNode forgets a node that is gone.
func (b *Brake) RemoveNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.used, name)
}

// standing forgets used nodes that are not there. Late events of pods bring nodes back that are gone, such as those of
// orphans, which Kubernetes fails after their Node. A later node of that name would count as used. But a pod may also
// be seen before its node, so a name is forgotten only if two looks without an event between them miss it.
func (b *Brake) standing(s *cluster.Snapshot) {
	if len(b.used) == 0 {
		return
	}
	stand := 0
	for _, node := range s.Nodes {
		if u := b.used[node.Name]; u != nil && u.look != b.looks {
			u.look = b.looks
			stand++
		}
	}
	if stand == len(b.used) { // nearly always
		return
	}
	for name, u := range b.used {
		switch {
		case u.look == b.looks:
		case u.missed:
			delete(b.used, name)
		default:
			u.missed = true
		}
	}
}
