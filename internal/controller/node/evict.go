package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// carryOut makes one call for each pod whose turn it is, and returns what blocks the others, as text. One pod's
// failure does not keep it from asking for the others. The error is about calls without an answer.
func (c *Controller) carryOut(ctx context.Context, plan drainPlan) ([]string, error) {
	obstacles := slices.Clone(plan.held)
	var failures []error
	for _, r := range plan.remove {
		refusal, err := c.remove(ctx, r, plan.reason)
		failures = append(failures, err)
		if refusal != "" {
			obstacles = append(obstacles, fmt.Sprintf("pod %s/%s: its deletion is refused: %s", r.pod.Namespace,
				r.pod.Name, refusal))
		}
	}
	// PDBs that have just refused a pod whose guard they are: requests for others would only load the API server
	full := map[string]bool{}
	for _, pod := range plan.evict {
		budgets, err := c.budgetsOf(ctx, pod)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		guard := guardOf(pod, budgets)
		if full[guard] {
			continue
		}
		refusal, err := c.evict(ctx, pod, budgets, plan)
		failures = append(failures, err)
		if refusal.text == "" {
			continue
		}
		text := refusal.text
		if refusal.byBudget {
			awaited, err := c.awaited(ctx, budgets)
			failures = append(failures, err)
			text += awaited
		}
		obstacles = append(obstacles, fmt.Sprintf("pod %s/%s: %s", pod.Namespace, pod.Name, text))
		if guard != "" && refusal.byBudget {
			full[guard] = true
		}
	}
	return obstacles, errors.Join(failures...)
}

// guardOf returns the PDB on which alone a pod's eviction depends, as namespace/name; "" if there is none. Pods that
// have the same one get the same answer. The eviction API may let a pod that is not ready go where the PDB lets no
// other go. It refuses one under several PDBs for that reason, which says nothing about each of them.
func guardOf(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	if pod.Status.Phase != corev1.PodRunning || !translate.Ready(pod) || len(budgets) != 1 {
		return ""
	}
	return budgets[0].Namespace + "/" + budgets[0].Name
}

// reasonOf returns the disruption reason of a claim, as Karpenter's pods_drained_total names it (K-09).
func reasonOf(claim *karpenterv1.NodeClaim) string {
	if claim == nil {
		return metrics.ForcefulTermination
	}
	reason, found := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	if !found || reason.Status != metav1.ConditionTrue {
		return metrics.ForcefulTermination
	}
	return reason.Reason
}

// evictionRefusal is why the API server does not evict a pod; zero if it does.
type evictionRefusal struct {
	text     string
	byBudget bool // the pod's PDBs refuse, or their number
}

// evict asks the API server to evict one pod, and returns its refusal, if any. budgets are the pod's PDBs.
func (c *Controller) evict(ctx context.Context, pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget,
	plan drainPlan) (evictionRefusal, error) {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	err := c.config.Client.SubResource("eviction").Create(ctx, pod, eviction)
	c.config.Metrics.Pods.Evictions.WithLabelValues(code(err)).Inc()
	several := apierrors.IsInternalError(err) && len(budgets) > 1
	switch {
	case err == nil:
		c.config.Metrics.Pods.Drained.WithLabelValues(plan.reason).Inc()
		c.config.Events.Event(pod, event.Normal, event.Evicted, "Evicted, since its node "+pod.Spec.NodeName+
			" is being "+plan.why)
		return evictionRefusal{}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another pod has its name
		return evictionRefusal{}, nil
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), several:
		return evictionRefusal{describe(budgets, err.Error()), true}, nil
	case refused(err):
		return evictionRefusal{text: err.Error()}, nil
	}
	return evictionRefusal{}, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// remove deletes a pod directly, and returns the API server's refusal, "" for none.
func (c *Controller) remove(ctx context.Context, r departure, reason string) (string, error) {
	err := c.config.Client.Delete(ctx, r.pod, client.GracePeriodSeconds(r.graceSeconds),
		client.Preconditions{UID: &r.pod.UID})
	switch {
	case err == nil:
		c.config.Metrics.Pods.Drained.WithLabelValues(reason).Inc()
		c.config.Events.Event(r.pod, event.Normal, event.Disrupted,
			fmt.Sprintf("Deleted with %d s of grace, since the termination grace period of node %s ends",
				r.graceSeconds, r.pod.Spec.NodeName))
		return "", nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", nil
	case refused(err):
		return err.Error(), nil
	}
	return "", fmt.Errorf("deleting pod %s/%s: %w", r.pod.Namespace, r.pod.Name, err)
}

// refused reports whether an error is the API server's answer to this request, for example from a webhook, policy or
// missing permission. Other errors mean that there was no answer.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code <= http.StatusInternalServerError
}

// code returns the HTTP status of an answer as text: 200 for success, 0 without an answer.
func code(err error) string {
	if err == nil {
		return "200"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return strconv.Itoa(int(status.Status().Code))
	}
	return "0"
}
