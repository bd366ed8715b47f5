package node_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// ours owns what is of the kind KWOKNodeClass, and machines with IDs of kwok.
type ours struct{ *cloud }

func (ours) serves(ref *karpenterv1.NodeClassReference) bool {
	return ref != nil && ref.Kind == "KWOKNodeClass"
}
func (o ours) OwnsPool(pool *karpenterv1.NodePool) bool {
	return o.serves(pool.Spec.Template.Spec.NodeClassRef)
}
func (o ours) OwnsClaim(claim *karpenterv1.NodeClaim) bool { return o.serves(claim.Spec.NodeClassRef) }
func (o ours) OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	switch {
	case len(node.Spec.ProviderID) < 4 || node.Spec.ProviderID[:4] != "kwok":
		return false
	case claim != nil:
		return o.OwnsClaim(claim)
	}
	return pool == nil || o.OwnsPool(pool)
}

func classOf(kind string) *karpenterv1.NodeClassReference {
	return &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: kind, Name: "default"}
}

// a node that is being deleted is ended only when it is ours. Before, one that was not ready lost its finalizer, since
// no provider found its machine; a ready one was tainted and drained.
func TestNodesOfOthersAreNotEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id          string
		class       string // of the claim; "" for no claim
		unseen      bool   // the cache does not show the claim
		pool        string // class of the pool; "" for no pool
		ours, ready bool
	}{
		"ours":                          {id: "kwok://n1", class: "KWOKNodeClass", ours: true},
		"ours, without a claim":         {id: "kwok://n1", ours: true},
		"ours, in a pool of another":    {id: "kwok://n1", class: "KWOKNodeClass", pool: "OtherNodeClass", ours: true},
		"another cloud's":               {id: "other://n1", class: "OtherNodeClass"},
		"another cloud's, ready":        {id: "other://n1", class: "OtherNodeClass", ready: true},
		"another cloud's, no claim":     {id: "other://n1"},
		"no machine":                    {},
		"another program's":             {id: "kwok://n1", class: "OtherNodeClass"},
		"another program's, not shown":  {id: "kwok://n1", class: "OtherNodeClass", unseen: true},
		"ours, not shown":               {id: "kwok://n1", class: "KWOKNodeClass", unseen: true, ours: true},
		"of another's pool":             {id: "kwok://n1", pool: "OtherNodeClass"},
		"of a pool of ours":             {id: "kwok://n1", pool: "KWOKNodeClass", ours: true},
		"our claim, another's machine":  {id: "other://n1", class: "KWOKNodeClass"},
		"our claim's machine, deleting": {id: "kwok://n1", class: "KWOKNodeClass", pool: "KWOKNodeClass", ours: true, ready: true},
	} {
		n, claim := dying()
		n.Spec.ProviderID, n.Labels = test.id, map[string]string{karpenterv1.NodePoolLabelKey: "p"}
		if !test.ready {
			n.Status.Conditions = nil
		}
		objects := []client.Object{n}
		if test.class != "" {
			claim.Spec.NodeClassRef, claim.Status.ProviderID = classOf(test.class), test.id
			if test.unseen {
				claim.Status.ProviderID = ""
			}
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID}}
			objects = append(objects, claim)
		}
		if test.pool != "" {
			pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			pool.Spec.Template.Spec.NodeClassRef = classOf(test.pool)
			objects = append(objects, pool)
		}
		r := newRig(t, objects...)
		r.cloud.left = -1 // the machine is not found
		r.fleet(ours{r.cloud})
		r.reconcile(t)
		var fresh corev1.Node
		err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &fresh)
		if gone := client.IgnoreNotFound(err) == nil && err != nil; gone != test.ours {
			t.Errorf("%s: let go is %t, want %t", name, gone, test.ours)
		}
		if err == nil && (len(fresh.Spec.Taints) != 0 || len(fresh.Labels) != 1) {
			t.Errorf("%s: taints %v, labels %v; want it left alone", name, fresh.Spec.Taints, fresh.Labels)
		}
	}
}
