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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// P-42: a drain that waits because an evicted pod's successor has no node yet names that pod and kube-scheduler's
// message.
func TestADrainSaysWhichPodItWaitsFor(t *testing.T) {
	t.Parallel()
	const says = "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
	for _, test := range []struct {
		age  time.Duration
		want bool
	}{{59 * time.Second, false}, {time.Minute, true}} {
		n, claim := dying()
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-pdb"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
			Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, DesiredHealthy: 2, CurrentHealthy: 2},
		}
		late, other := pod("late"), pod("other")
		late.Spec.NodeName, other.Spec.NodeName, other.Labels = "", "", map[string]string{"app": "other"}
		late.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: says},
		}
		late.CreationTimestamp = metav1.NewTime(controllertest.Start())
		r := newRig(t, n, claim, pod("a"), late, other, budget)
		r.refuse["a"] = true
		r.clock.Advance(late.CreationTimestamp.Add(test.age).Sub(r.clock.Now()))
		r.reconcile(t)
		message := r.condition(t, karpenterv1.ConditionTypeDrained).Message
		if got := strings.Contains(message, "it waits for pod default/late, which has had no node since") &&
			strings.Contains(message, says); got != test.want {
			t.Errorf("after %s: %q, want the pod named: %t", test.age, message, test.want)
		}
		if strings.Contains(message, "other") {
			t.Errorf("%q names a pod that the budget is not about", message)
		}
	}
}

// P-42: of several pods without a node the one that has waited longest is named, then the first by name; one being
// deleted does not count. kube-scheduler's message is added if there is one. A refusal that is not the budget's waits
// for nobody.
func TestWhichPodADrainWaitsFor(t *testing.T) {
	t.Parallel()
	waiting := func(name string, minutes int, conditions ...corev1.PodCondition) *corev1.Pod {
		p := pod(name)
		p.Spec.NodeName, p.Status.Conditions = "", conditions
		p.CreationTimestamp = metav1.NewTime(controllertest.Start().Add(-time.Duration(minutes) * time.Minute))
		return p
	}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Message: "no room"}
	going := waiting("going", 9)
	going.Finalizers, going.DeletionTimestamp = []string{"example.com/slow"}, &going.CreationTimestamp
	for name, c := range map[string]struct {
		pods   []client.Object
		denied bool // by a webhook
		says   string
	}{
		"the longest, last": {[]client.Object{waiting("y", 2), waiting("x", 3)}, false,
			"; it waits for pod default/x, which has had no node since 03:01:05"},
		"the longest, first": {[]client.Object{waiting("x", 2), waiting("y", 3)}, false,
			"; it waits for pod default/y, which has had no node since 03:01:05"},
		"equal ones": {[]client.Object{waiting("x", 3), waiting("y", 3)}, false,
			"; it waits for pod default/x, which has had no node since 03:01:05"},
		"one that is going": {[]client.Object{going, waiting("x", 3)}, false,
			"; it waits for pod default/x, which has had no node since 03:01:05"},
		"with a word": {[]client.Object{waiting("x", 3, corev1.PodCondition{Type: corev1.PodReady,
			Message: "not ready"}, scheduled)}, false,
			"; it waits for pod default/x, which has had no node since 03:01:05: no room"},
		"without a word": {[]client.Object{waiting("x", 3, corev1.PodCondition{Type: corev1.PodScheduled})}, false,
			"; it waits for pod default/x, which has had no node since 03:01:05"},
		"denied": {[]client.Object{waiting("x", 3)}, true, ""},
	} {
		n, claim := dying()
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}
		r := newRig(t, append(c.pods, n, claim, pod("a"), budget)...)
		want := "pod default/a: PodDisruptionBudget web allows 0 disruptions (0 of 0 pods are healthy, it wants 0)" +
			c.says
		r.refuse["a"] = true
		if c.denied {
			denial := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("denied"))
			r.answering(denial)
			want = "pod default/a: " + denial.Error()
		} else {
			r.watched(interceptor.Funcs{List: backwards})
		}
		r.reconcile(t)
		if got := r.condition(t, karpenterv1.ConditionTypeDrained).Message; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// backwards lists pods in the other order: a cache has none.
func backwards(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
	err := c.List(ctx, l, options...)
	if pods, is := l.(*corev1.PodList); is {
		slices.Reverse(pods.Items)
	}
	return err
}
