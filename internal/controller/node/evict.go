package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/event"
)

// carryOut makes one call for each pod whose turn it is, and returns what is in the way of the others, as text.
func (c *Controller) carryOut(ctx context.Context, plan drainPlan) ([]string, error) {
	obstacles := slices.Clone(plan.held)
	for _, r := range plan.remove {
		if err := c.remove(ctx, r); err != nil {
			return obstacles, err
		}
	}
	full := map[string]bool{} // PDBs that have just refused: asking for their other pods would only load the API server
	for _, pod := range plan.evict {
		budgets, err := c.budgetsOf(ctx, pod)
		if err != nil {
			return obstacles, err
		}
		if slices.ContainsFunc(budgets, func(b policyv1.PodDisruptionBudget) bool { return full[b.Namespace+"/"+b.Name] }) {
			continue
		}
		refusal, err := c.evict(ctx, pod)
		if err != nil {
			return obstacles, err
		}
		if refusal == "" {
			continue
		}
		awaited, err := c.awaited(ctx, budgets)
		if err != nil {
			return obstacles, err
		}
		obstacles = append(obstacles, fmt.Sprintf("pod %s/%s: %s%s", pod.Namespace, pod.Name, describe(budgets, refusal), awaited))
		for _, budget := range budgets {
			full[budget.Namespace+"/"+budget.Name] = true
		}
	}
	return obstacles, nil
}

// evict asks the API server to evict one pod and returns why it refuses, "" when the pod leaves or is gone.
func (c *Controller) evict(ctx context.Context, pod *corev1.Pod) (string, error) {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	err := c.config.Client.SubResource("eviction").Create(ctx, pod, eviction)
	c.config.Metrics.Pods.Evictions.WithLabelValues(code(err)).Inc()
	switch {
	case err == nil:
		c.config.Events.Event(pod, event.Normal, event.Evicted, "Evicted, since its node "+pod.Spec.NodeName+" is being removed")
		return "", nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another pod has its name
		return "", nil
	case apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err): // a PDB; several PDBs
		return err.Error(), nil
	}
	return "", fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// remove deletes a pod directly.
func (c *Controller) remove(ctx context.Context, r removal) error {
	err := c.config.Client.Delete(ctx, r.pod, client.GracePeriodSeconds(r.graceSeconds), client.Preconditions{UID: &r.pod.UID})
	switch {
	case err == nil:
		c.config.Events.Event(r.pod, event.Normal, event.Disrupted,
			fmt.Sprintf("Deleted with %d s of grace, since the termination grace period of node %s ends", r.graceSeconds, r.pod.Spec.NodeName))
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	}
	return fmt.Errorf("deleting pod %s/%s: %w", r.pod.Namespace, r.pod.Name, err)
}

// code returns the HTTP status of an answer as text, 200 for success and 0 when there was none.
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
