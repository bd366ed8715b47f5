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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// answering makes the API server answer evictions and deletions of pod a with err, and notes which pods were asked
// for.
func (r *rig) answering(err error) (asked *[]string) {
	asked = new([]string)
	r.watched(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, o, _ client.Object,
			_ ...client.SubResourceCreateOption) error {
			if *asked = append(*asked, o.GetName()); o.GetName() == "a" {
				return err
			}
			return nil
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			if *asked = append(*asked, o.GetName()); o.GetName() == "a" {
				return err
			}
			return nil
		},
	})
	return asked
}

// P-40, P-42: whatever the API server answers about one pod, the others of its tier are evicted in the same round, and
// the refusal is on the claim and in an event. Formerly a webhook that denied one pod silently kept all others on the
// node.
func TestOneRefusalDoesNotKeepTheOtherPods(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	budget := apierrors.NewTooManyRequests("budget", 0)
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	for name, test := range map[string]struct {
		answer error
		told   string // "" when nobody is told: the step fails and is repeated
		guards int    // so many PodDisruptionBudgets select all pods
		asked  []string
	}{
		"a webhook denies it": {apierrors.NewForbidden(pods, "a", errors.New("denied by policy no-evictions")),
			"denied by policy no-evictions", 0, []string{"a", "b", "c"}},
		"a policy denies it": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a",
			field.ErrorList{field.Forbidden(nil, "not now")}), "not now", 0, []string{"a", "b", "c"}},
		"a bad request": {apierrors.NewBadRequest("no such thing"), "no such thing", 0, []string{"a", "b", "c"}},
		"a webhook is broken": {apierrors.NewInternalError(errors.New("failed calling webhook")),
			"failed calling webhook", 1, []string{"a", "b", "c"}},
		"too busy":              {apierrors.NewTooManyRequests("too busy", 0), "too busy", 1, []string{"a", "b", "c"}},
		"a PodDisruptionBudget": {budget, "PodDisruptionBudget web", 1, []string{"a"}},
		"denied, under a budget": {apierrors.NewForbidden(pods, "a", errors.New("denied")), "denied", 1,
			[]string{"a", "b", "c"}},
		"denied, under two": {apierrors.NewForbidden(pods, "a", errors.New("denied")), "denied", 2,
			[]string{"a", "b", "c"}},
		"two budgets": {apierrors.NewInternalError(errors.New("more than one")),
			"more than one PodDisruptionBudget", 2, []string{"a", "b", "c"}},
		"no answer": {errors.New("connection reset"), "", 0, []string{"a", "b", "c"}},
		"a proxy sends it away": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 302, Message: "found"}}, "", 0,
			[]string{"a", "b", "c"}},
		"unavailable for a moment": {apierrors.NewServiceUnavailable("no leader"), "", 0, []string{"a", "b", "c"}},
	} {
		n, claim := dying()
		objects := []client.Object{n, claim, ready("a"), ready("b"), ready("c")}
		for i := range test.guards {
			objects = append(objects, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: []string{"web", "web2"}[i]},
				Spec: policyv1.PodDisruptionBudgetSpec{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				},
			})
		}
		r := newRig(t, objects...)
		asked := r.answering(test.answer)
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
		if failed := err != nil; failed != (test.told == "") {
			t.Errorf("%s: error %v", name, err)
		}
		if slices.Sort(*asked); !slices.Equal(*asked, test.asked) {
			t.Errorf("%s: asked for %v, want %v", name, *asked, test.asked)
		}
		if test.told == "" {
			continue
		}
		drained, said := r.condition(t, karpenterv1.ConditionTypeDrained), strings.Join(r.tape.Said(), "\n")
		if drained.Reason != "Blocked" || !strings.Contains(drained.Message, "pod default/a: ") ||
			!strings.Contains(drained.Message, test.told) {
			t.Errorf("%s: Drained is %s: %s; want it to name pod default/a and %q", name, drained.Reason,
				drained.Message, test.told)
		}
		if !strings.Contains(said, "n1 FailedDraining: Cannot drain: pod default/a: ") ||
			!strings.Contains(said, test.told) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

