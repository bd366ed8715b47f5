package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Evict deletes a pod if its PodDisruptionBudget allows it. Error 429 means not now, 500 that the pod has more than
// one budget.
func (s *Server) Evict(key client.ObjectKey, eviction *policyv1.Eviction) error {
	found := s.Peek(&corev1.Pod{}, key)
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	pod := found.(*corev1.Pod)
	var options DeleteOptions
	if eviction.DeleteOptions != nil {
		options.GraceSeconds = eviction.DeleteOptions.GracePeriodSeconds
		if p := eviction.DeleteOptions.Preconditions; p != nil {
			options.UID, options.ResourceVersion = (*string)(p.UID), p.ResourceVersion
		}
	}
	if options.UID != nil && types.UID(*options.UID) != pod.UID {
		return apierrors.NewConflict(corev1.Resource("pods"), key.Name,
			errors.New("the UID in the precondition is another pod's"))
	}
	if !passesBudgets(pod) {
		if err := s.spend(pod); err != nil {
			return err
		}
	}
	return s.Delete(pod, key, options)
}

// passesBudgets reports whether the end of a pod costs no availability.
func passesBudgets(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil ||
		slices.Contains([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending}, pod.Status.Phase)
}

// spend takes one disruption from the pod's budget.
func (s *Server) spend(pod *corev1.Pod) error {
	budgets := s.BudgetsOf(pod)
	if len(budgets) == 0 {
		return nil
	}
	if len(budgets) > 1 {
		return apierrors.NewInternalError(
			errors.New(
				"this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	budget := budgets[0]
	if !PodReady(pod) {
		always := budget.Spec.UnhealthyPodEvictionPolicy != nil &&
			*budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
		if always || budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0 {
			return nil
		}
	}
	refuse := func(why string) error {
		status := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes,
			metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: why})
		return status
	}
	if budget.Status.ObservedGeneration < budget.Generation {
		return refuse(fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name))
	}
	if budget.Status.DisruptionsAllowed <= 0 {
		return refuse(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name,
			budget.Status.DesiredHealthy, budget.Status.CurrentHealthy))
	}
	spent := budget.DeepCopy()
	spent.Status.DisruptionsAllowed--
	if spent.Status.DisruptedPods == nil {
		spent.Status.DisruptedPods = map[string]metav1.Time{}
	}
	spent.Status.DisruptedPods[pod.Name] = s.now()
	return s.Update(spent, Status)
}

// BudgetsOf returns the budgets that select a pod; they must not be changed.
func (s *Server) BudgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var list []*policyv1.PodDisruptionBudget
	s.All(&policyv1.PodDisruptionBudget{}, func(o client.Object) {
		budget := o.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			list = append(list, budget)
		}
	})
	return list
}

// PodReady reports whether a pod's Ready condition is true.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// CountBudgets updates the status of every PodDisruptionBudget, as the disruption controller of Kubernetes does. It
// only supports numbers: minAvailable, and maxUnavailable of existing pods. For maxUnavailable it asks the scale of
// the pods' controllers: a DaemonSet has none, which is a failure, and pods without a controller are not expected at
// all.
func (s *Server) CountBudgets() error {
	var failures []error
	s.All(&policyv1.PodDisruptionBudget{}, func(o client.Object) {
		fresh := o.DeepCopyObject().(*policyv1.PodDisruptionBudget)
		s.count(fresh)
		failures = append(failures, s.Update(fresh, Status))
	})
	return errors.Join(failures...)
}

// EvictedFor is how long an evicted pod counts as about to go. The disruption controller knows it by name, and the
// next pod of a StatefulSet has the same name.
const EvictedFor = 2 * time.Minute

func (s *Server) count(budget *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return
	}
	expected, healthy := int32(0), int32(0)
	leaving := map[string]metav1.Time{}
	asksScale, failure := budget.Spec.MaxUnavailable != nil, ""
	s.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		if pod.Namespace != budget.Namespace || !selector.Matches(labels.Set(pod.Labels)) ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return
		}
		owner := metav1.GetControllerOf(pod)
		switch {
		case !asksScale || owner != nil && owner.Kind != "DaemonSet":
			expected++
		case owner != nil:
			failure = "daemonsets.apps does not implement the scale subresource"
		}
		at, evicted := budget.Status.DisruptedPods[pod.Name]
		evicted = evicted && s.now().Sub(at.Time) <= EvictedFor
		switch {
		case pod.DeletionTimestamp != nil:
		case evicted:
			leaving[pod.Name] = at
		case PodReady(pod):
			healthy++
		}
	})
	if failure != "" { // nothing else of the status changes, not even the generation
		budget.Status.DisruptionsAllowed = 0
		s.allows(budget, metav1.ConditionFalse, policyv1.SyncFailedReason, failure)
		return
	}
	desired := int32(0)
	switch {
	case budget.Spec.MinAvailable != nil:
		desired = budget.Spec.MinAvailable.IntVal
	case budget.Spec.MaxUnavailable != nil:
		desired = max(0, expected-budget.Spec.MaxUnavailable.IntVal)
	}
	budget.Status.ObservedGeneration = budget.Generation
	budget.Status.ExpectedPods, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = expected, healthy, desired
	budget.Status.DisruptionsAllowed, budget.Status.DisruptedPods = 0, leaving
	if expected > 0 && healthy > desired {
		budget.Status.DisruptionsAllowed = healthy - desired
		s.allows(budget, metav1.ConditionTrue, policyv1.SufficientPodsReason, "")
		return
	}
	s.allows(budget, metav1.ConditionFalse, policyv1.InsufficientPodsReason, "")
}

// allows sets a budget's condition DisruptionAllowed.
func (s *Server) allows(budget *policyv1.PodDisruptionBudget, status metav1.ConditionStatus, reason, message string) {
	value := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason,
		Message: message, ObservedGeneration: budget.Status.ObservedGeneration, LastTransitionTime: s.now()}
	for i, was := range budget.Status.Conditions {
		if was.Type == value.Type {
			if was.Status == value.Status {
				value.LastTransitionTime = was.LastTransitionTime
			}
			budget.Status.Conditions[i] = value
			return
		}
	}
	budget.Status.Conditions = append(budget.Status.Conditions, value)
}
