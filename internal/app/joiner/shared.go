package joiner

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// shared keeps once what the pods of one workload have in common, which is most of a pod: its labels, its containers, what it
// tolerates (B-22). It is safe for concurrent use. What a cache holds is never written to, so that it may be shared.
type shared struct {
	mu   sync.Mutex
	last map[types.UID]*corev1.Pod // by the pods' owner, one of them
}

// mostShared bounds for how many owners a pod is remembered, since some of them are gone.
const mostShared = 20_000

func newShared() *shared { return &shared{last: map[types.UID]*corev1.Pod{}} }

// transform is [translate.Spare] for a cache, and has pods share what they can.
func (s *shared) transform(object any) (any, error) {
	object, err := translate.Spare(object)
	pod, isPod := object.(*corev1.Pod)
	if !isPod || len(pod.OwnerReferences) != 1 {
		return object, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := pod.OwnerReferences[0].UID
	if known := s.last[owner]; known != nil && known.Namespace == pod.Namespace {
		share(pod, known)
		return object, err
	}
	if len(s.last) >= mostShared {
		clear(s.last)
	}
	s.last[owner] = pod
	return object, err
}

// share makes a pod have what is equal in another one.
func share(pod, other *corev1.Pod) {
	if maps.Equal(pod.Labels, other.Labels) {
		pod.Labels = other.Labels
	}
	if slices.EqualFunc(pod.OwnerReferences, other.OwnerReferences, sameOwner) {
		pod.OwnerReferences = other.OwnerReferences
	}
	if slices.EqualFunc(pod.Spec.Containers, other.Spec.Containers, sameContainer) {
		pod.Spec.Containers = other.Spec.Containers
	}
	if slices.EqualFunc(pod.Spec.InitContainers, other.Spec.InitContainers, sameContainer) {
		pod.Spec.InitContainers = other.Spec.InitContainers
	}
	if slices.EqualFunc(pod.Spec.Tolerations, other.Spec.Tolerations, sameToleration) {
		pod.Spec.Tolerations = other.Spec.Tolerations
	}
	if maps.Equal(pod.Spec.NodeSelector, other.Spec.NodeSelector) {
		pod.Spec.NodeSelector = other.Spec.NodeSelector
	}
	// These are seldom there, and large when they are.
	if pod.Spec.Affinity != nil && equality.Semantic.DeepEqual(pod.Spec.Affinity, other.Spec.Affinity) {
		pod.Spec.Affinity = other.Spec.Affinity
	}
	if len(pod.Spec.TopologySpreadConstraints) > 0 &&
		equality.Semantic.DeepEqual(pod.Spec.TopologySpreadConstraints, other.Spec.TopologySpreadConstraints) {
		pod.Spec.TopologySpreadConstraints = other.Spec.TopologySpreadConstraints
	}
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion && same(a.Controller, b.Controller) &&
		same(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func sameToleration(a, b corev1.Toleration) bool {
	return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect &&
		same(a.TolerationSeconds, b.TolerationSeconds)
}

// sameContainer compares what [translate.Spare] leaves of a container.
func sameContainer(a, b corev1.Container) bool {
	return a.Name == b.Name && sameAmounts(a.Resources.Requests, b.Resources.Requests) &&
		sameAmounts(a.Resources.Limits, b.Resources.Limits) && slices.Equal(a.Resources.Claims, b.Resources.Claims) &&
		slices.Equal(a.ResizePolicy, b.ResizePolicy) && same(a.RestartPolicy, b.RestartPolicy) && slices.Equal(a.Ports, b.Ports)
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Equal(y) })
}

// same reports whether two optional values are the same one.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
