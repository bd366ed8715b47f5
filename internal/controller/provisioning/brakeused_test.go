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
