package world

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

type podKey struct{ namespace, name string }

// podEntry is what is known of a pod.
type podEntry struct {
	sighting
	object    *corev1.Pod  // kept if the pod depends on other objects (see linkPod); else nil
	value     *cluster.Pod // nil once the pod has finished
	waiting   bool         // it needs a node: kube-scheduler has found none for it
	untried   bool         // kube-scheduler has not tried it yet
	scheduler string       // spec.schedulerName
	stands    standing     // its place among pods without a node
	movable   bool         // it needs another node when its own goes
	exit      exit         // whether a drain evicts it, and past which budgets
	daemon    *corev1.Pod  // its last state if it is of a DaemonSet; else nil
	size      string       // its key in admission.sizes, "" for none
	// protected is the Unix second in which the pod's do-not-disrupt ends: 0 for none, cluster.Never for no end.
	protected int64
	stuckFrom time.Time    // when it counts as stuck, if it is ending; else zero
	chosen    string       // the node that kube-scheduler has chosen for it, until it is bound; else ""
	preempts  bool         // others may have to end there for it
	pending   *cluster.Pod // the value that stands in Store.pending; nil for none
	repelling *cluster.Pod // the value that stands in Store.repelling; nil for none
	expected  expectation
	passed    *passing // where kube-scheduler has passed it over; nil for nowhere
}

