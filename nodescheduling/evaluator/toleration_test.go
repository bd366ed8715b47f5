package evaluator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// our own form of Kubernetes' rule. What each row says was read off the rule of 1.36.
func TestA36_ATolerationIsJudgedAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	for _, row := range []struct {
		toleration corev1.Toleration
		taint      corev1.Taint
		want       bool
	}{
		{corev1.Toleration{Operator: "Exists"}, taint("a", "x", "NoSchedule"), true},
		{corev1.Toleration{Operator: "Exists", Effect: "NoExecute"}, taint("a", "x", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "x"}, taint("a", "x", "NoSchedule"), true},
		{corev1.Toleration{Key: "a", Value: "x", Operator: "Equal", Effect: "NoSchedule"},
			taint("a", "x", "NoSchedule"), true},
		{corev1.Toleration{Key: "a", Value: "y"}, taint("a", "x", "NoSchedule"), false},
		{corev1.Toleration{Key: "b", Operator: "Exists"}, taint("a", "x", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Operator: "Other"}, taint("a", "", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "3", Operator: "Gt"}, taint("a", "4", "NoSchedule"), true},
		{corev1.Toleration{Key: "a", Value: "3", Operator: "Gt"}, taint("a", "3", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "3", Operator: "Lt"}, taint("a", "-4", "NoSchedule"), true},
		{corev1.Toleration{Key: "a", Value: "3", Operator: "Lt"}, taint("a", "3", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "10", Operator: "Gt"}, taint("a", "12", "NoSchedule"), true},
		{corev1.Toleration{Key: "a", Value: "", Operator: "Gt"}, taint("a", "1", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "03", Operator: "Lt"}, taint("a", "2", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "3", Operator: "Lt"}, taint("a", "+2", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "3", Operator: "Lt"}, taint("a", "two", "NoSchedule"), false},
		{corev1.Toleration{Key: "a", Value: "99999999999999999999", Operator: "Lt"}, taint("a", "2", "NoSchedule"),
			false},
	} {
		if got := toleratesTaint(&row.toleration, &row.taint); got != row.want {
			t.Errorf("%+v and %+v: %t, want %t", row.toleration, row.taint, got, row.want)
		}
	}
}
