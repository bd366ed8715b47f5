package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file ends reboots that Karpenter 1.15 began before Joiner took over (K-30). Joiner begins none. Until a reboot has ended its node
// is tainted and its claim not initialized, so that nobody plans with it and nobody gives it up for being slow.

// rebootWithin is how long a node may take from the decision to reboot it until it is ready again.
const rebootWithin = 20 * time.Minute

// reboots reports whether Karpenter has begun to reboot the claim's node and nobody has ended that.
func reboots(claim *karpenterv1.NodeClaim) bool {
	return condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
}

// endReboot ends the reboot of the claim's node once it is clear what has become of it, and reports whether the claim is given up.
//
//   - It was not asked for yet: the node opens again. Whoever repairs nodes finds it sick as before.
//   - The node runs anew, which its boot ID tells, and is ready: it opens.
//   - It does not within 20 min: the node opens if it is ready, and is replaced if not.
func (c *Controller) endReboot(ctx context.Context, w *work) (gone bool, err error) {
	if !reboots(w.claim) {
		return false, nil
	}
	if w.node, err = c.nodeOf(ctx, w.claim); err != nil || w.node == nil {
		return false, err // without a node others decide
	}
	old, asked := w.claim.Annotations[karpenterv1.RebootPreBootIDAnnotationKey]
	since, _ := condition.Since(w.claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	left := since.Add(rebootWithin).Sub(c.config.Now())
	now := w.node.Status.NodeInfo.BootID
	switch ready := isReady(w.node); {
	case !asked:
		return false, c.open(ctx, w, "RebootFailed",
			"Karpenter had decided to reboot node "+w.node.Name+" and had not asked for it; Joiner reboots no nodes")
	case ready && now != "" && now != old:
		return false, c.open(ctx, w, "RebootSucceeded", "node "+w.node.Name+" was rebooted")
	case left > 0:
		w.askAgain(left)
		return false, nil
	case ready:
		return false, c.open(ctx, w, "RebootFailed", fmt.Sprintf("node %s did not reboot within %s, and is ready", w.node.Name, rebootWithin))
	}
	return true, c.giveUp(ctx, w, karpenterv1.ConditionTypeRebooting, "RebootFailed", event.Timeout,
		fmt.Sprintf("node %s is not ready %s after Karpenter decided to reboot it", w.node.Name, rebootWithin))
}

// open takes the marks of a reboot off node and claim. A step that is repeated finds the rest of them: the condition goes last.
func (c *Controller) open(ctx context.Context, w *work, reason, message string) error {
	node := w.node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
	if len(node.Spec.Taints) < len(w.node.Spec.Taints) {
		if err := c.config.Client.Patch(ctx, node, patch.Node(w.node, node)); err != nil {
			return fmt.Errorf("taking taint %s off node %s: %w", karpenterv1.RebootingTaintKey, node.Name, err)
		}
	}
	bare, status := w.claim.DeepCopy(), w.claim.Status.DeepCopy()
	delete(w.claim.Annotations, karpenterv1.RebootPreBootIDAnnotationKey)
	delete(w.claim.Annotations, karpenterv1.RebootTerminationGracePeriodAnnotationKey)
	if len(w.claim.Annotations) < len(bare.Annotations) {
		if err := c.config.Client.Patch(ctx, w.claim, optimistic(bare)); err != nil {
			return fmt.Errorf("taking the annotations of a reboot off NodeClaim %s: %w", w.claim.Name, err)
		}
		w.claim.Status = *status
	}
	c.set(w, condition.False(karpenterv1.ConditionTypeRebooting, reason, message))
	w.saved = append(w.saved, func() {
		c.config.Log.Info("ended a reboot of Karpenter's", "claim", w.claim.Name, "node", node.Name, "pool", translate.PoolOf(w.claim),
			"reason", reason, "message", message)
	})
	return nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionStatus(metav1.ConditionTrue)
	})
}
