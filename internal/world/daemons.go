package world

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// daemonEntry is what is known of a DaemonSet.
type daemonEntry struct {
	sighting
	object  *appsv1.DaemonSet
	value   cluster.Daemon
	witness *corev1.Pod // the pod that value was made with; nil for none
	stale   bool        // value.Seen must be computed anew: see seen.go
	samples *samples    // kept while its pods differ; else nil
}

func (e *daemonEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

// admission is what shows how admission changes the pods of DaemonSets: the objects that decide it, and pods that went
// through it.
type admission struct {
	seen    map[string]*sighting                     // by kind, namespace and name
	limits  map[string]map[string]*corev1.LimitRange // by namespace and name
	classes map[string]*nodev1.RuntimeClass          // by name
	// of DaemonSets by namespace/name, then by name; those that have not ended
	pods  map[string]map[string]*corev1.Pod
	sizes map[string]map[string]int // how many pods of a DaemonSet ask for each amount
}

func newAdmission() admission {
	return admission{
		seen: map[string]*sighting{}, limits: map[string]map[string]*corev1.LimitRange{},
		classes: map[string]*nodev1.RuntimeClass{},
		pods:    map[string]map[string]*corev1.Pod{}, sizes: map[string]map[string]int{},
	}
}

func (s *Store) applyDaemon(set *appsv1.DaemonSet) error {
	name := set.Namespace + "/" + set.Name
	e := s.daemons[name]
	if accepted, _ := s.accept(e.seen(), sight(set)); !accepted {
		return nil
	}
	if e == nil {
		e = &daemonEntry{}
		s.daemons[name] = e
	}
	if e.object != nil && e.value.Learnt != nil && !reflect.DeepEqual(e.object.Spec.Template, set.Spec.Template) {
		e.value.Learnt = nil
		s.daemonsChanged()
	}
	old := e.object
	e.sighting, e.object = sight(set), set
	if old != nil && old.UID == set.UID && generation(old) == generation(set) { // its status, as with each new pod
		return s.refreshDaemon(e, e.witness)
	}
	e.samples = nil // other pods count
	s.lookAtSizes(name)
	return s.refreshDaemon(e, s.newestOf(e))
}

func (s *Store) removeDaemon(set *appsv1.DaemonSet) {
	name := set.Namespace + "/" + set.Name
	e := s.daemons[name]
	if s.ends(e.seen(), sight(set)) {
		s.shapes.Release(e.value.Shape)
		delete(s.daemons, name)
		s.daemonsChanged()
	}
}

// refreshDaemon rebuilds the value of a DaemonSet. witness is one of its pods and shows what they are like; nil for
// none.
func (s *Store) refreshDaemon(e *daemonEntry, witness *corev1.Pod) error {
	given := translate.Admission{Limits: slices.Collect(maps.Values(s.admission.limits[e.object.Namespace]))}
	if class := e.object.Spec.Template.Spec.RuntimeClassName; class != nil {
		given.Class = s.admission.classes[*class]
	}
	value, err := translate.Daemon(s.space, e.object, given, witness)
	if spec := &e.object.Spec.Template.Spec; translate.HasVolumes(spec) {
		err = errors.Join(err, translate.AddDaemonVolumes(s.space, value.Shape, e.object.Namespace, spec,
			s.volumes.known))
	}
	e.witness = witness
	value.Shape = s.shapes.Intern(value.Shape)
	s.shapes.Release(e.value.Shape)
	value.Seen, value.Learnt = e.value.Seen, e.value.Learnt
	if value.Name != e.value.Name || value.Shape != e.value.Shape {
		e.value = value
		s.daemonsChanged()
	}
	return err
}

// daemonsChanged notes that the next snapshot must list the daemons anew.
func (s *Store) daemonsChanged() {
	s.daemonsStale = true
	s.changed()
}

// rebuildDaemons brings the list for the next snapshot up to date.
func (s *Store) rebuildDaemons() {
	if !s.daemonsStale {
		return
	}
	s.daemonsStale = false
	s.daemonValues = make([]cluster.Daemon, 0, len(s.daemons))
	for _, name := range slices.Sorted(maps.Keys(s.daemons)) {
		e := s.daemons[name]
		if e.stale {
			e.stale, e.value.Seen = false, s.seenOf(e)
		}
		s.daemonValues = append(s.daemonValues, e.value)
	}
}

// newestOf returns the pod of the set that best shows what its next pods will be like, nil if it has no pod. Pods of
// the current template come first, then the newest.
func (s *Store) newestOf(e *daemonEntry) *corev1.Pod {
	var best *corev1.Pod
	for _, pod := range s.admission.pods[e.object.Namespace+"/"+e.object.Name] {
		if s.isBetter(e, pod, best) {
			best = pod
		}
	}
	return best
}

// isBetter reports whether a pod is the better witness; other may be nil.
func (s *Store) isBetter(e *daemonEntry, pod, other *corev1.Pod) bool {
	if !ownedBySet(pod, e.object) {
		return false // of a set of that name that is gone
	}
	if other == nil {
		return true
	}
	if a, b := translate.OfTemplate(e.object, pod), translate.OfTemplate(e.object, other); a != b {
		return a
	}
	if !pod.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return other.CreationTimestamp.Before(&pod.CreationTimestamp)
	}
	return strings.Compare(pod.Name, other.Name) > 0
}

