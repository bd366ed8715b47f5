package world

import (
	"fmt"
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file keeps what CapacityBuffers ask for (K-35, K-37), as pods that exist for planning only. It stays empty if
// the feature is off.

// buffers is what is known of them, and of what they refer to.
type buffers struct {
	seen    map[string]*sighting // by kind, namespace and name
	known   map[types.NamespacedName]*bufferEntry
	sources map[string]*translate.BufferSource // by kind, namespace and name
	pods    []*cluster.Pod                     // of all, in the order of a snapshot
	stale   bool
}

type bufferEntry struct {
	object  *autoscalingv1beta1.CapacityBuffer
	verdict translate.BufferVerdict
	shape   *cluster.Shape // interned; nil for none
}

func newBuffers() buffers {
	return buffers{seen: map[string]*sighting{}, known: map[types.NamespacedName]*bufferEntry{},
		sources: map[string]*translate.BufferSource{}}
}

// BufferKinds returns one empty object of each kind that the Store must watch for CapacityBuffers; none if they are
// off.
func (s *Store) BufferKinds() []client.Object {
	if s.config.Off.Buffers {
		return nil
	}
	return []client.Object{&corev1.PodTemplate{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{},
		&autoscalingv1beta1.CapacityBuffer{}}
}

// BufferVerdict returns what a CapacityBuffer asks for, and the generation of the buffer that this refers to. known is
// false if no watch has shown it.
func (s *Store) BufferVerdict(
	name types.NamespacedName) (verdict translate.BufferVerdict, generation int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.buffers.known[name]
	if e == nil {
		return verdict, 0, false
	}
	return e.verdict, e.object.Generation, true
}

// HasBuffers reports whether some CapacityBuffer, or the headroom of a NodePool, asks for room. It must be cheap: it
// is called for each pod that comes to a node or leaves one.
func (s *Store) HasBuffers() bool { return s.buffered.Load() > 0 }

// tellBuffer stores the state, or the deletion, of a CapacityBuffer or of an object that one may refer to. It reports
// whether no other part of the Store needs the object.
func (s *Store) tellBuffer(obj client.Object, gone bool) bool {
	switch obj := obj.(type) {
	case *autoscalingv1beta1.CapacityBuffer:
		if key := "CapacityBuffer " + objectKey(obj); !s.config.Off.Buffers &&
			s.counts(s.buffers.seen, key, obj, gone) {
			s.putBuffer(obj, gone)
		}
	case *corev1.PodTemplate:
		s.tellSource(translate.KindPodTemplate, obj, &obj.Template, nil, gone)
	case *appsv1.Deployment:
		s.tellSource(translate.KindDeployment, obj, &obj.Spec.Template, obj.Spec.Replicas, gone)
	case *appsv1.StatefulSet: // default spread constraints ask for it too, and for the next one
		s.tellSource(translate.KindStatefulSet, obj, &obj.Spec.Template, obj.Spec.Replicas, gone)
		return false
	case *appsv1.ReplicaSet:
		s.tellSource(translate.KindReplicaSet, obj, &obj.Spec.Template, obj.Spec.Replicas, gone)
		return false
	default:
		return false
	}
	return true
}

// tellSource stores an object that buffers may refer to, and resolves the buffers that do.
func (s *Store) tellSource(kind string, obj client.Object, template *corev1.PodTemplateSpec, replicas *int32,
	gone bool) {
	key := kind + " " + objectKey(obj)
	if s.config.Off.Buffers || !s.counts(s.buffers.seen, key, obj, gone) {
		return
	}
	if gone {
		delete(s.buffers.sources, key)
	} else {
		source := &translate.BufferSource{Template: template, Generation: obj.GetGeneration(),
			Replicas: wanted(replicas)}
		if owner := metav1.GetControllerOf(obj); owner != nil && kind == translate.KindReplicaSet {
			source.OwnedBy = owner.Kind + " " + owner.Name // it makes others in its place
		}
		s.buffers.sources[key] = source
	}
	for name, e := range s.buffers.known {
		if refersTo(e.object, kind, obj.GetName()) && name.Namespace == obj.GetNamespace() {
			s.resolveBuffer(e)
		}
	}
}

// wanted is how many replicas a workload asks for.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

func refersTo(b *autoscalingv1beta1.CapacityBuffer, kind, name string) bool {
	if kind == translate.KindPodTemplate {
		return b.Spec.PodTemplateRef != nil && b.Spec.PodTemplateRef.Name == name
	}
	return b.Spec.ScalableRef != nil && b.Spec.ScalableRef.Kind == kind && b.Spec.ScalableRef.Name == name
}

func (s *Store) putBuffer(b *autoscalingv1beta1.CapacityBuffer, gone bool) {
	name := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	e := s.buffers.known[name]
	if e == nil {
		e = &bufferEntry{}
		s.buffers.known[name] = e
	}
	e.object = b
	if gone || b.DeletionTimestamp != nil {
		delete(s.buffers.known, name)
		s.setBuffer(e, translate.BufferVerdict{})
		return
	}
	s.resolveBuffer(e)
}

// resolveBuffer recomputes what a buffer asks for.
func (s *Store) resolveBuffer(e *bufferEntry) {
	s.setBuffer(e, translate.Buffer(s.space, e.object, func(kind, name string) *translate.BufferSource {
		return s.buffers.sources[kind+" "+e.object.Namespace+"/"+name]
	}, func(spec *corev1.PodSpec) translate.Admission {
		given := translate.Admission{Limits: slices.Collect(maps.Values(s.admission.limits[e.object.Namespace]))}
		if class := spec.RuntimeClassName; class != nil {
			given.Class = s.admission.classes[*class]
		}
		return given
	}))
}

func (s *Store) setBuffer(e *bufferEntry, verdict translate.BufferVerdict) {
	before, old := e.verdict, e.shape
	e.verdict, e.shape = verdict, nil
	if verdict.Shape != nil && verdict.Pods > 0 {
		e.shape = s.shapes.Intern(verdict.Shape)
		s.buffered.Add(1)
	}
	if old != nil {
		s.buffered.Add(-1)
	}
	s.shapes.Release(old)
	if e.shape != old || before.Pods != verdict.Pods {
		s.buffers.stale = true
		s.changed()
	}
}

// bufferPods returns the pods of all buffers and of headroom. Those of each buffer are numbered from 0.
func (s *Store) bufferPods() []*cluster.Pod {
	if !s.buffers.stale {
		return s.buffers.pods
	}
	s.buffers.stale, s.buffers.pods = false, nil
	for name, e := range s.buffers.known {
		for i := range e.verdict.Pods {
			if e.shape == nil {
				break
			}
			s.buffers.pods = append(s.buffers.pods, &cluster.Pod{
				UID: fmt.Sprintf("%s/%d", e.object.UID, i), Namespace: name.Namespace,
				Name: fmt.Sprintf("%s-%d", name.Name, i), Shape: e.shape, Priority: math.MinInt32,
			})
		}
	}
	for _, h := range s.headrooms {
		s.buffers.pods = append(s.buffers.pods, h.pods...)
	}
	slices.SortFunc(s.buffers.pods, cluster.ComparePods)
	return s.buffers.pods
}

// reviseBuffers resolves the buffers of a namespace again, "" for all: an object that their pods depend on has
// changed.
func (s *Store) reviseBuffers(namespace string) {
	for name, e := range s.buffers.known {
		if namespace == "" || name.Namespace == namespace {
			s.resolveBuffer(e)
		}
	}
}
