package claim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// shareThatCounts is how much of the promised resources a node must have, in percent. Less counts as a contradiction
// between node and claim (K-14).
const shareThatCounts = 90

// compare checks whether an initialized node has what its claim was promised. It sets the condition
// ConsistentStateFound and, if something is lacking, reports an event. Nothing else follows: pods are planned by what
// the node offers.
func (c *Controller) compare(w *work) {
	if !w.is(karpenterv1.ConditionTypeInitialized) || w.node == nil || w.node.DeletionTimestamp != nil {
		return
	}
	known, _ := condition.Get(w.claim.Status.Conditions, karpenterv1.ConditionTypeConsistentStateFound)
	issues := contradictions(w.node, w.claim)
	switch {
	case len(issues) > 0:
		text := strings.Join(issues, "; ")
		c.set(w, condition.False(karpenterv1.ConditionTypeConsistentStateFound, "ConsistencyCheckFailed", text))
		c.config.Events.Event(w.claim, event.Warning, event.FailedConsistencyCheck, text)
	case w.fresh || known.Status == metav1.ConditionFalse:
		// A claim older than this condition is not patched just for it: all would be patched at once.
		c.set(w, condition.True(karpenterv1.ConditionTypeConsistentStateFound, "ConsistentStateFound", ""))
	}
}

// contradictions returns the requested resources of which the node has too little, sorted.
func contradictions(node *corev1.Node, claim *karpenterv1.NodeClaim) (issues []string) {
	for name, requested := range claim.Spec.Resources.Requests {
		promised, has := claim.Status.Capacity[name], node.Status.Capacity[name]
		if requested.IsZero() || promised.IsZero() {
			continue
		}
		if share := 100 * has.AsApproximateFloat64() / promised.AsApproximateFloat64(); share < shareThatCounts {
			issues = append(issues, fmt.Sprintf("node %s has %s of %s, and %s were promised (%.1f %%)", node.Name,
				has.String(), name, promised.String(), share))
		}
	}
	slices.Sort(issues)
	return issues
}
