package cases

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
)

// Case is a cluster that waits for a plan. Pods and DaemonSets are as users write them; Run admits them.
type Case struct {
	Namespaces []*corev1.Namespace
	Types      []catalog.Type
	Pools      []*karpenterv1.NodePool
	Machines   []Machine
	Daemons    []*appsv1.DaemonSet
	Pods       []*corev1.Pod
}

// Machine is capacity that exists, is on its way, or goes.
type Machine struct {
	Node  *corev1.Node           // nil while there is none
	Claim *karpenterv1.NodeClaim // nil for a node that we do not manage
	// Becomes is the node once it is ready for pods; nil if it goes.
	Becomes *corev1.Node
}

// name returns the name that the Node, the claim and the future node share.
func (m Machine) name() string {
	if m.Node != nil {
		return m.Node.Name
	}
	return m.Claim.Name
}

// clone copies the lists but not the objects: copy an object before changing it.
func (c *Case) clone() *Case {
	own := *c
	own.Namespaces = append([]*corev1.Namespace(nil), c.Namespaces...)
	own.Types = append([]catalog.Type(nil), c.Types...)
	own.Pools = append([]*karpenterv1.NodePool(nil), c.Pools...)
	own.Machines = append([]Machine(nil), c.Machines...)
	own.Daemons = append([]*appsv1.DaemonSet(nil), c.Daemons...)
	own.Pods = append([]*corev1.Pod(nil), c.Pods...)
	return &own
}

// catalog returns the catalogue. Its well-known labels do not depend on the types left in the case.
func (c *Case) catalog() catalog.Catalog {
	return catalog.Catalog{Types: c.Types, WellKnown: wellKnown()}
}

func (c *Case) pool(name string) *karpenterv1.NodePool {
	for _, pool := range c.Pools {
		if pool.Name == name {
			return pool
		}
	}
	return nil
}
