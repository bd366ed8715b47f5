package translate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// This file says what a drain and the eviction API do with a pod.

// Evicted reports whether a drain evicts the pod and waits for it. Finished and static pods stay, and those that
// tolerate the taint which the drain puts on the node: they would come back.
func Evicted(pod *corev1.Pod) bool {
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !static && !Finished(pod) && !toleratesDisruption(pod)
}

func toleratesDisruption(pod *corev1.Pod) bool {
	for _, t := range pod.Spec.Tolerations {
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
			continue
		}
		exists := t.Operator == corev1.TolerationOpExists
		if exists && t.Key == "" {
			return true
		}
		equal := (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == ""
		if t.Key == karpenterv1.DisruptedTaintKey && (exists || equal) {
			return true
		}
	}
	return false
}

// IgnoresBudgets reports whether the eviction API lets the pod go without a look at PodDisruptionBudgets: it has not
// begun yet.
func IgnoresBudgets(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }

// Ready reports whether the pod counts as healthy for PodDisruptionBudgets.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// LetsUnready reports whether the eviction API lets pods of the budget go that are not ready, whatever the budget
// allows: always, or by default while as many are healthy as the budget wants.
func LetsUnready(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	return policy != nil && *policy == policyv1.AlwaysAllow || budget.Status.DesiredHealthy > 0 &&
		budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

// Unseen reports whether the controller of PodDisruptionBudgets has not looked at this very budget yet. Until then its
// status says nothing, and the eviction API refuses.
func Unseen(budget *policyv1.PodDisruptionBudget) bool {
	return budget.Status.ObservedGeneration < budget.Generation
}

// NeverAllows says why the budget lets no ready pod go, however long one waits, and what would help; "" if it may. It
// may again when the budget, its pods or their number change (P-42).
func NeverAllows(budget *policyv1.PodDisruptionBudget) string {
	message, failed := syncFailure(budget)
	expected := budget.Status.ExpectedPods
	switch {
	case budget.Status.DisruptionsAllowed > 0:
	case failed: // such a status does not tell its generation
		return "its pods cannot be counted (" + message + "): give it a minAvailable that is a number"
	case Unseen(budget):
	case expected <= 0 && budget.Status.CurrentHealthy > 0:
		return "it counts only pods that have a controller: give it a minAvailable that is a number"
	case expected > 0 && budget.Status.DesiredHealthy >= expected:
		return "raise the replicas or change the budget"
	}
	return ""
}

// MayLeave returns how many ready pods of the budget may leave now, before others become healthy.
func MayLeave(budget *policyv1.PodDisruptionBudget) int {
	_, failed := syncFailure(budget)
	if budget.Status.DisruptionsAllowed <= 0 && (failed || budget.Status.ExpectedPods <= 0) {
		return 0 // whatever it says of healthy pods
	}
	return int(max(0, budget.Status.CurrentHealthy-budget.Status.DesiredHealthy))
}

// syncFailure returns why the pods of the budget cannot be counted, and whether that is so. Often their controller has
// no scale, as a DaemonSet has none.
func syncFailure(budget *policyv1.PodDisruptionBudget) (message string, failed bool) {
	for _, c := range budget.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason {
			return c.Message, true
		}
	}
	return "", false
}
