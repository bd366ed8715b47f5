package claim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// This file keeps our marks on nodes: the labels of a registered and of an initialized node, our finalizer, and the
// claim as the owner. Users and other programs take them off by mistake, and so does a second leader with an old
// picture. Without the finalizer a node goes undrained. Without the label it counts as on its way for ever.

// mark puts the marks of a registered node on.
func mark(node *corev1.Node, claim *karpenterv1.NodeClaim) {
	node.Labels = with(node.Labels, map[string]string{karpenterv1.NodeRegisteredLabelKey: "true"})
	controllerutil.AddFinalizer(node, karpenterv1.TerminationFinalizer)
	if !isOwner(node, claim) {
		node.OwnerReferences = append(node.OwnerReferences, metav1.OwnerReference{
			APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodeClaim", Name: claim.Name, UID: claim.UID,
			BlockOwnerDeletion: new(true),
		})
	}
}

func isOwner(node *corev1.Node, claim *karpenterv1.NodeClaim) bool {
	return slices.ContainsFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.UID })
}

// keepMarks puts back what is missing on a registered node. A Node that is younger than the registration is another
// one: somebody deleted the first one past our finalizer, and the kubelet has joined again. It is adopted like a new
// node. The label of an initialized node comes once the node is fit for pods; while it reboots, it is off on purpose
// (K-49).
func (c *Controller) keepMarks(ctx context.Context, w *work) error {
	if w.node == nil || w.node.DeletionTimestamp != nil || !w.is(karpenterv1.ConditionTypeRegistered) {
		return nil
	}
	marked := w.node.Labels[karpenterv1.NodeRegisteredLabelKey] == "true" && isOwner(w.node, w.claim) &&
		controllerutil.ContainsFinalizer(w.node, karpenterv1.TerminationFinalizer)
	open := w.is(karpenterv1.ConditionTypeInitialized) &&
		w.node.Labels[karpenterv1.NodeInitializedLabelKey] != "true" && lacking(w.node, w.claim) == ""
	if marked && !open {
		return nil
	}
	node := w.node.DeepCopy()
	since, _ := condition.Since(w.claim.Status.Conditions, karpenterv1.ConditionTypeRegistered)
	if node.CreationTimestamp.After(since) && !marked {
		adopt(node, w.claim)
	} else {
		mark(node, w.claim)
	}
	if open {
		node.Labels[karpenterv1.NodeInitializedLabelKey] = "true"
	}
	switch err := c.config.Client.Patch(ctx, node, patch.Node(w.node, node)); {
	case apierrors.IsNotFound(err): // it just went away, and the cache does not show that yet
		w.node = nil
	case err != nil:
		return fmt.Errorf("putting our marks back onto node %s: %w", w.node.Name, err)
	default:
		w.node = node
	}
	return nil
}
