package node

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file says in which order the pods of a tier leave: those first that are hardest to find a place for (B-11). A pod that is
// evicted comes back at once, and kube-scheduler takes pods of equal priority in the order in which they come. If small ones came
// first, they would lie on all nodes, and large ones would find no room on any: a node would be launched for them.

// leaver is a pod and what its place in the order depends on.
type leaver struct {
	pod    *corev1.Pod
	apart  bool  // it keeps apart from pods on other nodes, or is spread over these
	weight int64 // what it requests, in thousandths of a core
}

func leaverOf(pod *corev1.Pod) leaver {
	l := leaver{pod: pod}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		l.apart = len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
	}
	l.apart = l.apart || slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule && c.TopologyKey == corev1.LabelHostname
	})
	requests := translate.Requests(resources.NewSpace(), pod)
	l.weight = requests.At(resources.CPU) + requests.At(resources.Memory)*1000/resources.MemoryPerCore
	return l
}

// inOrder sorts pods by tier, within a tier the hardest to place first, and equals by name.
func inOrder(pods []*corev1.Pod) {
	leavers := make([]leaver, len(pods))
	for i, pod := range pods {
		leavers[i] = leaverOf(pod)
	}
	slices.SortFunc(leavers, func(a, b leaver) int {
		return cmp.Or(cmp.Compare(tier(a.pod), tier(b.pod)), compareBool(b.apart, a.apart), cmp.Compare(b.weight, a.weight),
			strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
	})
	for i, l := range leavers {
		pods[i] = l.pod
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
