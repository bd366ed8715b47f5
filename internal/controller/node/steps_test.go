package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// unreadable makes reading PersistentVolumeClaims of these names fail, and those without a name, as the API server
// does.
func unreadable(names ...string) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, is := o.(*corev1.PersistentVolumeClaim); is && (key.Name == "" || slices.Contains(names, key.Name)) {
				return errors.New("cannot be read")
			}
			return c.Get(ctx, key, o, options...)
		},
	}
}

func claimed(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

func boundTo(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

func staying(name string, volumes ...corev1.Volume) *corev1.Pod {
	p := pod(name)
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p.Spec.Volumes = volumes
	return p
}

// A ready node has its machine, whatever the cloud says: it is drained. An unready node whose machine may still run is
// drained too: its pods may run there.
func TestOnlyANodeWithoutItsMachineIsNotDrained(t *testing.T) {
	t.Parallel()
	pressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}
	for name, c := range map[string]struct {
		ready   corev1.ConditionStatus
		found   bool
		evicted bool
	}{
		"ready, found":         {corev1.ConditionTrue, true, true},
		"ready, not found":     {corev1.ConditionTrue, false, true},
		"not ready, found":     {corev1.ConditionUnknown, true, true},
		"not ready, not found": {corev1.ConditionUnknown, false, false},
	} {
		n, claim := dying()
		n.Status.Conditions = []corev1.NodeCondition{pressure, {Type: corev1.NodeReady, Status: c.ready}}
		r := newRig(t, n, claim, pod("a"))
		if !c.found {
			r.cloud.left = -1
		}
		if r.reconcile(t); (len(r.evicted) == 1) != c.evicted || r.gone(t) == c.evicted {
			t.Errorf("%s: evicted %v, gone %t; want it drained: %t", name, r.evicted, r.gone(t), c.evicted)
		}
	}
}

// U-10: a marked node with nothing to drain ends in one step, and counts with its pool and zone. P-41: there is no
// deadline warning without pods.
func TestAnEmptyNodeEndsInOneStep(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	inPool(n)
	taint(n)
	condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason, "Empty", ""),
		controllertest.Start())
	claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
	r := newRig(t, n, claim)
	registry := r.watched(interceptor.Funcs{})
	if r.reconcile(t); !r.gone(t) {
		t.Fatal("the node is still there")
	}
	if got := controllertest.Count(t, registry, "karpenter_nodes_terminated_total", "batch", "zone-b"); got != 1 {
		t.Errorf("%v nodes of pool batch in zone-b count as terminated, want 1", got)
	}
	if said := r.tape.Said(); len(said) != 0 {
		t.Errorf("said %q, want nothing: there are no pods", said)
	}
}

// P-40: the taint of a node that nobody marked is as young as its deletion, and a scheduler may not know of it yet. So
// the machine of an empty node ends 5 s after that, and what has come meanwhile is evicted. The deadline comes first.
func TestAnEmptyNodeWaitsForItsTaintToBeSeen(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	r := newRig(t, n, claim)
	if again := r.reconcile(t).RequeueAfter; again != 5*time.Second || r.gone(t) {
		t.Fatalf("looks again after %s, gone %t; want 5s", again, r.gone(t))
	}
	if err := r.server.Create(t.Context(), pod("late")); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(5 * time.Second)
	if r.reconcile(t); r.gone(t) || !slices.Equal(r.evicted, []string{"late"}) {
		t.Fatalf("gone %t, evicted %v; want the pod that came to be evicted", r.gone(t), r.evicted)
	}
	if r.reconcile(t); !r.gone(t) {
		t.Error("the node is still there")
	}
	n, claim = dying()
	claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{}
	r = newRig(t, n, claim)
	if r.reconcile(t); !r.gone(t) {
		t.Error("the deadline is over, and the node is still there")
	}
	n, claim = dying()
	r = newRig(t, n, claim)
	r.clock.Advance(time.Hour) // nobody was there to taint it
	if again := r.reconcile(t).RequeueAfter; again != 5*time.Second || r.gone(t) {
		t.Errorf("tainted late: looks again after %s, gone %t; want 5s", again, r.gone(t))
	}
	n, claim = dying()
	r = newRig(t, n, claim)
	r.clock.Advance(-time.Hour) // the API server's clock is ahead
	r.reconcile(t)
	if r.reconcile(t); !r.gone(t) {
		t.Error("an hour ahead of its time, the node waits for longer than its taint needs")
	}
}

// B-11: a small pod waits a moment for large ones, and the node is looked at again then.
func TestASmallPodIsEvictedAStepLater(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	small, large := pod("a"), pod("b")
	large.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
	r := newRig(t, n, claim, small, large)
	again := r.reconcile(t).RequeueAfter
	if !slices.Equal(r.evicted, []string{"b"}) || again <= 0 || again > time.Second {
		t.Fatalf("evicts %v and looks again after %s, want the large pod at first and the small one within a second",
			r.evicted, again)
	}
	r.clock.Advance(again)
	if r.reconcile(t); !slices.Equal(r.evicted, []string{"b", "a"}) {
		t.Errorf("evicted %v after %s", r.evicted, again)
	}
}

