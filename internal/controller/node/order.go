package node

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file orders the pods of a tier for eviction. Those that are not ready go first: a PDB that refuses ready pods
// may let them go, and they take nothing from it. Of the others, those that are hardest to place go first (B-11). An
// evicted pod comes back at once, and kube-scheduler takes pods of equal priority in the order of arrival. If small
// ones came first, they would spread over all nodes and leave no room for large ones. A new node would be launched for
// those.

const (
	// Pods that request a quarter of their node or more leave at once, as do those that keep apart. Pods from a
	// sixteenth on leave one step later, all others after two. Many nodes drain at the same time, and one node's small
	// pods must not come before another's large ones.
	largeShare, smallShare = 4, 16
	step                   = 300 * time.Millisecond
)

// begun remembers for a minute when the drains of nodes began. It is safe for concurrent use.
type begun struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// since returns when the drain of a node began: now, at the first call for it.
func (b *begun) since(node types.UID, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, known := b.at[node]; known {
		return at
	}
	if b.at == nil {
		b.at = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(b.at, func(_ types.UID, at time.Time) bool { return now.Sub(at) > time.Minute })
	b.at[node] = now
	return now
}

// inSteps postpones pods whose turn comes when larger ones of this and other nodes are gone.
func (p *drainPlan) inSteps(node *corev1.Node, drains *begun, now time.Time) {
	began := drains.since(node.UID, now)
	of := translate.Amounts(node.Status.Allocatable)
	room := weightOf(of[resources.NameCPU], of[resources.NameMemory])
	p.evict = slices.DeleteFunc(p.evict, func(pod *corev1.Pod) bool {
		turn := began.Add(leaverOf(pod).waits(room))
		if !now.Before(turn) {
			return false
		}
		if p.next.IsZero() || turn.Before(p.next) {
			p.next = turn
		}
		return true
	})
}

// waits returns how long a pod on a node of this size waits for larger ones.
func (l leaver) waits(room int64) time.Duration {
	switch {
	case l.rank == 0 || l.weight*largeShare >= room:
		return 0
	case l.weight*smallShare >= room:
		return step
	}
	return 2 * step
}

// leaver is a pod with what decides its place in the order.
type leaver struct {
	pod    *corev1.Pod
	ready  int   // 1 for pods that are ready, 0 for others
	rank   int   // 0 for pods with required anti-affinity or spread over nodes, 1 for others
	weight int64 // its requests, in thousandths of a core
}

func leaverOf(pod *corev1.Pod) leaver {
	requests := translate.Requests(resources.NewSpace(), pod)
	l := leaver{pod: pod, rank: 1, weight: weightOf(requests.At(resources.CPU), requests.At(resources.Memory))}
	if translate.Ready(pod) {
		l.ready = 1
	}
	affinity := pod.Spec.Affinity
	if affinity != nil && affinity.PodAntiAffinity != nil &&
		len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable == corev1.DoNotSchedule && c.TopologyKey == corev1.LabelHostname
		}) {
		l.rank = 0
	}
	return l
}

// weightOf adds up cpu in thousandths of a core and memory in bytes. The result is in thousandths of a core.
func weightOf(cpu, memory int64) int64 { return cpu + memory/(resources.MemoryPerCore/1000) }

// inOrder sorts pods by tier, then those that are not ready first, then the hardest to place, then by name.
func inOrder(pods []*corev1.Pod) {
	leavers := make([]leaver, len(pods))
	for i, pod := range pods {
		leavers[i] = leaverOf(pod)
	}
	slices.SortFunc(leavers, func(a, b leaver) int {
		return cmp.Or(cmp.Compare(tier(a.pod), tier(b.pod)), cmp.Compare(a.ready, b.ready),
			cmp.Compare(a.rank, b.rank), cmp.Compare(b.weight, a.weight),
			strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
	})
	for i, l := range leavers {
		pods[i] = l.pod
	}
}
