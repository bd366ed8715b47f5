package node_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
)

// watched puts a registry and the given hooks between a rig and its server.
func (r *rig) watched(hooks interceptor.Funcs) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	server := interceptor.NewClient(r.server, hooks)
	r.step = node.New(node.Config{
		Client: server, Live: server, Fleet: r.cloud, Events: r.tape, Metrics: metrics.New(registry), Now: r.clock.Now,
		Log: logr.Discard(),
	})
	return registry
}

func inPool(n *corev1.Node) {
	n.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "batch", corev1.LabelTopologyZone: "zone-b"}
}

// U-10: a node that was drained counts as drained and as terminated, once, with its pool and zone; each answer to an
// eviction counts by its status.
func TestADrainIsCounted(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	inPool(n)
	r := newRig(t, n, claim, pod("a"), pod("b"))
	registry := r.watched(interceptor.Funcs{})
	r.refuse["b"] = true
	r.reconcile(t)
	delete(r.refuse, "b")
	r.reconcile(t)
	r.clock.Advance(5 * time.Second)
	r.reconcile(t)
	if !r.gone(t) {
		t.Fatal("the node is still there")
	}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"karpenter_nodes_terminated_total", []string{"batch", "zone-b"}, 1},
		{"karpenter_nodes_drained_total", []string{"batch"}, 1},
		{"karpenter_pods_eviction_requests_total", []string{"200"}, 2},
		{"karpenter_pods_eviction_requests_total", []string{"429"}, 1},
		{"karpenter_pods_eviction_requests_total", nil, 3},
		{"karpenter_pods_drained_total", []string{"Forceful Termination"}, 2}, // K-09
	} {
		if got := controllertest.Count(t, registry, c.name, c.labels...); got != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// U-10: a node whose machine was lost is terminated, and was not drained.
func TestALostNodeIsNotCountedAsDrained(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	inPool(n)
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	r := newRig(t, n, claim)
	registry := r.watched(interceptor.Funcs{})
	r.cloud.left = -1
	r.reconcile(t)
	terminated := controllertest.Count(t, registry, "karpenter_nodes_terminated_total", "batch", "zone-b")
	if drained := controllertest.Count(t, registry, "karpenter_nodes_drained_total"); terminated != 1 || drained != 0 {
		t.Errorf("%v terminated and %v drained, want 1 and 0", terminated, drained)
	}
}

// A pod that was recreated under the same name must not be evicted in the old one's place; nor the claim of a deleted
// node. The pod gets an event.
func TestWhatIsEvictedIsThePodThatWasSeen(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	n.OwnerReferences = nil
	claim.DeletionTimestamp = nil
	r := newRig(t, n, claim, pod("a"))
	var evictions []*policyv1.Eviction
	var claims []*types.UID
	r.watched(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			var asked client.DeleteOptions
			asked.ApplyOptions(options)
			if asked.Preconditions != nil {
				claims = append(claims, asked.Preconditions.UID)
			}
			return c.Delete(ctx, o, options...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object,
			_ ...client.SubResourceCreateOption) error {
			evictions = append(evictions, s.(*policyv1.Eviction))
			return c.SubResource(sub).Create(ctx, o, s)
		},
	})
	if again := r.reconcile(t).RequeueAfter; again != 100*time.Millisecond {
		t.Errorf("again after %s: want it at once, when the claim has its deadline", again)
	}
	if len(claims) != 1 || claims[0] == nil || *claims[0] != "c1" {
		t.Errorf("the claim was deleted with the preconditions %v, want its UID", claims)
	}
	r.reconcile(t)
	if len(evictions) != 1 {
		t.Fatalf("%d evictions, want one", len(evictions))
	}
	e := evictions[0]
	if e.Namespace != "default" || e.Name != "a" || e.DeleteOptions == nil || e.DeleteOptions.Preconditions == nil ||
		*e.DeleteOptions.Preconditions.UID != "a" {
		t.Errorf("eviction %+v, want it for default/a with its UID", e)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "a Evicted: ") ||
		!strings.Contains(said, "n1") {
		t.Errorf("said %q, want the pod to be told with the node's name", said)
	}
}

