package foretell

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// bind binds a pod to a node. A pod that runs elsewhere is evicted there, and a new pod of the same name comes up.
func (s *Stage) bind(key types.NamespacedName, node string) bool {
	old := s.pods[key]
	if old == nil || s.nodes[node] == nil {
		return false
	}
	if old.Spec.NodeName != "" && metav1.GetControllerOf(old) == nil {
		s.lose(old) // it was planned for, but nobody recreates it
		return true
	}
	pod := s.again(old)
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	pod.Status.StartTime = &metav1.Time{Time: s.at().Time}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.put(pod)
	return true
}

// release takes a pod off its node. It then waits, unless nobody recreates it.
func (s *Stage) release(old *corev1.Pod) {
	if old.DeletionTimestamp != nil && !ownedBy(old, "StatefulSet") { // its successor exists already
		s.remove(old)
		return
	}
	if metav1.GetControllerOf(old) == nil {
		s.lose(old)
		return
	}
	s.put(Waiting(s.again(old)))
}

// lose removes a pod for good.
func (s *Stage) lose(old *corev1.Pod) {
	s.remove(old)
	s.record.Lost = append(s.record.Lost, keyOf(old))
}

// Waiting turns a pod into one that kube-scheduler found no room for, and returns it.
func Waiting(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName, pod.DeletionTimestamp = "", nil
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	return pod
}

// again returns the pod that comes up after an eviction. For a pod without a node it returns a copy.
func (s *Stage) again(old *corev1.Pod) *corev1.Pod {
	pod := old.DeepCopy()
	if old.Spec.NodeName == "" {
		return pod
	}
	s.noteLeft(old)
	s.remove(old)
	pod.UID, pod.CreationTimestamp, pod.DeletionTimestamp = s.fresh(old.Name), s.at(), nil
	return pod
}

// noteLeft records which node a pod has left.
func (s *Stage) noteLeft(pod *corev1.Pod) {
	for _, claim := range s.claims {
		if claim.Status.NodeName == pod.Spec.NodeName && claim.DeletionTimestamp != nil {
			s.moved[claim.Name] = append(s.moved[claim.Name], keyOf(pod))
			return
		}
	}
}

func ownedBy(pod *corev1.Pod, kind string) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == kind })
}

// settleDaemons starts the missing DaemonSet pods on nodes, as far as they fit.
func (s *Stage) settleDaemons() {
	if len(s.daemons) == 0 {
		return
	}
	snapshot := s.Snapshot()
	for _, node := range snapshot.Nodes {
		if node.Name == "" || node.Deleting || s.nodes[node.Name] == nil {
			continue
		}
		used := node.Used
		for _, daemon := range snapshot.Daemons {
			runs := slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool { return p.Daemon == daemon.Name })
			_, bad := cluster.Untolerated(node.Taints, daemon.Shape.Tolerations)
			full := &cluster.Node{Allocatable: node.Allocatable, Used: used}
			if runs || bad || !node.Admits(daemon.Shape) || !full.HasRoom(daemon.Shape.Requests) {
				continue
			}
			used = used.Plus(daemon.Shape.Requests)
			s.startDaemon(daemon.Name, node.Name)
		}
	}
}

// startDaemon starts a pod of a DaemonSet, as its controller and an API server would create it.
func (s *Stage) startDaemon(name, node string) {
	for _, set := range s.daemons {
		if set.Namespace+"/"+set.Name != name {
			continue
		}
		yes := true
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy(),
			Status: corev1.PodStatus{Phase: corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
		pod.Namespace, pod.Name, pod.Spec.NodeName = set.Namespace, set.Name+"-on-"+node, node
		pod.UID, pod.CreationTimestamp = s.fresh(pod.Name), s.at()
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name,
			UID: set.UID, Controller: &yes}}
		s.admit(pod)
		s.put(pod)
		return
	}
}
