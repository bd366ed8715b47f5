package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// successorLate is how long a pod may have no node before a drain that waits for it reports that.
const successorLate = time.Minute

// awaited returns which pod a drain waits for, "" for none. It has had no node for a while, so its budget refuses
// evictions until kube-scheduler binds it.
func (c *Controller) awaited(ctx context.Context, budgets []policyv1.PodDisruptionBudget) (string, error) {
	if len(budgets) != 1 {
		return "", nil
	}
	selector, err := metav1.LabelSelectorAsSelector(budgets[0].Spec.Selector)
	if err != nil {
		return "", nil
	}
	var pods corev1.PodList
	if err := c.config.Client.List(ctx, &pods, client.InNamespace(budgets[0].Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the pods of namespace %s: %w", budgets[0].Namespace, err)
	}
	var first *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || !selector.Matches(labels.Set(pod.Labels)) ||
			c.config.Now().Sub(pod.CreationTimestamp.Time) < successorLate {
			continue
		}
		if first == nil || pod.CreationTimestamp.Before(&first.CreationTimestamp) ||
			pod.CreationTimestamp.Equal(&first.CreationTimestamp) && pod.Name < first.Name {
			first = pod
		}
	}
	if first == nil {
		return "", nil
	}
	text := fmt.Sprintf("; it waits for pod %s/%s, which has had no node since %s", first.Namespace, first.Name,
		first.CreationTimestamp.UTC().Format(time.TimeOnly))
	for _, condition := range first.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Message != "" {
			text += ": " + condition.Message
		}
	}
	return text, nil
}
