package world

import (
	"fmt"
	"testing"
)

// filled returns a store of a cluster with 20 pods on each node.
func filled(nodes int) *Store {
	s := newClock().store()
	_ = s.SetCatalog(testClass(), testCatalog(10))
	_ = s.Apply(testPool("default", 1))
	version := 1
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		version += 2
		_ = s.Apply(testNode(name, "n"+name, version, "p"+name))
		_ = s.Apply(testClaim("c"+name, "c"+name, version+1, "default", "p"+name, "Launched", "Registered",
			"Initialized"))
		for j := range 20 {
			version++
			pod := fmt.Sprintf("pod-%05d-%02d", i, j)
			_ = s.Apply(testPod(pod, pod, version, name))
		}
	}
	s.Snapshot()
	return s
}

// The start of B-04: a warm store processes one event and returns a picture.
func BenchmarkSnapshotAfterOnePodEvent(b *testing.B) {
	for _, nodes := range []int{500, 5000, 20000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := filled(nodes)
			for i := 0; b.Loop(); i++ {
				node := fmt.Sprintf("node-%05d", i%nodes)
				// takes the place of the one before
				pod := testPod("extra", fmt.Sprintf("u%d", i), 1_000_000+2*i, node)
				_ = s.Apply(pod)
				s.Snapshot()
			}
		})
	}
}

func BenchmarkSnapshotAfterOnePendingPod(b *testing.B) {
	for _, nodes := range []int{500, 5000, 20000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := filled(nodes)
			for i := 0; b.Loop(); i++ {
				_ = s.Apply(testPod("extra", fmt.Sprintf("u%d", i), 1_000_000+2*i, ""))
				s.Snapshot()
			}
		})
	}
}

func BenchmarkSnapshotUnchanged(b *testing.B) {
	s := filled(5000)
	for b.Loop() {
		s.Snapshot()
	}
}

// The first listing of a cluster of 5,000 nodes and 100,000 pods.
func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		filled(5000)
	}
}

// withVolumes returns a store of a cluster whose nodes each attach so many volumes.
func withVolumes(nodes int) *Store {
	s := filled(nodes)
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		_ = s.Apply(testCSINode(name, "i"+name, 500_000+i, "ebs", 25))
	}
	s.Snapshot()
	return s
}

// B-04: a CSINode that comes anew, as at the start, or that changes. The cost must not grow with the cluster.
func BenchmarkCSINodeEvent(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		for _, kind := range []string{"same", "other"} {
			b.Run(fmt.Sprint(kind, "-", nodes), func(b *testing.B) {
				s := withVolumes(nodes)
				for i := 0; b.Loop(); i++ {
					limit := int32(25)
					if kind == "other" {
						limit -= int32(i / nodes % 2)
					}
					name := fmt.Sprintf("node-%05d", i%nodes)
					_ = s.Apply(testCSINode(name, "i"+name, 1_000_000+i, "ebs", limit))
				}
			})
		}
	}
}

// B-04: a node with a CSINode is joined with its claim, or parted from it.
func BenchmarkNodeJoinedBesideCSINodes(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := withVolumes(nodes)
			for i := 0; b.Loop(); i++ {
				name := fmt.Sprintf("node-%05d", i/2%nodes)
				provider := "p" + name
				if i%2 == 0 {
					provider = "elsewhere"
				}
				_ = s.Apply(testNode(name, "n"+name, 1_000_000+i, provider))
			}
		})
	}
}
