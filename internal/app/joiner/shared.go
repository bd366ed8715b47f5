package joiner

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// shared saves memory: it keeps once what the pods of one workload have in common, which is most of a pod: labels,
// containers, tolerations. The same goes for requirements of NodeClaims, which list instance types, and for the
// resources of nodes of one type (B-22). It is safe for concurrent use. Sharing is safe, since objects in a cache are
// never written to.
type shared struct {
	mu    sync.Mutex
	last  map[types.UID]*corev1.Pod // by the owner of pods, one of its pods
	lists map[list][]string         // the values of requirements
	// by instance type: the capacity and allocatable of one of its nodes or claims
	types map[string]map[string]corev1.ResourceList
}

// list is a key that tells most lists of values apart.
type list struct {
	length      int
	first, last string
}

func listOf(values []string) list { return list{len(values), values[0], values[len(values)-1]} }

// mostShared bounds for how many owners a pod is remembered, since owners disappear. It bounds lists and types too.
const mostShared = 2_000

func newShared() *shared {
	return &shared{last: map[types.UID]*corev1.Pod{}, lists: map[list][]string{},
		types: map[string]map[string]corev1.ResourceList{}}
}

// transform is [translate.Spare] for a cache; it also makes objects share what they can.
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

// another returns the object first remembered under a key: this one, if there was none.
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

// amounts makes a node or claim share its resource lists with others of its type.
func (s *shared) amounts(instanceType, of string, capacity, allocatable *corev1.ResourceList) {
	known := another(s.types, instanceType, map[string]corev1.ResourceList{})
	for name, own := range map[string]*corev1.ResourceList{of + " capacity": capacity,
		of + " allocatable": allocatable} {
		if len(*own) == 0 {
			continue
		}
		if other := another(known, name, *own); equality.Semantic.DeepEqual(other, *own) {
			*own = other
		} else {
			known[name] = *own // nodes of one type may differ, but neighbours seldom do
		}
	}
}

// share makes a pod share equal parts with another one. Whatever [translate.Spare] leaves of a container counts.
func share(pod, other *corev1.Pod) {
	shareOne(&pod.Labels, other.Labels)
	shareOne(&pod.OwnerReferences, other.OwnerReferences)
	shareOne(&pod.Spec.Containers, other.Spec.Containers)
	shareOne(&pod.Spec.InitContainers, other.Spec.InitContainers)
	shareOne(&pod.Spec.Tolerations, other.Spec.Tolerations)
	shareOne(&pod.Spec.NodeSelector, other.Spec.NodeSelector)
	shareOne(&pod.Spec.Affinity, other.Spec.Affinity)
	shareOne(&pod.Spec.TopologySpreadConstraints, other.Spec.TopologySpreadConstraints)
}

func shareOne[T any](own *T, other T) {
	if equality.Semantic.DeepEqual(*own, other) {
		*own = other
	}
}
