package node_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// P-42: a drain that stands still because the pod that left has no node yet names that pod, and what kube-scheduler says of it.
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
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, DesiredHealthy: 2, CurrentHealthy: 2},
		}
		late, other := pod("late"), pod("other")
		late.Spec.NodeName, other.Spec.NodeName, other.Labels = "", "", map[string]string{"app": "other"}
		late.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: says}}
		late.CreationTimestamp = metav1.NewTime(controllertest.Start())
		r := newRig(t, n, claim, pod("a"), late, other, budget)
		r.refuse["a"] = true
		r.clock.Advance(late.CreationTimestamp.Add(test.age).Sub(r.clock.Now()))
		r.reconcile(t)
		message := r.condition(t, karpenterv1.ConditionTypeDrained).Message
		if got := strings.Contains(message, "it waits for pod default/late, which has had no node since") && strings.Contains(message, says); got != test.want {
			t.Errorf("after %s: %q, want the pod named: %t", test.age, message, test.want)
		}
		if strings.Contains(message, "other") {
			t.Errorf("%q names a pod that the budget is not about", message)
		}
	}
}
