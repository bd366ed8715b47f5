package world

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// preemptor returns a pod that kube-scheduler has nominated to n1 by preemption.
func preemptor() *corev1.Pod {
	pod := testPod("web", "u1", 1, "")
	pod.Spec.Priority = new(int32(1000))
	pod.Status.NominatedNodeName = "n1"
	return pod
}

// P-01: while others end for a pod that preempts them, kube-scheduler keeps for it what it needs beyond their room.
// Mutants: nothing is kept; all that the pod asks for; the room of pods that are stuck, or whose priority is as high,
// counts as coming.
func TestRoomIsKeptBesidePodsThatEnd(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := clock.store()
	web := preemptor()
	web.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1800m")
	_ = s.Apply(web)
	node := testNode("n1", "nu1", 2, "")
	node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4")
	_ = s.Apply(node)
	version := 2
	ending := func(name string, priority int32, grace time.Duration) {
		version++
		pod := testPod(name, "u-"+name, version, "n1")
		pod.Spec.Priority = &priority
		pod.DeletionTimestamp = &metav1.Time{Time: clock.now.Add(grace)}
		_ = s.Apply(pod)
	}
	see := func(when string, want int64) {
		t.Helper()
		if used := s.Snapshot().Nodes[0].Used.At(resources.CPU); used != want {
			t.Errorf("%s: %d millicores of the node are used, not %d", when, used, want)
		}
	}
	see("before any pod ends", 1800)
	ending("first", 0, time.Hour)
	see("while one pod ends", 500+1300)
	ending("equal", 1000, time.Hour)
	see("while another one ends, whose priority is as high", 1000+1300)
	ending("stuck", 0, 0)
	clock.now = clock.now.Add(2 * time.Minute)
	see("when a third one is stuck", 1500+1300)
	ending("second", 0, time.Hour)
	see("while a fourth one ends", 2000+800)
	for _, name := range []string{"third", "fourth"} {
		ending(name, 0, time.Hour)
	}
	see("while enough end", 3000)
	node = node.DeepCopy()
	node.ResourceVersion, node.Status.Allocatable[corev1.ResourceCPU] = "20", resource.MustParse("2900m")
	_ = s.Apply(node)
	see("on a node that is full", 3000)
}

// P-01: a pod that kube-scheduler has nominated to a node needs none of ours while others end there for it. It needs
// one once such a pod is stuck and no other is ending.
func TestAPodThatPreemptsInVainIsPending(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := clock.store()
	web := preemptor()
	ending := func(name string, version int, grace time.Duration) *corev1.Pod {
		pod := testPod(name, "u-"+name, version, "n1")
		pod.DeletionTimestamp = &metav1.Time{Time: clock.now.Add(grace)}
		return pod
	}
	_ = s.Apply(web)
	node := testNode("n1", "nu1", 2, "")
	node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("900m")
	_ = s.Apply(node)
	see := func(when string, pending int) {
		t.Helper()
		got := s.Snapshot().Pending
		if len(got) != pending || s.PreemptsInVain(web) != (pending > 0) || !s.HasPreempting() {
			t.Errorf("%s: %d pods are pending, not %d", when, len(got), pending)
		}
		// kube-scheduler keeps room for the pod that is pending.
		node := s.Snapshot().Nodes[0]
		want := int64(500 * (len(node.Pods) + pending))
		if len(node.Pods) == 0 {
			want = 500 // those that should end are gone, or to come: it is about to be bound
		}
		if used := node.Used.At(resources.CPU); used != want {
			t.Errorf("%s: %d millicores of the node are used, not %d", when, used, want)
		}
		if len(node.Coming) != 1-pending || s.HasVictims(web) != (len(node.Pods) > 0) {
			t.Errorf("%s: %d pods are coming to the node; others end: %t", when, len(node.Coming), s.HasVictims(web))
		}
	}
	see("before any pod ends", 0)
	_ = s.Apply(ending("first", 3, 0))
	second := ending("second", 4, time.Hour)
	_ = s.Apply(second)
	clock.now = clock.now.Add(time.Minute)
	see("while another pod ends", 0)
	s.Remove(second)
	see("when only the stuck pod is left", 1)
	equal := ending("equal", 5, time.Hour)
	equal.Spec.Priority = new(int32(1000))
	_ = s.Apply(equal)
	see("while a pod of the same priority ends, which it cannot preempt", 1)
	_ = s.Apply(ending("third", 6, time.Minute))
	see("while a third pod ends", 0)
	clock.now = clock.now.Add(2 * time.Minute)
	see("when the third one is stuck too", 1)
	node = node.DeepCopy()
	node.ResourceVersion, node.Status.Allocatable[corev1.ResourceCPU] = "7", resource.MustParse("4")
	_ = s.Apply(node)
	if used := s.Snapshot().Nodes[0].Used.At(resources.CPU); used != 1500 {
		t.Errorf("room is kept for a pod that is about to be bound: %d millicores of the node are used", used)
	}
	web = web.DeepCopy()
	web.ResourceVersion, web.Spec.NodeName = "8", "n1"
	_ = s.Apply(web)
	if got := s.Snapshot().Pending; len(got) > 0 || s.HasPreempting() || s.PreemptsInVain(web) {
		t.Errorf("once it is bound beside them, %d pods are pending, preempting: %t", len(got), s.HasPreempting())
	}
}