// P-41: the same holds at the node's deadline, for pods that are deleted.
func TestOneRefusedDeletionDoesNotKeepTheOtherPods(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
	r := newRig(t, n, claim, pod("a"), pod("b"), pod("c"))
	asked := r.answering(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a",
		errors.New("denied by policy")))
	r.clock.Advance(45 * time.Second)
	r.reconcile(t)
	if slices.Sort(*asked); !slices.Equal(*asked, []string{"a", "b", "c"}) {
		t.Errorf("asked for %v, want all", *asked)
	}
	if drained := r.condition(t, karpenterv1.ConditionTypeDrained); !strings.Contains(drained.Message,
		"pod default/a: its deletion is refused: ") || !strings.Contains(drained.Message, "denied by policy") {
		t.Errorf("Drained is %s: %s", drained.Reason, drained.Message)
	}
}

// P-42: the claim's condition stays while the API server does not answer. What is known of one pod is reported, even
// if another's eviction was not answered.
func TestWhatIsToldWhenAnAnswerIsMissing(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	r := newRig(t, n, claim, pod("a"), pod("b"))
	answers := map[string]error{}
	r.watched(interceptor.Funcs{SubResourceCreate: func(_ context.Context, _ client.Client, _ string,
		o, _ client.Object, _ ...client.SubResourceCreateOption) error {
		return answers[o.GetName()]
	}})
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "b", errors.New("denied by policy"))
	for _, c := range []struct {
		a, b           error
		failed         bool
		reason, naming string
	}{
		{nil, denied, false, "Blocked", "pod default/b: "},
		{errors.New("connection reset"), nil, true, "Blocked", "pod default/b: "},
		{errors.New("connection reset"), denied, true, "Blocked", "pod default/b: "},
		{denied, errors.New("connection reset"), true, "Blocked", "pod default/a: "},
		{nil, nil, false, "Draining", "the drain began with"},
	} {
		answers["a"], answers["b"] = c.a, c.b
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
		if got := r.condition(t, karpenterv1.ConditionTypeDrained); (err != nil) != c.failed ||
			got.Reason != c.reason || !strings.HasPrefix(got.Message, c.naming) {
			t.Errorf("answers %v and %v: error %v, Drained is %s %q; want %s %q", c.a, c.b, err, got.Reason,
				got.Message, c.reason, c.naming)
		}
	}
}

// P-42: a budget that has refused keeps its own pods only.
func TestARefusalOfABudgetDoesNotKeepThePodsOfOthers(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	other := ready("c")
	other.Labels = nil
	r := newRig(t, n, claim, ready("a"), ready("b"), other, budget)
	r.refuse["a"] = true
	if r.reconcile(t); !slices.Equal(r.evicted, []string{"a", "c"}) {
		t.Errorf("asked for %v, want a and c", r.evicted)
	}
}

// P-42: a refusal of a budget says nothing about pods that the eviction API may let go past it: those that are not
// ready or have not begun, and those of which another budget was the cause. Each of them is asked for, and before the
// ready ones: it takes nothing from the budget. Formerly the first refusal kept them on the node for ever.
func TestARefusalKeepsOnlyTheReadyPodsOfOneBudget(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewTooManyRequests("budget", 0)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	several := apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget"))
	crashing, starting, both := ready("y"), pod("z"), ready("a")
	crashing.Status.Conditions[0].Status = corev1.ConditionFalse
	starting.Status.Phase = corev1.PodPending
	both.Labels = map[string]string{"app": "web", "tier": "front"}
	for name, test := range map[string]struct {
		pods   []client.Object
		answer error // about pod a
		asked  []string
	}{
		"unready and pending pods": {[]client.Object{ready("a"), ready("b"), crashing, starting}, refusal,
			[]string{"y", "z", "a"}},
		"two budgets, of which others have one": {[]client.Object{both, ready("b"), ready("c")}, several,
			[]string{"a", "b", "c"}},
	} {
		n, claim := dying()
		objects := append([]client.Object{n, claim}, test.pods...)
		for label, value := range map[string]string{"app": "web", "tier": "front"} {
			objects = append(objects, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: value},
				Spec: policyv1.PodDisruptionBudgetSpec{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
				},
			})
		}
		r := newRig(t, objects...)
		asked := r.answering(test.answer)
		if r.reconcile(t); !slices.Equal(*asked, test.asked) {
			t.Errorf("%s: asked for %v, want %v", name, *asked, test.asked)
		}
	}
}
