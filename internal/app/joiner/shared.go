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

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// shared keeps once what the pods of one workload have in common, which is most of a pod: its labels, its containers, what it
// tolerates. The same holds of the requirements of NodeClaims, which list instance types, and of the amounts that nodes of
// one type have (B-22). It is safe for concurrent use. What a cache holds is never written to, so that it may be shared.
type shared struct {
	mu    sync.Mutex
	last  map[types.UID]*corev1.Pod                 // by the pods' owner, one of them
	lists map[list][]string                         // the values of requirements
	types map[string]map[string]corev1.ResourceList // by instance type: the amounts of a kind that one of its nodes has
}

// list is what tells most lists of values apart.
type list struct {
	length      int
	first, last string
}

func listOf(values []string) list { return list{len(values), values[0], values[len(values)-1]} }

// mostShared bounds for how many owners a pod is remembered, since some of them are gone; the same of lists and of types.
const mostShared = 2_000

func newShared() *shared {
	return &shared{last: map[types.UID]*corev1.Pod{}, lists: map[list][]string{},
		types: map[string]map[string]corev1.ResourceList{}}
}

// transform is [translate.Spare] for a cache, and has objects share what they can.
func (s *shared) transform(object any) (any, error) {
	object, err := translate.Spare(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		if len(o.OwnerReferences) != 1 {
			break
		}
		if other := another(s.last, o.OwnerReferences[0].UID, o); other.Namespace == o.Namespace {
			share(o, other)
		}
	case *corev1.Node:
		s.amounts(o.Labels[corev1.LabelInstanceTypeStable], "node", &o.Status.Capacity, &o.Status.Allocatable)
	case *karpenterv1.NodeClaim:
		s.amounts(o.Labels[corev1.LabelInstanceTypeStable], "claim", &o.Status.Capacity, &o.Status.Allocatable)
		for i, r := range o.Spec.Requirements {
			if len(r.Values) == 0 {
				continue
			}
			if other := another(s.lists, listOf(r.Values), r.Values); slices.Equal(other, r.Values) {
				o.Spec.Requirements[i].Values = other
			}
		}
	}
	return object, err
}

// another returns the object that was remembered first under a key: this one, if none was.
func another[K comparable, O any](known map[K]O, key K, object O) O {
	if other, found := known[key]; found {
		return other
	}
	if len(known) >= mostShared {
		clear(known)
	}
	known[key] = object
	return object
}

// amounts has a node or a claim share what it holds with others of its type.
func (s *shared) amounts(instanceType, of string, capacity, allocatable *corev1.ResourceList) {
	known := another(s.types, instanceType, map[string]corev1.ResourceList{})
	for name, own := range map[string]*corev1.ResourceList{of + " capacity": capacity, of + " allocatable": allocatable} {
		if len(*own) == 0 {
			continue
		}
		if other := another(known, name, *own); sameAmounts(other, *own) {
			*own = other
		} else {
			known[name] = *own // nodes of one type may differ; neighbours seldom do
		}
	}
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
