package claim_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// strip takes one of our marks off a node.
func strip(t *testing.T, r *rig, what string) {
	t.Helper()
	node := r.node(t)
	switch what {
	case "finalizer":
		node.Finalizers = nil
	case "owner":
		node.OwnerReferences = nil
	default:
		delete(node.Labels, what)
	}
	r.put(t, node)
}

// hasAll reports whether a node has all our marks, apart from a label.
func hasAll(node *corev1.Node, but string) bool {
	return slices.Contains(node.Finalizers, karpenterv1.TerminationFinalizer) && len(node.OwnerReferences) == 1 &&
		node.Labels[karpenterv1.NodeRegisteredLabelKey] == "true" &&
		(but == karpenterv1.NodeInitializedLabelKey || node.Labels[karpenterv1.NodeInitializedLabelKey] == "true")
}

// P-40, K-49: what somebody takes off an initialized node comes back: without the finalizer it would go undrained, and
// without the label it would count as on its way for ever. While a node reboots, its label stays off.
func TestMarksOfANodeComeBack(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"finalizer", "owner", karpenterv1.NodeRegisteredLabelKey,
		karpenterv1.NodeInitializedLabelKey} {
		for _, ongoing := range []bool{false, true} {
			c1 := newClaim()
			c1.Spec.StartupTaints = nil
			r := newRig(t, c1, joined())
			r.config.Reboots, r.config.Fleet = true, fleet.New(rebooting{r.cloud})
			r.step = claim.New(r.config)
			r.reconcile(t)
			r.makeReady(t)
			r.reconcile(t)
			if !hasAll(r.node(t), "") {
				t.Fatal("the node does not have its marks at first")
			}
			off := ""
			if ongoing {
				reboots(t, r, karpenterv1.ReasonRebootRequested)
				strip(t, r, karpenterv1.NodeInitializedLabelKey)
				off = karpenterv1.NodeInitializedLabelKey
			}
			strip(t, r, what)
			r.reconcile(t)
			node := r.node(t)
			if !hasAll(node, off) || ongoing && node.Labels[karpenterv1.NodeInitializedLabelKey] != "" {
				t.Errorf("%s off, rebooting %t: the node has labels %v, finalizers %v, owners %v", what, ongoing,
					node.Labels, node.Finalizers, node.OwnerReferences)
			}
		}
	}
}

// P-40: a claim whose node has lost our finalizer is deleted: the node gets the finalizer before it is deleted, so
// that it is drained.
func TestANodeWithoutFinalizerIsDrainedAllTheSame(t *testing.T) {
	t.Parallel()
	c1 := newClaim()
	c1.Spec.StartupTaints = nil
	r := newRig(t, c1, joined())
	r.reconcile(t)
	r.makeReady(t)
	r.reconcile(t)
	strip(t, r, "finalizer")
	if err := r.server.Delete(t.Context(), r.claim(t)); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if node := r.node(t); node == nil || node.DeletionTimestamp == nil || !hasAll(node, "") {
		t.Errorf("the node is %+v; want it there with our finalizer, being deleted", node)
	}
}

// K-49: a taint of a reboot that no claim knows of, for instance one by hand, goes.
func TestATaintOfNoRebootGoes(t *testing.T) {
	t.Parallel()
	c1 := newClaim()
	c1.Spec.StartupTaints = nil
	r := newRig(t, c1, joined())
	r.reconcile(t)
	r.makeReady(t)
	r.reconcile(t)
	node := r.node(t)
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: karpenterv1.RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule})
	r.put(t, node)
	r.reconcile(t)
	for _, taint := range r.node(t).Spec.Taints {
		if taint.Key == karpenterv1.RebootingTaintKey {
			t.Error("the taint stays")
		}
	}
}
