package provisioning_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
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

var (
	podName = types.NamespacedName{Namespace: "default", Name: "a"}
	thePod  = &cluster.Pod{Namespace: "default", Name: "a"}
)

func placesFor(t *testing.T, pod *corev1.Pod) (*provisioning.Places, func() *corev1.Pod) {
	t.Helper()
	server := controllertest.NewServer(t, pod).Build()
	k := &provisioning.Places{Client: server, Now: func() time.Time { return time.Unix(1000, 0) }, Log: logr.Discard()}
	return k, func() *corev1.Pod {
		t.Helper()
		var now corev1.Pod
		if err := server.Get(t.Context(), podName, &now); err != nil {
			t.Fatal(err)
		}
		return &now
	}
}

// B-16: a pod whose place is kept is nominated but still waits for a node. Its place is moved to another node,
// released, and kept again, with one condition that says where.
func TestAPlaceIsKeptMovedAndReleased(t *testing.T) {
	t.Parallel()
	k, now := placesFor(t, unplacedPod())
	for _, node := range []string{"n1", "n2", "", "n3"} {
		if k.Keep(t.Context(), []*cluster.Pod{thePod}, node); node == "" {
			k.Release(t.Context(), []*cluster.Pod{thePod})
		}
		pod := now()
		if pod.Status.NominatedNodeName != node || translate.KeptOn(pod) != node || !translate.Provisionable(pod) {
			t.Fatalf("nominated for %q, kept on %q, conditions %+v; want %q and a pod that waits",
				pod.Status.NominatedNodeName, translate.KeptOn(pod), pod.Status.Conditions, node)
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
	k.Keep(t.Context(), []*cluster.Pod{thePod}, "n1")
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
		k.Keep(t.Context(), []*cluster.Pod{thePod, {Namespace: "default", Name: "gone"}}, "n1")
		k.Release(t.Context(), []*cluster.Pod{thePod})
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
		if err := errors.Join(k.Client.Status().Update(t.Context(), fresh.DeepCopy()),
			meanwhile(t, k.Client, fresh)); err != nil {
			t.Fatal(err)
		}
		k.Client = old{k.Client, stale}
		k.Keep(t.Context(), []*cluster.Pod{thePod}, "n1")
		if pod := now(); pod.Status.NominatedNodeName == "n1" || len(pod.Status.Conditions) != 1 {
			t.Errorf("%s meanwhile: the pod was written: %+v", what, pod.Status)
		}
	}
}

// meanwhile binds the pod where the plan wants it.
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

// during does something while the pod is read.
type during struct {
	client.Client
	do func()
}

func (d during) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	d.do()
	return d.Client.Get(ctx, key, into, options...)
}

// B-16: a node that needs no kept places opens after those whose places were being kept when it was about to open, or
// after two seconds. Without such nodes it opens at once.
func TestANodeWaitsForPlacesThatAreBeingKept(t *testing.T) {
	t.Parallel()
	k, now := placesFor(t, unplacedPod())
	at := time.Unix(1000, 0)
	k.Now = func() time.Time { return at }
	parts := *apartSnapshot(t, "", at.Unix())
	parts.Pending = parts.Pending[:1]
	for _, name := range []string{"third", "to come"} {
		parts.Nodes = append(parts.Nodes, &cluster.Node{Name: name, Claim: name, Pool: "default", Created: at.Unix()})
	}
	third := *parts.Pending[0]
	third.UID, third.Promised = "third", "third"
	parts.Pending = append(parts.Pending, &third)
	s := cluster.New(parts)
	for _, pod := range s.Pending {
		pod.Name, pod.Namespace = podName.Name, podName.Namespace
	}
	var waits []time.Duration
	look := func() { waits = append(waits, k.Open(t.Context(), s, "second", "second")) }
	server := k.Client
	k.Client = during{server, func() {
		look()
		at = at.Add(1999 * time.Millisecond)
		look()
		at = at.Add(time.Millisecond)
		look()
	}}
	if wait := k.Open(t.Context(), s, "first", "first"); wait > 0 || now().Status.NominatedNodeName != "first" {
		t.Fatalf("a node with a place to keep waits for %s, and %+v", wait, now().Status)
	}
	if want := []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 0}; !slices.Equal(waits, want) {
		t.Errorf("at once, after 1.999 and after 2 s the other waits for %s, want %s", waits, want)
	}
	at = at.Add(-2 * time.Second)
	waits = nil
	look()
	k.Client = during{server, func() { look() }}
	k.Open(t.Context(), s, "third", "third")
	if want := make([]time.Duration, 2); !slices.Equal(waits, want) {
		t.Errorf("once the places are kept that it waited for, and while others are: waits for %s, want %s", waits,
			want)
	}
}

// B-16: a node that was about to open counts as open for a minute, whatever the watches show.
func TestANodeThatIsAboutToOpenCountsAsOpen(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{time.Minute - 1: "", time.Minute: "first"} {
		k, now := placesFor(t, unplacedPod())
		at := time.Unix(1000, 0)
		k.Now = func() time.Time { return at }
		s := apartSnapshot(t, "", at.Add(time.Hour).Unix())
		for _, pod := range s.Pending {
			pod.Name, pod.Namespace = podName.Name, podName.Namespace
		}
		k.Open(t.Context(), s, "second", "second")
		at = at.Add(after)
		k.Open(t.Context(), s, "first", "first")
		if pod := now(); pod.Status.NominatedNodeName != want {
			t.Errorf("%s after the other node was about to open: nominated for %q, want %q", after,
				pod.Status.NominatedNodeName, want)
		}
	}
}