func (e *podEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

func (s *Store) applyPod(pod *corev1.Pod) error {
	key, fresh := podKey{pod.Namespace, pod.Name}, sight(pod)
	e := s.pods[key]
	accepted, replaced := s.accept(e.seen(), fresh)
	if !accepted {
		return nil
	}
	if replaced {
		s.forgetPod(key, e)
	}
	if e == nil || replaced {
		e = &podEntry{}
		s.pods[key] = e
	}
	e.sighting = fresh
	delete(s.protected, key)
	delete(s.ending, key)
	s.linkDaemon(e, pod)
	if translate.Finished(pod) {
		e.waiting, e.untried, e.movable, e.protected = false, false, false, 0
		s.linkChosen(key, e, "")
		s.nominations.drop(fresh.uid)
		s.linkPod(e, nil)
		s.setPod(e, nil)
		s.reviseRivals(pod)
		return nil
	}
	before := e.object
	s.linkPod(e, pod)
	value, err := s.translatePod(pod)
	value.Shape = s.shapes.Intern(value.Shape)
	e.waiting, e.movable = s.waits(pod, value), translate.Reschedulable(pod)
	e.untried, e.scheduler = translate.Untried(pod), pod.Spec.SchedulerName
	e.protected, _ = translate.ProtectedUntil(pod) // an error of it is part of err
	if value.DoNotDisrupt && e.protected != cluster.Never {
		s.protected[key] = struct{}{}
		s.wakeAt(time.Unix(e.protected, 0))
	}
	if from, ending := translate.StuckFrom(pod); ending && !value.Fixed {
		e.stuckFrom, s.ending[key] = from, struct{}{}
		s.wakeAt(from)
	}
	value.Promised = s.promisedFor(value)
	s.heardOfBinding(e, value)
	was := e.exit
	e.exit = exitOf(pod)
	e.preempts = translate.Preempting(pod) // before setPod: what ends on its node is nothing to a pod that is bound
	s.setPod(e, value)
	s.linkChosen(key, e, translate.Chosen(pod))
	if e.exit != was && len(s.pdbs.byNamespace[pod.Namespace]) > 0 {
		s.reviseHeldOf(s.nodes[pod.Spec.NodeName])
	}
	s.reviseRivals(pod)
	if before != nil { // others may have what it no longer wants
		s.reviseRivals(before)
	}
	return err
}

func (s *Store) removePod(pod *corev1.Pod) {
	key := podKey{pod.Namespace, pod.Name}
	e := s.pods[key]
	if s.ends(e.seen(), sight(pod)) {
		s.forgetPod(key, e)
	}
}

func (s *Store) forgetPod(key podKey, e *podEntry) {
	e.waiting, e.untried, e.movable = false, false, false
	s.linkChosen(key, e, "")
	object := e.object
	s.linkPod(e, nil)
	s.linkDaemon(e, nil)
	s.setPod(e, nil)
	if object != nil {
		s.reviseRivals(object)
	}
	s.nominations.drop(e.uid)
	delete(s.passing, e)
	delete(s.protected, key)
	delete(s.ending, key)
	delete(s.pods, key)
}

// setPod gives the entry a new value, nil for none, and updates the pod's node and the pending pods. The value's shape
// is interned; setPod takes over the caller's reference to it.
func (s *Store) setPod(e *podEntry, value *cluster.Pod) {
	old := e.value
	if value != nil && value.Node == "" {
		value.PassedOver = e.passed.text()
	}
	if old != nil {
		defer s.shapes.Release(old.Shape)
	}
	if old != nil && value != nil && *old == *value {
		value = old // the same, to the last field: keep sharing it
	} else if old != nil || value != nil {
		e.value = value
		s.moveLoad(old, value)
		s.reviseUsed(e.chosen)
		s.changed()
	}
	s.queuePod(e)
	s.listPending(e)
	s.listRepelling(e)
}

// listRepelling adds a running pod with required anti-affinity to the pods that repel others, or takes it out.
func (s *Store) listRepelling(e *podEntry) {
	want := e.value
	if want != nil && (want.Node == "" || len(want.Shape.AntiAffinity) == 0) {
		want = nil
	}
	if want != e.repelling {
		s.repelling.replace(e.repelling, want)
		e.repelling = want
	}
}

// derivePod sets a changed copy of the pod's value.
func (s *Store) derivePod(e *podEntry, change func(*cluster.Pod)) {
	value := *e.value
	change(&value)
	value.Shape = s.shapes.Intern(value.Shape)
	s.setPod(e, &value)
}

// listPending adds the pod to the pending ones or takes it out. Pending are pods that wait, pods planned for before
// the scheduler tries them, and pods whose node is being removed. The last leave out a pod that must not be disrupted
// or whose PodDisruptionBudget never lets it go: the drain waits for it, and a node made for it now would stay empty
// and look like free room.
func (s *Store) listPending(e *podEntry) {
	var want *cluster.Pod
	if v := e.value; v != nil && (e.waiting || s.plannedUntried(e) || e.movable && s.nodeDeleting(v.Node) &&
		(v.Terminating || !s.stays(v))) {
		want = v
	}
	if want != e.pending {
		s.pending.replace(e.pending, want)
		e.pending = want
		s.changed()
	}
}

func (s *Store) nodeDeleting(name string) bool {
	node := s.nodes[name]
	return node != nil && node.leaving
}

// load is what runs on the node of a name, whether that node was seen or not. It is immutable.
type load struct {
	pods  []*cluster.Pod // by namespace, name and UID
	used  resources.Vector
	ports []cluster.HostPort
}

func (l *load) with(gone, fresh *cluster.Pod) *load {
	next := &load{pods: make([]*cluster.Pod, 0, len(l.pods)+1)}
	for _, pod := range l.pods {
		if pod != gone {
			next.pods = append(next.pods, pod)
		}
	}
	if fresh != nil {
		at, _ := slices.BinarySearchFunc(next.pods, fresh, comparePods)
		next.pods = slices.Insert(next.pods, at, fresh)
	}
	for _, pod := range next.pods {
		next.used = pod.Shape.Requests.AddTo(next.used)
		next.ports = append(next.ports, pod.Shape.HostPorts...)
	}
	return next
}

// moveLoad takes the old value off its node and puts the fresh one on its own; either may be nil.
func (s *Store) moveLoad(old, fresh *cluster.Pod) {
	s.moveRunning(old, fresh)
	if old != nil && old.Node != "" && fresh != nil && fresh.Node == old.Node {
		s.setLoad(old.Node, s.loadOf(old.Node).with(old, fresh))
		return
	}
	if old != nil && old.Node != "" {
		s.setLoad(old.Node, s.loadOf(old.Node).with(old, nil))
	}
	if fresh != nil && fresh.Node != "" {
		s.setLoad(fresh.Node, s.loadOf(fresh.Node).with(nil, fresh))
	}
}

func (s *Store) loadOf(node string) *load {
	if l := s.loads[node]; l != nil {
		return l
	}
	return &load{}
}

func (s *Store) setLoad(name string, l *load) {
	if len(l.pods) == 0 {
		delete(s.loads, name)
	} else {
		s.loads[name] = l
	}
	s.reviseChosen(name)
	if e := s.nodes[name]; e != nil && e.value != nil {
		value := *e.value
		value.Pods, value.Ports, value.Held = l.pods, l.ports, s.heldBy(l.pods)
		value.Used, value.Attached = s.usedOn(&value, l)
		value.Coming = s.comingTo(name)
		s.machines.replace(e.value, &value)
		e.value = &value
	}
}

func comparePods(a, b *cluster.Pod) int {
	if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
		return order
	}
	if order := strings.Compare(a.Name, b.Name); order != 0 {
		return order
	}
	return strings.Compare(a.UID, b.UID)
}
