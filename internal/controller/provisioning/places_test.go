package provisioning_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

func unplacedPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "u"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
}

var podName = types.NamespacedName{Namespace: "default", Name: "a"}

func placesFor(t *testing.T, pod *corev1.Pod) (provisioning.Places, func() *corev1.Pod) {
	t.Helper()
	server := controllertest.NewServer(t, pod).Build()
	k := provisioning.Places{Client: server, Now: func() time.Time { return time.Unix(1000, 0) }, Log: logr.Discard()}
	return k, func() *corev1.Pod {
		t.Helper()
		var now corev1.Pod
		if err := server.Get(t.Context(), podName, &now); err != nil {
			t.Fatal(err)
		}
		return &now
	}
}

// B-16: a pod whose place is kept is nominated and still waits for a node; it is kept on another node, released, and kept again, with
// one condition that says where.
func TestAPlaceIsKeptMovedAndReleased(t *testing.T) {
	t.Parallel()
	k, now := placesFor(t, unplacedPod())
	for _, node := range []string{"n1", "n2", "", "n3"} {
		if k.Keep(t.Context(), []types.NamespacedName{podName}, node); node == "" {
			k.Release(t.Context(), []types.NamespacedName{podName})
		}
		pod := now()
		if pod.Status.NominatedNodeName != node || translate.KeptOn(pod) != node || !translate.Provisionable(pod) {
			t.Fatalf("nominated for %q, kept on %q, conditions %+v; want %q and a pod that waits", pod.Status.NominatedNodeName,
				translate.KeptOn(pod), pod.Status.Conditions, node)
		}
		if len(pod.Status.Conditions) != 2 {
			t.Fatalf("conditions %+v, want PodScheduled and one of ours", pod.Status.Conditions)
		}
	}
}

// B-16, P-01: a place is kept for a pod that kube-scheduler has not tried yet; it stays one of these.
func TestAPlaceIsKeptBeforeTheFirstTry(t *testing.T) {
	t.Parallel()
	untried := unplacedPod()
	untried.Status.Conditions = nil
	k, now := placesFor(t, untried)
	k.Keep(t.Context(), []types.NamespacedName{podName}, "n1")
	if pod := now(); pod.Status.NominatedNodeName != "n1" || !translate.Untried(pod) || translate.Provisionable(pod) {
		t.Errorf("nominated for %q, conditions %+v; want n1 and a pod that was not tried",
			pod.Status.NominatedNodeName, pod.Status.Conditions)
	}
}

// B-16: pods that kube-scheduler has nominated, that are bound, or that are gone are left alone, and nothing fails.
func TestWhoIsNotOursToPlaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*corev1.Pod){
		"preempting": func(p *corev1.Pod) { p.Status.NominatedNodeName = "victims" },
		"bound":      func(p *corev1.Pod) { p.Spec.NodeName = "there" },
		"in error":   func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulerError },
	} {
		pod := unplacedPod()
		change(pod)
		k, now := placesFor(t, pod)
		before := now().ResourceVersion
		k.Keep(t.Context(), []types.NamespacedName{podName, {Namespace: "default", Name: "gone"}}, "n1")
		k.Release(t.Context(), []types.NamespacedName{podName})
		if after := now(); after.ResourceVersion != before {
			t.Errorf("%s: the pod was written: %+v", what, after.Status)
		}
	}
}

// B-16: a pod that was bound, or nominated by the scheduler, since it was read, is not written.
func TestAPodThatWasPlacedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*corev1.Pod){
		"bound":      func(p *corev1.Pod) { p.Spec.NodeName = "there" },
		"preempting": func(p *corev1.Pod) { p.Status.NominatedNodeName = "victims" },
	} {
		k, now := placesFor(t, unplacedPod())
		stale := now()
		fresh := stale.DeepCopy()
		change(fresh)
		if err := errors.Join(k.Client.Status().Update(t.Context(), fresh.DeepCopy()), meanwhile(t, k.Client, fresh)); err != nil {
			t.Fatal(err)
		}
		k.Client = old{k.Client, stale}
		k.Keep(t.Context(), []types.NamespacedName{podName}, "n1")
		if pod := now(); pod.Status.NominatedNodeName == "n1" || len(pod.Status.Conditions) != 1 {
			t.Errorf("%s meanwhile: the pod was written: %+v", what, pod.Status)
		}
	}
}

// meanwhile binds the pod where it is to be.
func meanwhile(t *testing.T, server client.Client, to *corev1.Pod) error {
	t.Helper()
	var now corev1.Pod
	if err := server.Get(t.Context(), podName, &now); err != nil {
		return err
	}
	now.Spec.NodeName = to.Spec.NodeName
	return server.Update(t.Context(), &now)
}

// old reads a pod as it was.
type old struct {
	client.Client
	pod *corev1.Pod
}

func (o old) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}
