package claim

import (
	"context"
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// keepPool restores the claim's pool label if somebody has changed it. A claim stays with the pool that it was made
// for: it holds one of its slots, and its machine belongs to it (L-13, L-14). The label alone decides for a claim made
// by hand.
func (c *Controller) keepPool(ctx context.Context, w *work) error {
	name, _, owned := translate.OwningPool(w.claim)
	label := w.claim.Labels[karpenterv1.NodePoolLabelKey]
	if !owned || label == name {
		return nil
	}
	before := w.claim.DeepCopy()
	w.claim.Labels = with(w.claim.Labels, map[string]string{karpenterv1.NodePoolLabelKey: name})
	if err := c.config.Client.Patch(ctx, w.claim, patch.Meta(before, w.claim)); err != nil {
		return fmt.Errorf("putting the label %s of NodeClaim %s back: %w", karpenterv1.NodePoolLabelKey, before.Name,
			err)
	}
	c.config.Events.Event(w.claim, event.Warning, event.NodePoolLabelRestored,
		fmt.Sprintf("The label %s was changed to %q and "+
			"is put back to %q: a NodeClaim stays with the NodePool that it was made for",
			karpenterv1.NodePoolLabelKey, label, name))
	return nil
}

// keepNodePool restores the same label of the claim's node, because pods select nodes by it. It skips a node that is
// being deleted: no new pod goes there.
func (c *Controller) keepNodePool(ctx context.Context, w *work) error {
	name, _, owned := translate.OwningPool(w.claim)
	if !owned || w.node == nil || w.node.DeletionTimestamp != nil {
		return nil
	}
	label := w.node.Labels[karpenterv1.NodePoolLabelKey]
	if label == name {
		return nil
	}
	before := w.node
	w.node = before.DeepCopy()
	w.node.Labels = with(w.node.Labels, map[string]string{karpenterv1.NodePoolLabelKey: name})
	if err := c.config.Client.Patch(ctx, w.node, patch.Node(before, w.node)); err != nil {
		return fmt.Errorf("putting the label %s of node %s back: %w", karpenterv1.NodePoolLabelKey, before.Name, err)
	}
	c.config.Events.Event(w.claim, event.Warning, event.NodePoolLabelRestored, fmt.Sprintf(
		"The label %s of node %s was changed to %q and is put back to %q: a node stays with the NodePool that it was made for",
		karpenterv1.NodePoolLabelKey, before.Name, label, name))
	return nil
}
