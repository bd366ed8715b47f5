package provisioning

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// BenchmarkLook looks at 10,000 nodes that were launched for pods and have them.
func BenchmarkLook(b *testing.B) {
	brake, now := NewBrake(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	nodes := make([]*cluster.Node, 10_000)
	for i := range nodes {
		name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/256, i%256)
		nodes[i] = &cluster.Node{
			Name: name, Claim: fmt.Sprintf("default-%05d", i), Pool: "default", For: []string{"deployment/web"},
			ClaimUID: fmt.Sprintf("0b9a7f3e-%04x-4c1d-9e2f-%012x", i, i*7919), Launched: true, Initialized: true,
			Pods: []*cluster.Pod{{UID: name, Name: name, Shape: &cluster.Shape{}}},
		}
		brake.Bound(&corev1.Pod{Spec: corev1.PodSpec{NodeName: name}})
	}
	snapshot := cluster.New(cluster.Snapshot{Version: 1, Nodes: nodes})
	brake.Look(snapshot, now)
	b.ReportAllocs()
	for b.Loop() {
		brake.Look(snapshot, now)
	}
}