// P-41: the deadline deletes the pod that was seen, with the remaining time and an event. One that is gone or was
// recreated does not count.
func TestTheDeadlineDeletesThePodThatWasSeen(t *testing.T) {
	t.Parallel()
	for _, answer := range []error{
		nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a"),
		apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil),
	} {
		n, claim := dying()
		claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
		p := pod("a")
		p.Finalizers = []string{"example.com/slow"}
		r := newRig(t, n, claim, p)
		var asked client.DeleteOptions
		r.watched(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
			options ...client.DeleteOption) error {
			asked.ApplyOptions(options)
			if answer != nil {
				return answer
			}
			return c.Delete(ctx, o, options...)
		}})
		r.clock.Advance(45 * time.Second)
		r.reconcile(t)
		if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID != "a" ||
			asked.GracePeriodSeconds == nil || *asked.GracePeriodSeconds != 15 {
			t.Errorf("deleted with %+v, want the pod's UID and the 15 s that are left", asked)
		}
		if got := r.condition(t, karpenterv1.ConditionTypeDrained).Reason; got != "Draining" {
			t.Errorf("answer %v: Drained is %s, want Draining: nothing is in the way", answer, got)
		}
		said := strings.Join(r.tape.Said(), "\n")
		if told := strings.Contains(said, "a Disrupted: Deleted with 15 s of grace"); told != (answer == nil) {
			t.Errorf("answer %v: said %q", answer, said)
		}
		want := "n1 TerminationGracePeriodExpiring: All pods will be deleted by 2026-01-02T03:05:05Z"
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
}

// A pod that is gone or was recreated is no obstacle. A temporary failure is one, and the eviction is requested again.
func TestAnswersToAnEviction(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		answer  error
		blocked bool
		code    string
	}{
		"gone":           {apierrors.NewNotFound(pods, "a"), false, "404"},
		"another":        {apierrors.NewConflict(pods, "a", nil), false, "409"},
		"a budget":       {apierrors.NewTooManyRequests("budget", 0), true, "429"},
		"several budget": {apierrors.NewInternalError(context.DeadlineExceeded), true, "500"},
	} {
		n, claim := dying()
		r := newRig(t, n, claim, pod("a"))
		registry := r.watched(interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string,
			client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return c.answer
		}})
		if again := r.reconcile(t).RequeueAfter; again != 2*time.Second {
			t.Errorf("%s: again after %s, want 2s", name, again)
		}
		if blocked := r.condition(t, karpenterv1.ConditionTypeDrained).Reason == "Blocked"; blocked != c.blocked {
			t.Errorf("%s: blocked is %v, want %v", name, blocked, c.blocked)
		}
		if got := controllertest.Count(t, registry, "karpenter_pods_eviction_requests_total", c.code); got != 1 {
			t.Errorf("%s: counted %v times as %s", name, got, c.code)
		}
	}
	n, claim := dying()
	r := newRig(t, n, claim, pod("a"))
	registry := r.watched(interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string,
		client.Object, client.Object, ...client.SubResourceCreateOption) error {
		return http.ErrHandlerTimeout
	}})
	_, _ = r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
	if got := controllertest.Count(t, registry, "karpenter_pods_eviction_requests_total", "0"); got != 1 {
		t.Errorf("no answer was counted %v times as 0", got)
	}
}

