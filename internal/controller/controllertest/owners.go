package controllertest

import (
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Everything owns all there is, for tests in which no other program manages nodes.
type Everything struct{}

// OwnsPool is true.
func (Everything) OwnsPool(*karpenterv1.NodePool) bool { return true }

// OwnsClaim is true.
func (Everything) OwnsClaim(*karpenterv1.NodeClaim) bool { return true }

// OwnsNode is true.
func (Everything) OwnsNode(*corev1.Node, *karpenterv1.NodeClaim, *karpenterv1.NodePool) bool {
	return true
}