// P-01, D-02: a pod that is about to be bound to a node counts there, with its room, whatever its conditions say, and
// is not pending. Since Kubernetes 1.35 kube-scheduler names the node while a volume or a device is still to come.
func TestAPodThatIsAboutToBeBoundComesToItsNode(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	version := 0
	for _, name := range []string{"n1", "n2"} {
		version++
		_ = s.Apply(testNode(name, "u-"+name, version, ""))
	}
	see := func(when string, want ...string) {
		t.Helper()
		var got []string
		x := s.Snapshot()
		for _, node := range x.Nodes {
			for _, pod := range node.Coming {
				got = append(got, pod.Name+" to "+node.Name)
			}
			if used, want := node.Used.At(resources.CPU), int64(500*(len(node.Coming)+len(node.Pods))); used != want {
				t.Errorf("%s: %d millicores of node %s are used, not %d", when, used, node.Name, want)
			}
		}
		for _, pod := range x.Pending {
			got = append(got, pod.Name+" waits")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v; want %v", when, got, want)
		}
	}
	web := func(node, chosen string, conditions ...corev1.PodCondition) *corev1.Pod {
		version++
		pod := testPod("web", "u1", version, node)
		pod.Status.NominatedNodeName, pod.Status.Conditions = chosen, conditions
		return pod
	}
	unscheduled := func(reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason}
	}
	unschedulable := unscheduled(corev1.PodReasonUnschedulable)
	_ = s.Apply(web("", ""))
	see("before it is tried")
	_ = s.Apply(web("", "n1"))
	see("at its first attempt", "web to n1")
	_ = s.Apply(web("", "", unschedulable))
	see("when that was in vain", "web waits")
	s.Nominate(ref("web", "u1"), "n1")
	_ = s.Apply(web("", "n1", unschedulable))
	see("at its second attempt, when a node is there", "web to n1")
	_ = s.Apply(web("", "n1", unscheduled(corev1.PodReasonSchedulerError)))
	see("after an error of kube-scheduler", "web to n1")
	s.Nominate(ref("web", "u1"), "n2")
	if coming := s.Snapshot().Nodes[0].Coming[0]; coming.Promised != "n2" {
		t.Errorf("the pod that comes is one from before its promise: %+v", *coming)
	}
	_ = s.Apply(web("", "n2", unschedulable))
	see("with another node", "web to n2")
	_ = s.Apply(web("", "n3", unschedulable))
	see("with a node that is not there")
	_ = s.Apply(testNode("n3", "u-n3", version+1, ""))
	version++
	see("when that comes", "web to n3")
	_ = s.Apply(web("", "n2", unschedulable, translate.PlaceKept("n2", newClock().now)))
	see("where we have named the node", "web waits")
	_ = s.Apply(web("", "n2", unschedulable))
	stuck := testPod("stuck", "u2", version+1, "n2")
	version++
	stuck.Spec.Priority, stuck.DeletionTimestamp = new(int32(-1)), &metav1.Time{Time: time.Unix(1, 0)}
	_ = s.Apply(stuck)
	see("beside a pod that may have to end for it, and is stuck", "web waits")
	_ = s.Apply(web("", "n2"))
	see("beside it at its first attempt", "web to n2")
	_ = s.Apply(web("n2", "n2"))
	see("once it is bound")
}

// P-07, P-01: the volumes of a pod that comes count beside those that the node has.
func TestAPodThatComesTakesItsVolumesWithIt(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testNode("n1", "nu1", 1, "p1"))
	_ = s.Apply(testCSINode("n1", "i1", 2, "ebs", 5))
	for i, name := range []string{"a", "b"} {
		_ = s.Apply(testVolume("pv-"+name, "v"+name, 10+i, "z", "ebs"))
		_ = s.Apply(testVolumeClaim(name, "c"+name, 20+i, "pv-"+name, ""))
	}
	for i, node := range []string{"n1", ""} {
		pod := testPod("pod-"+node, "u-"+node, 30+i, node)
		pod.Spec.Volumes = []corev1.Volume{testMount([]string{"a", "b"}[i])}
		pod.Status.NominatedNodeName = "n1"
		_ = s.Apply(pod)
	}
	x := s.Snapshot()
	at := slices.Index(x.Names, translate.AttachResource("ebs"))
	if got := x.Nodes[0].Used.At(at); got != 2 || len(x.Nodes[0].Attached) != 1 {
		t.Errorf("%d volumes are used, %v attached; want 2, and one attached", got, x.Nodes[0].Attached)
	}
}