// generation is what [translate.OfTemplate] reads of a set.
func generation(set *appsv1.DaemonSet) string {
	return set.Annotations[appsv1.DeprecatedTemplateGeneration]
}

func ownedBySet(pod *corev1.Pod, set *appsv1.DaemonSet) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" && owner.Name == set.Name {
			return owner.UID == "" || set.UID == "" || owner.UID == set.UID
		}
	}
	return false
}

// linkDaemon keeps the pod with those of its DaemonSet, and checks whether it is a better witness. pod is nil for one
// that is gone.
func (s *Store) linkDaemon(e *podEntry, pod *corev1.Pod) {
	name := ""
	if pod != nil && !translate.Finished(pod) {
		name = translate.DaemonSetOf(pod)
	}
	if old := e.daemon; old != nil && (name != translate.DaemonSetOf(old) || old.UID != pod.UID) {
		e.daemon = nil
		s.countSize(e, translate.DaemonSetOf(old), nil)
		s.unlinkDaemon(old)
	}
	if name == "" {
		return
	}
	old := e.daemon
	e.daemon = pod
	pods := s.admission.pods[name]
	if pods == nil {
		pods = map[string]*corev1.Pod{}
		s.admission.pods[name] = pods
	}
	pods[pod.Name] = pod
	before := e.size
	if s.countSize(e, name, pod); old == nil || e.size != before || !sameSample(old, pod) {
		s.reviseSample(name, pod.Name)
	}
	set := s.daemons[name]
	switch {
	case set == nil:
	case set.witness != nil && set.witness == old:
		if set.witness = pod; !sameWitness(old, pod) {
			s.lookAgain(set)
		}
	case s.isBetter(set, pod, set.witness):
		_ = s.refreshDaemon(set, pod) // an error was reported with the pod
	}
}

func (s *Store) unlinkDaemon(pod *corev1.Pod) {
	name := translate.DaemonSetOf(pod)
	delete(s.admission.pods[name], pod.Name)
	if len(s.admission.pods[name]) == 0 {
		delete(s.admission.pods, name)
	}
	s.reviseSample(name, pod.Name)
	if set := s.daemons[name]; set != nil && set.witness == pod {
		s.lookAgain(set)
	}
}

// lookAgain chooses a new witness of a set.
func (s *Store) lookAgain(set *daemonEntry) {
	_ = s.refreshDaemon(set, s.newestOf(set)) // an error was reported with the pod
}

// sameWitness reports whether a changed pod still shows the same. Binding and status do not matter.
func sameWitness(a, b *corev1.Pod) bool {
	if a.Generation != 0 && a.Generation == b.Generation && maps.Equal(a.Labels, b.Labels) {
		return true
	}
	was, is := a.Spec, b.Spec
	was.NodeName, is.NodeName = "", ""
	return maps.Equal(a.Labels, b.Labels) && reflect.DeepEqual(was, is)
}

// tellAdmission stores the state, or the deletion, of an object that admission uses, and reports whether obj is one.
func (s *Store) tellAdmission(obj client.Object, gone bool) bool {
	switch obj := obj.(type) {
	case *corev1.LimitRange:
		if !s.counts(s.admission.seen, "LimitRange "+objectKey(obj), obj, gone) {
			return true
		}
		inSpace := s.admission.limits[obj.Namespace]
		if inSpace == nil {
			inSpace = map[string]*corev1.LimitRange{}
			s.admission.limits[obj.Namespace] = inSpace
		}
		if inSpace[obj.Name] = obj; gone {
			delete(inSpace, obj.Name)
		}
		if len(inSpace) == 0 {
			delete(s.admission.limits, obj.Namespace)
		}
		s.reviseDaemons(func(set *appsv1.DaemonSet) bool { return set.Namespace == obj.Namespace })
		s.reviseBuffers(obj.Namespace)
	case *nodev1.RuntimeClass:
		if !s.counts(s.admission.seen, "RuntimeClass "+objectKey(obj), obj, gone) {
			return true
		}
		if s.admission.classes[obj.Name] = obj; gone {
			delete(s.admission.classes, obj.Name)
		}
		s.reviseDaemons(func(set *appsv1.DaemonSet) bool {
			class := set.Spec.Template.Spec.RuntimeClassName
			return class != nil && *class == obj.Name
		})
		s.reviseBuffers("")
	default:
		return false
	}
	return true
}

func (s *Store) reviseDaemons(which func(*appsv1.DaemonSet) bool) {
	for _, name := range slices.Sorted(maps.Keys(s.daemons)) {
		if e := s.daemons[name]; which(e.object) {
			_ = s.refreshDaemon(e, e.witness) // an error is one of the template, which was reported with the set
		}
	}
}

// reviseDaemonsOf refreshes the sets whose pods have volumes and whose claims, as namespace/name, which accepts.
func (s *Store) reviseDaemonsOf(which func(claims []string) bool) {
	s.reviseDaemons(func(set *appsv1.DaemonSet) bool {
		if !translate.HasVolumes(&set.Spec.Template.Spec) {
			return false
		}
		pod := &corev1.Pod{Spec: set.Spec.Template.Spec}
		pod.Namespace = set.Namespace
		return which(translate.VolumeClaims(pod))
	})
}
