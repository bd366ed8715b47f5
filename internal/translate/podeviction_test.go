package translate

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// P-42: which budgets never let a pod go, what would help, and how many pods others let go now.
func TestBudgetsThatNeverAllow(t *testing.T) {
	t.Parallel()
	status := func(expected, healthy, desired int32) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: expected,
			CurrentHealthy: healthy, DesiredHealthy: desired}}
	}
	failed := status(3, 3, 2) // of a time when its pods could be counted
	failed.Generation = 1
	failed.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition,
		Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: "daemonsets.apps does not implement the scale subresource"}}
	unseen, mended := status(2, 2, 2), status(3, 3, 2)
	unseen.Generation = 1
	mended.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition,
		Status: metav1.ConditionTrue, Reason: policyv1.SufficientPodsReason}}
	for name, row := range map[string]struct {
		budget policyv1.PodDisruptionBudget
		never  string // a part of what it says; "" if it may allow one
		leave  int
	}{
		"one may go":                {status(3, 3, 2), "", 1},
		"too few are healthy":       {status(3, 2, 2), "", 0},
		"it wants all":              {status(2, 2, 2), "raise the replicas", 0},
		"it wants more":             {status(1, 1, 2), "raise the replicas", 0},
		"no pods yet":               {status(0, 0, 0), "", 0},
		"pods without a controller": {status(0, 2, 0), "only pods that have a controller", 0},
		"a controller without a scale": {failed,
			"cannot be counted (daemonsets.apps does not implement the scale subresource)", 0},
		"counted again":     {mended, "", 1},
		"nobody has looked": {unseen, "", 0},
	} {
		never := NeverAllows(&row.budget)
		if (never == "") != (row.never == "") || !strings.Contains(never, row.never) {
			t.Errorf("%s: never, since %q; want %q", name, never, row.never)
		}
		if got := MayLeave(&row.budget); got != row.leave {
			t.Errorf("%s: %d may leave, want %d", name, got, row.leave)
		}
	}
}