// P-40: the taint and the label are there once, beside what was there before, and are written only when one is
// missing.
func TestACordonAddsOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	taint := corev1.Taint{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
	other := corev1.Taint{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoExecute}
	exclude := map[string]string{karpenterv1.ExcludeBalancersLabelKey: karpenterv1.ExcludeBalancersLabelValue}
	for name, c := range map[string]struct {
		taints []corev1.Taint
		labels map[string]string
		writes int
	}{
		"neither":          {nil, map[string]string{"team": "x"}, 1},
		"the taint":        {[]corev1.Taint{taint}, nil, 1},
		"the label":        {nil, exclude, 1},
		"another effect":   {[]corev1.Taint{other}, exclude, 1},
		"another taint":    {[]corev1.Taint{{Key: "x", Effect: taint.Effect}}, exclude, 1},
		"another label":    {[]corev1.Taint{taint}, map[string]string{karpenterv1.ExcludeBalancersLabelKey: "me"}, 1},
		"both are there":   {[]corev1.Taint{taint}, exclude, 0},
		"both, and others": {[]corev1.Taint{{Key: "x", Effect: taint.Effect}, taint}, exclude, 0},
	} {
		n, claim := dying()
		n.Spec.Taints, n.Labels = slices.Clone(c.taints), c.labels
		r := newRig(t, n, claim, pod("a"))
		writes := 0
		r.watched(interceptor.Funcs{Patch: func(ctx context.Context, inner client.WithWatch, o client.Object,
			p client.Patch, options ...client.PatchOption) error {
			writes++
			return inner.Patch(ctx, o, p, options...)
		}})
		r.reconcile(t)
		var fresh corev1.Node
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &fresh); err != nil {
			t.Fatal(err)
		}
		if n := len(slices.DeleteFunc(slices.Clone(fresh.Spec.Taints),
			func(t corev1.Taint) bool { return t != taint })); n != 1 || writes != c.writes {
			t.Errorf("%s: %d writes and taints %v, want %d and ours once", name, writes, fresh.Spec.Taints, c.writes)
		}
		if len(fresh.Spec.Taints) < len(c.taints) ||
			fresh.Labels[karpenterv1.ExcludeBalancersLabelKey] != "karpenter" ||
			fresh.Labels["team"] != c.labels["team"] {
			t.Errorf("%s: taints %v, labels %v: what was there must stay", name, fresh.Spec.Taints, fresh.Labels)
		}
	}
}

// P-42: what holds a drain up is said so that somebody can do something about it.
func TestWhoIsInTheWayIsSaid(t *testing.T) {
	t.Parallel()
	budget := func(name string, expected, desired, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
			Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: expected, DesiredHealthy: desired,
				DisruptionsAllowed: allowed},
		}
	}
	stranger := budget("stranger", 1, 1, 0)
	stranger.Spec.Selector.MatchLabels["app"] = "other"
	for name, c := range map[string]struct {
		budgets []client.Object
		says    []string
		not     []string
	}{
		"no budget": {[]client.Object{stranger}, []string{"default/a", "would violate"},
			[]string{"stranger", "never", "more than one"}},
		"one that may": {[]client.Object{budget("web", 3, 2, 1)}, []string{"default/a", "would violate"},
			[]string{"never", "more than one"}},
		"one that waits": {[]client.Object{budget("web", 3, 2, 0), stranger}, []string{"default/a", "web"},
			[]string{"stranger", "never", "more than one"}},
		"one that never": {[]client.Object{budget("web", 2, 2, 0)}, []string{"web", "it can never allow one"},
			[]string{"more than one"}},
		"none expected": {[]client.Object{budget("web", 0, 0, 0)}, []string{"web"},
			[]string{"never", "more than one"}},
		"two": {[]client.Object{budget("web", 3, 2, 0), budget("web2", 3, 2, 0)},
			[]string{"web", "web2", "more than one PodDisruptionBudget"}, []string{"never"}},
		"two, one of which": {[]client.Object{budget("web", 3, 2, 0), budget("web2", 3, 2, 1)},
			[]string{"web", "more than one PodDisruptionBudget"}, []string{"never"}},
	} {
		n, claim := dying()
		r := newRig(t, append(c.budgets, n, claim, pod("a"))...)
		r.refuse["a"] = true
		r.reconcile(t)
		message := r.condition(t, karpenterv1.ConditionTypeDrained).Message
		for _, part := range c.says {
			if !strings.Contains(message, part) {
				t.Errorf("%s: %q does not say %q", name, message, part)
			}
		}
		for _, part := range c.not {
			if strings.Contains(message, part) {
				t.Errorf("%s: %q says %q", name, message, part)
			}
		}
	}
}

