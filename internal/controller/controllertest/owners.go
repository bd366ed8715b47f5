package controllertest

import (
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Everything owns every object, for tests without another program's nodes.
type Everything struct{}

// OwnsPool returns true.
func (Everything) OwnsPool(*karpenterv1.NodePool) bool { return true }

// OwnsClaim returns true.
func (Everything) OwnsClaim(*karpenterv1.NodeClaim) bool { return true }

// OwnsNode returns true.
func (Everything) OwnsNode(*corev1.Node, *karpenterv1.NodeClaim, *karpenterv1.NodePool) bool {
	return true
}
