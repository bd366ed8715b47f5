package world

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
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

// crowd returns a store of a cluster with 20 pods on each node. Each app has 100 pods, on different nodes, and its own
// PodDisruptionBudget. 20 apps share a namespace.
func crowd(nodes int) *Store {
	s := newClock().store()
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		_ = s.Apply(testNode(name, "n"+name, 1, "p"+name))
	}
	apps := nodes / 5
	for i := range nodes * 20 {
		name := fmt.Sprintf("pod-%06d", i)
		pod := testPod(name, name, 1, fmt.Sprintf("node-%05d", i%nodes))
		pod.Namespace = fmt.Sprint("space-", i%apps/20)
		pod.Labels = map[string]string{"app": fmt.Sprint("app-", i%apps)}
		_ = s.Apply(pod)
	}
	for app := range apps {
		_ = s.Apply(crowdBudget(app, 1, 1))
	}
	s.Snapshot()
	return s
}

func crowdBudget(app, version int, allowed int32) *policyv1.PodDisruptionBudget {
	name := fmt.Sprint("app-", app)
	budget := testPDB(name, version, allowed, name)
	budget.Namespace = fmt.Sprint("space-", app/20)
	return budget
}

// B-04: a PodDisruptionBudget lets no pod go any more, or one again. The cost must not grow with the cluster.
func BenchmarkPDBFlip(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := crowd(nodes)
			for i := 0; b.Loop(); i++ {
				_ = s.Apply(crowdBudget(i/2%(nodes/5), 2+i, int32(i%2)))
			}
		})
	}
}

// B-04: one pod comes while a pool keeps headroom.
func BenchmarkSnapshotWithHeadroom(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := filled(nodes)
			pool := testPool("default", 1_000_000)
			pool.Annotations = map[string]string{karpenterv1.HeadroomAnnotationKey: "1%"}
			_ = s.Apply(pool)
			for i := 0; b.Loop(); i++ {
				node := fmt.Sprintf("node-%05d", i%nodes)
				_ = s.Apply(testPod("extra", fmt.Sprintf("u%d", i), 1_000_001+2*i, node))
				s.Snapshot()
			}
		})
	}
}

// B-04: while the pods of a DaemonSet differ, a node changes its pool, a pod is made anew, or the set's status
// changes.
func BenchmarkSnapshotWithUnevenDaemons(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		for _, kind := range []string{"node", "pod", "set"} {
			b.Run(fmt.Sprint(kind, "-", nodes), func(b *testing.B) {
				s := newClock().store()
				_ = s.Apply(agentSet(1, "1"))
				for i := range nodes {
					name := fmt.Sprintf("node-%05d", i)
					_ = s.Apply(nodeOf(name, fmt.Sprint("pool-", i%3), fmt.Sprint("type-", i%20), 1))
					_ = s.Apply(agentOn(name, "1", fmt.Sprint(1+i%4), int64(1+i)))
				}
				s.Snapshot()
				for i := 0; b.Loop(); i++ {
					name := fmt.Sprintf("node-%05d", i%nodes)
					switch kind {
					case "node":
						_ = s.Apply(nodeOf(name, fmt.Sprint("pool-", i%4), "type-0", 1_000_000+i))
					case "set":
						_ = s.Apply(agentSet(2+i, "1"))
					default:
						pod := agentOn(name, "1", fmt.Sprint(1+i%5), int64(1_000_000+i))
						pod.UID = types.UID(fmt.Sprint("uid-", i))
						_ = s.Apply(pod)
					}
					s.Snapshot()
				}
			})
		}
	}
}

// B-04: one of the CSIStorageCapacities changes, of which each node has one, as it has a free volume.
func BenchmarkSnapshotAfterOneCapacity(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := newClock().store()
			_ = s.Apply(testDriver("csi.fast", 1, true, false))
			_ = s.Apply(testClassOfVolumes("fast", "s1", 1, "a", "csi.fast"))
			for i := range nodes {
				name := fmt.Sprintf("node-%05d", i)
				_ = s.Apply(testCapacity(name, "fast", 1, "10Gi"))
				volume := testVolume(name, "v"+name, 1, "a", "csi.fast")
				volume.Spec.StorageClassName, volume.Status.Phase = "fast", corev1.VolumeAvailable
				_ = s.Apply(volume)
			}
			s.Snapshot()
			for i := 0; b.Loop(); i++ {
				_ = s.Apply(testCapacity(fmt.Sprintf("node-%05d", i%nodes), "fast", 2+i, fmt.Sprint(1+i%9, "Gi")))
				s.Snapshot()
			}
		})
	}
}