// P-40: pods with unreadable budgets are not evicted, and do not keep the others.
func TestBudgetsThatCannotBeReadKeepOnlyTheirPods(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	broken, other := pod("a"), pod("b")
	broken.Namespace = "broken"
	r := newRig(t, n, claim, broken, other)
	r.watched(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList,
		options ...client.ListOption) error {
		var asked client.ListOptions
		asked.ApplyOptions(options)
		if _, is := l.(*policyv1.PodDisruptionBudgetList); is && asked.Namespace == "broken" {
			return errors.New("cannot be read")
		}
		return c.List(ctx, l, options...)
	}})
	_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
	if err == nil || !slices.Equal(r.evicted, []string{"b"}) {
		t.Errorf("evicted %v, error %v; want b alone, and the failure told", r.evicted, err)
	}
}

// A budget whose selector means nothing selects nobody.
func TestABudgetThatSelectsNobodyKeepsNobody(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "odd"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
		Operator: "Near"}}}
	r := newRig(t, n, claim, pod("a"), budget)
	if r.reconcile(t); !slices.Equal(r.evicted, []string{"a"}) {
		t.Errorf("evicted %v, want a", r.evicted)
	}
}

// P-42: the claim reports what blocks the drain now, not earlier, and in whole sentences.
func TestAnObstacleThatIsGoneIsNotToldAnyMore(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	slow := pod("a")
	slow.Finalizers = []string{"example.com/slow"}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, DesiredHealthy: 2, CurrentHealthy: 2},
	}
	r := newRig(t, n, claim, slow, budget)
	for _, c := range []struct {
		refuse          bool
		reason, message string
	}{
		{true, "Blocked",
			"pod default/a: PodDisruptionBudget web allows 0 disruptions (2 of 3 pods are healthy, it wants 2)"},
		{false, "Draining", "the drain began with 1 pods"},
	} {
		r.refuse["a"] = c.refuse
		r.reconcile(t)
		if got := r.condition(t, karpenterv1.ConditionTypeDrained); got.Reason != c.reason ||
			got.Message != c.message {
			t.Errorf("Drained is %s %q, want %s %q", got.Reason, got.Message, c.reason, c.message)
		}
	}
}

// P-40: volumes are reported in the order of their names. A missing PersistentVolumeClaim does not affect the next; a
// volume without one is not looked for.
func TestWhichVolumesArePodsThatStay(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	first, second := volume("pv-b"), volume("pv-a")
	first.Name, second.Name = "1", "2"
	r := newRig(t, n, claim, staying("k", corev1.Volume{Name: "tmp"}, claimed("lost"), claimed("kept")),
		boundTo("kept", "pv-kept"), boundTo("k-tmp", "pv-b"), first, second, volume("pv-kept"))
	r.watched(unreadable())
	r.reconcile(t)
	if got := r.condition(t,
		karpenterv1.ConditionTypeVolumesDetached).Message; got != "2 volumes are still attached: pv-a; pv-b" {
		t.Errorf("VolumesDetached says %q", got)
	}
}

// P-40, P-41: what a pod's volumes are matters only where volumes are attached, and only for pods that stay.
func TestVolumesThatDoNotMatterAreNotRead(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string][]client.Object{
		"none attached": {staying("k", claimed("odd"))},
		"of a pod at the deadline": {volume("pv-1"),
			func() client.Object { p := pod("a"); p.Spec.Volumes = []corev1.Volume{claimed("odd")}; return p }()},
	} {
		n, claim := dying()
		claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
		r := newRig(t, append(objects, n, claim)...)
		r.watched(unreadable("odd"))
		r.clock.Advance(time.Minute)
		if r.reconcile(t); !r.gone(t) {
			t.Errorf("%s: the node is still there", name)
		}
	}
}

// B-12: the conditions of a claim are written when one of them changes, and only then: here a pod comes late, while
// the node waits for its volumes.
func TestConditionsAreWrittenWhenTheyChange(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	r := newRig(t, n, claim, volume("pv-1"))
	writes := 0
	r.watched(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
		writes++
		return c.SubResource(sub).Patch(ctx, o, p, options...)
	}})
	var story []string
	for _, happens := range []func(){
		func() {}, func() {},
		func() {
			late := pod("late")
			if err := r.server.Create(t.Context(), late); err != nil {
				t.Fatal(err)
			}
		},
		func() {}, func() {},
	} {
		happens()
		before := writes
		r.reconcile(t)
		drained, detached := r.condition(t, karpenterv1.ConditionTypeDrained), r.condition(t,
			karpenterv1.ConditionTypeVolumesDetached)
		story = append(story, strings.Join([]string{string(drained.Status), string(detached.Status),
			map[bool]string{true: "written", false: "as it was"}[writes > before]}, " "))
	}
	if want := []string{"True False written", "True False as it was", "False False written", "True False written",
		"True False as it was"}; !slices.Equal(story, want) {
		t.Errorf("Drained and VolumesDetached were %q, want %q", story, want)
	}
}
