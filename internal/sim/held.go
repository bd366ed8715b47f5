package sim

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// The largest machine of the simulated cloud, m.8, less its reserved resources.
const (
	largestCPU    = 7900
	largestMemory = 32<<30 - 10<<20
	largestPods   = 30
)

// heldByRoom reports whether a drifted node may stay because its replacement needs more nodes than the limits allow:
// each new node has daemons for which the old node may have no room. Below a hard limit, replacements come while the
// node is still there (L-30); below a soft one, the node makes room for one of them (L-31).
func (w *World) heldByRoom(claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	if pool.Spec.Replicas != nil || nodeLimit(pool) == math.MaxInt64 && w.clusterRoom() == math.MaxInt64 {
		return false
	}
	room := min(nodeLimit(pool), math.MaxInt32) - w.count(pool.Name) // bounded, so that adding cannot overflow
	if len(pool.Spec.HardLimits) == 0 {
		room++
	}
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		other := o.(*karpenterv1.NodePool)
		if other.Name != pool.Name && !isOther(other) && other.Spec.Replicas == nil {
			room += min(largestPods, max(0, nodeLimit(other)-w.count(other.Name))) // at most one machine for each pod
		}
	})
	return w.machinesFor(claim.Status.NodeName) > min(room, w.clusterRoom())
}

// disksOfNew returns how many disks a new machine attaches.
func (w *World) disksOfNew() int {
	if !w.script.attaches() {
		return unlimitedDisks
	}
	return w.cluster.most
}

// machinesFor returns how many of the largest machines the pods of a node need, with the daemons of each machine.
func (w *World) machinesFor(node string) int64 {
	daemons := map[string]*corev1.Pod{}
	var pods []*corev1.Pod
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		switch pod := o.(*corev1.Pod); {
		case isDaemon(pod):
			daemons[pod.OwnerReferences[0].Name] = pod
		case pod.Spec.NodeName == node && !translate.Finished(pod):
			pods = append(pods, pod)
		}
	})
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		cpuA, _ := asks(a)
		cpuB, _ := asks(b)
		return cmp.Compare(cpuB, cpuA)
	})
	var machines []*room
	for _, pod := range pods {
		cpu, mem := asks(pod)
		at := slices.IndexFunc(machines, func(r *room) bool {
			return r.cpu >= cpu && r.mem >= mem && r.pods > 0 && r.attaches(pod)
		})
		if at < 0 {
			fresh := &room{cpu: largestCPU, mem: largestMemory, pods: largestPods, most: w.disksOfNew()}
			for _, daemon := range daemons {
				fresh.take(daemon)
			}
			at, machines = len(machines), append(machines, fresh)
		}
		machines[at].take(pod)
	}
	return int64(len(machines))
}