// P-40: only volumes that the drain frees are waited for, in order; those of pods that stay are ignored, including
// ephemeral ones. P-41: without a deadline the wait has no end; with one the claim reports what was left.
func TestWhichVolumesAreWaitedFor(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	stay := func(name string, volume corev1.Volume) *corev1.Pod {
		p := pod(name)
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Spec.Volumes = []corev1.Volume{{Name: "tmp"}, volume}
		return p
	}
	bound := func(name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	byClaim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	ephemeral := stay("k3",
		corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	done := pod("done")
	done.Status.Phase = corev1.PodSucceeded
	done.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: byClaim("done")}}
	failed := pod("failed")
	failed.Status.Phase = corev1.PodFailed
	failed.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: byClaim("failed")}}
	elsewhere := volume("pv-elsewhere")
	elsewhere.Spec.NodeName = "n2"
	inline := volume("inline")
	inline.Spec.Source.PersistentVolumeName = nil
	r := newRig(t, n, claim,
		done, failed, stay("k1", corev1.Volume{Name: "v", VolumeSource: byClaim("lost")}),
		stay("k2", corev1.Volume{Name: "v", VolumeSource: byClaim("kept")}), ephemeral,
		bound("kept", "pv-kept"), bound("k3-scratch", "pv-scratch"), bound("done", "pv-done"),
		bound("failed", "pv-failed"),
		volume("pv-kept"), volume("pv-scratch"), volume("pv-done"), volume("pv-failed"), volume("pv-a"), elsewhere,
		inline)
	result := r.reconcile(t)
	got := r.condition(t, karpenterv1.ConditionTypeVolumesDetached)
	if want := "3 volumes are still attached: pv-a; pv-done; pv-failed"; got.Status != "False" ||
		got.Message != want || result.RequeueAfter != 2*time.Second {
		t.Errorf("VolumesDetached=%s %q, again after %s; want %q, and to look again in 2s", got.Status, got.Message,
			result.RequeueAfter, want)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "n1 AwaitingVolumeDetachment: 3 volumes") {
		t.Errorf("said %q, want the node to say what it waits for", said)
	}
	r.clock.Advance(240 * time.Hour)
	if r.reconcile(t); r.gone(t) {
		t.Error("without a deadline the wait for volumes has no end")
	}
}

// P-41: pods that were left at the deadline are counted on the claim.
func TestWhatTheDeadlineLeavesIsSaid(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
	stuck := pod("stuck")
	stuck.Finalizers = []string{"example.com/slow"}
	r := newRig(t, n, claim, stuck)
	r.cloud.left = 1
	r.clock.Advance(59 * time.Second)
	if r.reconcile(t); r.cloud.left != 1 {
		t.Fatal("the machine was ended before the deadline")
	}
	r.clock.Advance(time.Second)
	result := r.reconcile(t)
	if got := r.condition(t, karpenterv1.ConditionTypeDrained); got.Status != "False" ||
		got.Reason != "TerminationGracePeriodElapsed" || !strings.HasPrefix(got.Message, "1 pods were left") {
		t.Errorf("Drained=%s %s %q, want it to count the pod that was left", got.Status, got.Reason, got.Message)
	}
	if result.RequeueAfter != 2*time.Second || r.gone(t) {
		t.Errorf("again after %s: want to look in 2s whether the machine has ended", result.RequeueAfter)
	}
}

// Objects that are gone by now are no failure.
func TestWhatIsGoneIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.reconcile(t) // no such node
	n, claim := dying()
	n.Spec.ProviderID, claim.Status.ProviderID = "", "" // a claim that has no machine yet is not this node's
	r = newRig(t, n, claim, pod("a"))
	if r.reconcile(t); r.condition(t, karpenterv1.ConditionTypeDrained).Status != "" {
		t.Error("the drain of a node without a machine was written on a claim that waits for its own")
	}
}
