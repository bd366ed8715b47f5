package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// initialize marks the node as fit for pods (P-30). It must be ready and offer every resource that the claim requests.
// Its startup taints and a new node's passing taints must be gone.
func (c *Controller) initialize(ctx context.Context, w *work) error {
	if w.is(karpenterv1.ConditionTypeInitialized) || !w.is(karpenterv1.ConditionTypeRegistered) {
		return nil
	}
	if w.node == nil || w.node.DeletionTimestamp != nil {
		return nil // the node is gone; finalization or garbage collection will see that
	}
	if reason := lacking(w.node, w.claim); reason != "" {
		c.lack(w, reason)
		return nil
	}
	if reason, err := c.lackingDriver(ctx, w); err != nil || reason != "" {
		if reason != "" {
			c.lack(w, reason)
			w.askAgain(driverPause)
		}
		return err
	}
	if w.node.Labels[karpenterv1.NodeInitializedLabelKey] != "true" {
		before := w.node
		w.node = before.DeepCopy()
		w.node.Labels = with(w.node.Labels, map[string]string{karpenterv1.NodeInitializedLabelKey: "true"})
		if err := c.config.Client.Patch(ctx, w.node, patch.Node(before, w.node)); err != nil {
			return fmt.Errorf("marking node %s as initialized: %w", w.node.Name, err)
		}
	}
	c.set(w, condition.True(karpenterv1.ConditionTypeInitialized, "Initialized", ""))
	w.fresh = true
	w.saved = append(w.saved, func() {
		c.reached(w, metrics.StageInitialized)
		c.config.Log.Info("initialized", "event", "Initialized", "claim", w.claim.Name, "node", w.node.Name, "pool",
			translate.PoolOf(w.claim))
	})
	return nil
}

// driverPause is the delay until a claim whose node lacks a CSI driver is checked again.
const driverPause = 2 * time.Second

// lackingDriver returns which missing CSI driver keeps all pods of the launch from being bound, "" for none (K-58). As
// long as the node is not initialized, they are expected there.
func (c *Controller) lackingDriver(ctx context.Context, w *work) (string, error) {
	if len(translate.DriversNeeded(w.claim)) == 0 {
		return "", nil
	}
	node := &storagev1.CSINode{}
	if err := c.config.Client.Get(ctx, client.ObjectKey{Name: w.node.Name}, node); err != nil {
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("reading CSINode %s: %w", w.node.Name, err)
		}
		node = nil
	}
	if driver := translate.MissingDriver(w.claim, node); driver != "" {
		return fmt.Sprintf("CSINode %s does not name the CSI driver %s yet, which pods wait for", w.node.Name, driver),
			nil
	}
	return "", nil
}

// patience is how long after its registration a node may lack changing things. Until then the condition keeps the
// first lack; a node that is not ready after that reports the current one.
const patience = 5 * time.Second

// lack records why the node is not initialized, but at first not every passing reason.
func (c *Controller) lack(w *work, reason string) {
	known, _ := condition.Get(w.claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if known.Status == metav1.ConditionUnknown && known.Message != reason {
		since, _ := condition.Since(w.claim.Status.Conditions, karpenterv1.ConditionTypeRegistered)
		if left := since.Add(patience).Sub(c.config.Now()); left > 0 {
			w.askAgain(left)
			return
		}
	}
	c.set(w, condition.Unknown(karpenterv1.ConditionTypeInitialized, "NodeNotInitialized", reason))
}

// lacking returns what keeps the node from being initialized, "" for nothing.
func lacking(node *corev1.Node, claim *karpenterv1.NodeClaim) string {
	if reboots(claim) {
		return "node " + node.Name + " is being rebooted"
	}
	if !isReady(node) {
		return "node " + node.Name + " is not ready"
	}
	for _, taint := range claim.Spec.StartupTaints {
		if hasTaint(node.Spec.Taints, taint) {
			return "startup taint " + taint.ToString() + " is still on the node"
		}
	}
	for _, taint := range passingTaints() {
		if hasTaint(node.Spec.Taints, taint) {
			return "taint " + taint.ToString() + " is still on the node"
		}
	}
	var missing []string
	for name, quantity := range claim.Spec.Resources.Requests {
		if offered := node.Status.Allocatable[name]; !quantity.IsZero() && offered.IsZero() {
			missing = append(missing, string(name))
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Sprintf("the node does not offer %v yet", missing)
	}
	return ""
}

// passingTaints are taints that a new node has for a while, whoever added them.
func passingTaints() []corev1.Taint {
	return []corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule},
		{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute},
	}
}
