package provisioning

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// P-35: a node that had a pod counts as used as long as it is there. The pod may be seen before its node is; a node
// that does not come is forgotten.
func TestUsedNodesAreRememberedWhileTheyStand(t *testing.T) {
	t.Parallel()
	b, now := NewBrake(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	empty := cluster.New(cluster.Snapshot{Version: 1})
	stands := cluster.New(cluster.Snapshot{Version: 2, Nodes: []*cluster.Node{{Name: "n"}}})
	b.Bound(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}})
	for i, look := range []struct {
		s     *cluster.Snapshot
		known int
	}{{empty, 1}, {stands, 1}, {stands, 1}, {empty, 0}} {
		b.Look(look.s, now)
		if len(b.used) != look.known {
			t.Errorf("after look %d: %d used nodes are remembered, want %d", i+1, len(b.used), look.known)
		}
	}
	b.Bound(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "gone"}})
	b.Look(stands, now)
	if b.Look(stands, now); len(b.used) != 0 {
		t.Errorf("%d used nodes are remembered, want none: the node did not come", len(b.used))
	}
}

// P-35: the try of a claim ends for good when a pod uses its node: it costs later looks nothing, and does not count as
// in vain when its node is empty, ends and goes. A claim that is gone is forgotten.
func TestAUsedTryIsDroppedAndNeverCountedAgain(t *testing.T) {
	t.Parallel()
	b, now := NewBrake(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waits := &cluster.Pod{UID: "w", Namespace: "default", Name: "w", Shape: &cluster.Shape{Namespace: "default"}}
	on := &cluster.Pod{UID: "p", Namespace: "default", Name: "p", Shape: waits.Shape}
	node := func(change func(*cluster.Node)) *cluster.Node {
		n := &cluster.Node{Name: "n", Claim: "c", ClaimUID: "uid-c", Pool: "default", For: []string{waits.Shape.Ask()},
			Launched: true, Initialized: true}
		change(n)
		return n
	}
	for i, look := range []struct {
		what        string
		nodes       []*cluster.Node
		tries, over int
	}{
		{"its node has no pod yet", []*cluster.Node{node(func(*cluster.Node) {})}, 1, 0},
		{"a pod is on it", []*cluster.Node{node(func(n *cluster.Node) { n.Pods = []*cluster.Pod{on} })}, 0, 1},
		{"the pod has gone", []*cluster.Node{node(func(*cluster.Node) {})}, 0, 1},
		{"it ends", []*cluster.Node{node(func(n *cluster.Node) { n.Deleting = true })}, 0, 1},
		{"it is gone", nil, 0, 0},
	} {
		b.Look(cluster.New(cluster.Snapshot{Version: uint64(i), Nodes: look.nodes,
			Pools: []*cluster.Pool{{Name: "default"}}, Pending: []*cluster.Pod{waits}}), now)
		if len(b.tries) != look.tries || len(b.over) != look.over || len(b.rounds) != 0 {
			t.Errorf("%s: %d tries, %d over and %d rounds in vain, want %d, %d and none", look.what, len(b.tries),
				len(b.over), len(b.rounds), look.tries, look.over)
		}
	}
}
