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
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file ends reboots: Joiner's own (K-49), and those that Karpenter 1.15 began before Joiner took over (K-30).
// Until its reboot has ended, a claim is not initialized but cannot time out. The node is tainted until it has
// restarted.

// rebootWithin is how long a node may take to be ready again after its provider accepted the reboot.
const rebootWithin = 20 * time.Minute

// reboots reports whether a reboot of the claim's node has begun and not ended.
func reboots(claim *karpenterv1.NodeClaim) bool {
	return condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
}

// endReboot ends the reboot of the claim's node once its result is clear. It reports whether the claim is given up.
//
//   - Not requested yet: the controller of nodes continues if nodes are rebooted here. Otherwise the node opens again.
//   - The node has restarted, as its boot ID shows: it opens. Once it is ready, the reboot has succeeded.
//   - It has not within 20 min: the reboot has failed. If the node is ready it opens, and the repair controller
//     replaces it if it is still unhealthy. If it is not ready, the claim is given up.
func (c *Controller) endReboot(ctx context.Context, w *work) (gone bool, err error) {
	known, found := condition.Get(w.claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	if w.node, err = c.config.nodeOf(ctx, w.claim); err != nil || w.node == nil {
		return false, err // without a node, others decide
	}
	if !found || known.Status != metav1.ConditionTrue {
		return false, c.unfence(ctx, w) // of a reboot that was withdrawn or not accepted, or of somebody else
	}
	old, asked := w.claim.Annotations[karpenterv1.RebootPreBootIDAnnotationKey]
	issued := known.Reason != karpenterv1.ReasonRebootRequested
	switch mine := c.config.Reboots && provider.CanReboot(w.cloud); {
	case !issued && mine:
		return false, nil
	case !asked:
		return false, c.open(ctx, w, karpenterv1.ReasonRebootFailed, "the reboot of node "+w.node.Name+
			" was decided and not asked for; nodes are not rebooted here")
	}
	since := known.LastTransitionTime.Time
	begun, _ := condition.Get(w.claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if issued && begun.Status == metav1.ConditionUnknown {
		since = begun.LastTransitionTime.Time
	}
	left, now := since.Add(rebootWithin).Sub(c.config.Now()), w.node.Status.NodeInfo.BootID
	anew := now != "" && now != old
	if anew {
		if err := c.unfence(ctx, w); err != nil {
			return false, err
		}
		c.config.Events.Event(w.claim, event.Normal, event.RebootObserved, "Node "+w.node.Name+
			" runs anew, as its boot ID tells")
	}
	total := known.LastTransitionTime.Time
	switch ready := isReady(w.node); {
	case ready && anew:
		w.saved = append(w.saved, func() {
			c.config.Metrics.Nodes.Rebooted(metrics.RebootSucceeded, c.config.Now().Sub(total).Seconds())
			c.config.Metrics.Nodes.Recovery.WithLabelValues().Observe(max(0, c.config.Now().Sub(since).Seconds()))
		})
		return false, c.open(ctx, w, karpenterv1.ReasonRebootSucceeded, "node "+w.node.Name+" was rebooted")
	case left > 0:
		w.askAgain(left)
		return false, nil
	case ready:
		message := fmt.Sprintf("node %s did not reboot within %s, and is ready", w.node.Name, rebootWithin)
		w.saved = append(w.saved, func() { c.tellFailed(w, total, message) })
		return false, c.open(ctx, w, karpenterv1.ReasonRebootFailed, message)
	}
	return true, c.giveUpRebooted(ctx, w, total)
}

// giveUpRebooted gives up a claim whose node did not come back. Its drain has the same bound as the one before the
// reboot: nothing answers there.
func (c *Controller) giveUpRebooted(ctx context.Context, w *work, begun time.Time) error {
	message := fmt.Sprintf("node %s is not ready %s after it was to be rebooted", w.node.Name, rebootWithin)
	if err := c.giveUp(ctx, w, karpenterv1.ConditionTypeRebooting, karpenterv1.ReasonRebootFailed, event.Timeout,
		message); err != nil {
		return err
	}
	c.tellFailed(w, begun, message)
	grace, err := time.ParseDuration(w.claim.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey])
	if err != nil || grace < 0 {
		return nil
	}
	return removal.Bound(ctx, c.config.Client, w.claim, c.config.Now().Add(grace), c.config.Now())
}

// tellFailed reports a reboot whose node did not come back in time.
func (c *Controller) tellFailed(w *work, begun time.Time, message string) {
	c.config.Events.Event(w.claim, event.Warning, event.RebootFailed, message)
	c.config.Metrics.Nodes.Rebooted(metrics.RebootTimeout, c.config.Now().Sub(begun).Seconds())
}

// unfence removes the taint of a reboot from the node.
func (c *Controller) unfence(ctx context.Context, w *work) error {
	node := w.node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
	if len(node.Spec.Taints) == len(w.node.Spec.Taints) {
		return nil
	}
	if err := c.config.Client.Patch(ctx, node, patch.Node(w.node, node)); err != nil {
		return fmt.Errorf("taking taint %s off node %s: %w", karpenterv1.RebootingTaintKey, node.Name, err)
	}
	w.node = node
	return nil
}

// open removes the marks of a reboot from node and claim. The condition goes last, so a repeated step finds the
// remaining marks.
func (c *Controller) open(ctx context.Context, w *work, reason, message string) error {
	if err := c.unfence(ctx, w); err != nil {
		return err
	}
	bare, status := w.claim.DeepCopy(), w.claim.Status.DeepCopy()
	for _, key := range []string{karpenterv1.RebootPreBootIDAnnotationKey,
		karpenterv1.RebootTerminationGracePeriodAnnotationKey, karpenterv1.RebootAskedAnnotationKey} {
		delete(w.claim.Annotations, key)
	}
	if len(w.claim.Annotations) < len(bare.Annotations) {
		if err := c.config.Client.Patch(ctx, w.claim, optimistic(bare)); err != nil {
			return fmt.Errorf("taking the annotations of a reboot off NodeClaim %s: %w", w.claim.Name, err)
		}
		w.claim.Status = *status
	}
	c.set(w, condition.False(karpenterv1.ConditionTypeRebooting, reason, message))
	w.saved = append(w.saved, func() {
		c.config.Log.Info("ended a reboot", "claim", w.claim.Name, "node", w.node.Name, "pool",
			translate.PoolOf(w.claim), "reason", reason, "message", message)
	})
	return nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionStatus(metav1.ConditionTrue)
	})
}
