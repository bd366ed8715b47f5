package world

import (
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// workloads is what pods belong to, and which pods depend on it. The cluster's default spread constraints select by it
// (P-03). It stays empty while there are none.
type workloads struct {
	known       translate.Workloads
	seen        map[string]*sighting           // by kind, namespace and name
	podsByOwner map[string]map[string]struct{} // names of pods
}

func newWorkloads() workloads {
	return workloads{
		known: translate.Workloads{Services: map[string]map[string]map[string]string{},
			Owners: map[string]cluster.Selector{}},
		seen: map[string]*sighting{}, podsByOwner: map[string]map[string]struct{}{},
	}
}

// Workloads returns one empty object of each kind that the Store must watch for the cluster's default spread
// constraints; none when there are no such constraints.
func (s *Store) Workloads() []client.Object {
	if len(s.config.DefaultSpread) == 0 {
		return nil
	}
	return []client.Object{&corev1.Service{}, &corev1.ReplicationController{}, &appsv1.ReplicaSet{},
		&appsv1.StatefulSet{}}
}

// tellWorkload stores the state, or the deletion, of a workload, and reports whether obj is one.
func (s *Store) tellWorkload(obj client.Object, gone bool) bool {
	kind, owner := "", cluster.Selector{}
	switch obj := obj.(type) {
	case *corev1.Service:
		kind = "Service"
	case *corev1.ReplicationController:
		kind, owner = "ReplicationController", cluster.Selector{Enabled: len(obj.Spec.Selector) > 0,
			Labels: requirement.FromLabels(obj.Spec.Selector)}
	case *appsv1.ReplicaSet:
		kind, owner = "ReplicaSet", translate.Selector(obj.Spec.Selector)
	case *appsv1.StatefulSet:
		kind, owner = "StatefulSet", translate.Selector(obj.Spec.Selector)
	default:
		return false
	}
	key := kind + " " + objectKey(obj)
	if len(s.config.DefaultSpread) == 0 || !s.counts(s.workloads.seen, key, obj, gone) {
		return true
	}
	if service, ok := obj.(*corev1.Service); ok {
		s.putService(service, gone)
	} else {
		s.putOwner(key, owner, obj.GetNamespace(), gone)
	}
	return true
}

func (s *Store) putService(service *corev1.Service, gone bool) {
	inSpace := s.workloads.known.Services[service.Namespace]
	old, fresh := inSpace[service.Name], service.Spec.Selector
	if gone || len(fresh) == 0 { // without a selector it selects nothing
		fresh = nil
	}
	if maps.Equal(old, fresh) {
		return
	}
	if inSpace == nil {
		inSpace = map[string]map[string]string{}
		s.workloads.known.Services[service.Namespace] = inSpace
	}
	if inSpace[service.Name] = fresh; fresh == nil {
		delete(inSpace, service.Name)
	}
	if len(inSpace) == 0 {
		delete(s.workloads.known.Services, service.Namespace)
	}
	selects := func(selector map[string]string, pod *corev1.Pod) bool {
		return len(selector) > 0 && requirement.FromLabels(selector).Matches(pod.Labels)
	}
	for key, e := range s.pods {
		if key.namespace == service.Namespace && e.object != nil &&
			(selects(old, e.object) || selects(fresh, e.object)) {
			s.revisePod(e)
		}
	}
}

func (s *Store) putOwner(key string, selector cluster.Selector, namespace string, gone bool) {
	if !gone && reflect.DeepEqual(s.workloads.known.Owners[key], selector) {
		return
	}
	if s.workloads.known.Owners[key] = selector; gone {
		delete(s.workloads.known.Owners, key)
	}
	for _, name := range slices.Sorted(maps.Keys(s.workloads.podsByOwner[key])) {
		if e := s.pods[podKey{namespace, name}]; e != nil && e.object != nil {
			s.revisePod(e)
		}
	}
}

// linkWorkload keeps the object of a pod that default constraints may spread. pod is nil for one that is gone.
func (s *Store) linkWorkload(e *podEntry, old, pod *corev1.Pod) {
	if len(s.config.DefaultSpread) == 0 {
		return
	}
	if old != nil {
		key := translate.OwnerKey(old)
		delete(s.workloads.podsByOwner[key], old.Name)
		if len(s.workloads.podsByOwner[key]) == 0 {
			delete(s.workloads.podsByOwner, key)
		}
	}
	if pod == nil || len(pod.Spec.TopologySpreadConstraints) > 0 {
		return
	}
	e.object = pod
	if key := translate.OwnerKey(pod); key != "" {
		if s.workloads.podsByOwner[key] == nil {
			s.workloads.podsByOwner[key] = map[string]struct{}{}
		}
		s.workloads.podsByOwner[key][pod.Name] = struct{}{}
	}
}
