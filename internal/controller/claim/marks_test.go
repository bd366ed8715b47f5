package claim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// initialized returns a claim with an initialized node. With reboots, its provider can reboot it.
func initialized(t *testing.T, reboots bool) *rig {
	t.Helper()
	c := newClaim()
	c.Spec.StartupTaints = nil
	r := newRig(t, c, joined())
	if reboots {
		r.config.Reboots, r.config.Fleet = true, fleet.New(rebooting{r.cloud})
		r.step = claim.New(r.config)
	}
	r.reconcile(t)
	r.makeReady(t)
	r.reconcile(t)
	if r.is(t, karpenterv1.ConditionTypeReady) != "True" || !hasAll(r.node(t), "") {
		t.Fatal("the claim is not ready, or its node does not have its marks at first")
	}
	return r
}

// forceNode deletes the node past our finalizer.
func forceNode(t *testing.T, r *rig) {
	t.Helper()
	strip(t, r, "finalizer")
	if err := r.server.Delete(t.Context(), r.node(t)); err != nil {
		t.Fatal(err)
	}
}

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
			r := initialized(t, true)
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
	r := initialized(t, false)
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
	r := initialized(t, false)
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

// P-40: the cache still shows our finalizer on a node that has lost it. The node is deleted only as the API server has
// it, and gets the finalizer before. What else has changed there does not hold its deletion up.
func TestANodeIsNotDeletedByAnOldPicture(t *testing.T) {
	t.Parallel()
	for _, finalizer := range []bool{true, false} {
		r := initialized(t, false)
		old := r.node(t)
		if finalizer {
			now := r.node(t)
			now.Labels["team"] = "shop"
			r.put(t, now)
		} else {
			strip(t, r, "finalizer")
		}
		r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
			List: func(ctx context.Context, server client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				if nodes, is := list.(*corev1.NodeList); is {
					nodes.Items = []corev1.Node{*old.DeepCopy()}
					return nil
				}
				return server.List(ctx, list, options...)
			}})
		r.step = claim.New(r.config)
		if err := r.server.Delete(t.Context(), r.claim(t)); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		if node := r.node(t); node.DeletionTimestamp == nil ||
			!slices.Contains(node.Finalizers, karpenterv1.TerminationFinalizer) {
			t.Errorf("the finalizer stayed: %t; the node is %+v, want it there with our finalizer, being deleted",
				finalizer, node)
		}
	}
}

// P-30: somebody deletes the Node past our finalizer, and the machine runs. The claim says so; a kubelet that joins
// again in time makes it ready again. Otherwise the claim is given up, since nobody else would end the machine.
func TestAClaimWhoseNodeIsGoneIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		r := initialized(t, false)
		r.clock.Advance(time.Hour)
		forceNode(t, r)
		wait := r.reconcile(t).RequeueAfter
		ready, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeReady)
		if ready.Status != "Unknown" || ready.Reason != "NodeGone" || !strings.Contains(ready.Message, "n1") {
			t.Errorf("Ready=%s (%s) %q, want Unknown (NodeGone) with the node's name", ready.Status, ready.Reason,
				ready.Message)
		}
		if wait <= 0 || wait > 15*time.Minute {
			t.Errorf("the claim is looked at again after %s, want within 15m", wait)
		}
		r.clock.Advance(14 * time.Minute)
		r.reconcile(t)
		if r.claim(t).DeletionTimestamp != nil {
			t.Fatal("the claim is given up before its time")
		}
		if back {
			node := joined()
			node.UID, node.CreationTimestamp = "n2", metav1.NewTime(r.clock.Now())
			if err := r.server.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			r.reconcile(t)
			node = r.node(t)
			if !hasAll(node, karpenterv1.NodeInitializedLabelKey) || node.Labels["team"] != "a" ||
				node.Labels[karpenterv1.NodeInitializedLabelKey] != "" || slices.ContainsFunc(node.Spec.Taints,
				func(t corev1.Taint) bool { return t.Key == karpenterv1.UnregisteredTaintKey }) {
				t.Errorf("the node that joined again is not adopted: labels %v, taints %v", node.Labels,
					node.Spec.Taints)
			}
			r.makeReady(t)
		}
		r.clock.Advance(time.Minute)
		r.reconcile(t)
		got := r.claim(t)
		if gone := got == nil || got.DeletionTimestamp != nil; gone == back {
			t.Errorf("back %t: the claim is given up: %t", back, gone)
		}
		if back && (r.is(t, karpenterv1.ConditionTypeReady) != "True" || !hasAll(r.node(t), "")) {
			t.Error("the claim is not ready although its node is back, or the node has not its marks")
		}
	}
}

// P-30, K-49: the same while the node reboots: no one waits for the end of a reboot of a node that is gone.
func TestARebootingClaimWhoseNodeIsGoneIsGivenUp(t *testing.T) {
	t.Parallel()
	r := initialized(t, true)
	r.clock.Advance(time.Hour)
	reboots(t, r, karpenterv1.ReasonRebootIssued)
	r.reconcile(t)
	forceNode(t, r)
	r.reconcile(t)
	r.clock.Advance(15 * time.Minute)
	r.reconcile(t)
	if got := r.claim(t); got != nil && got.DeletionTimestamp == nil {
		t.Errorf("the claim stays: %+v", got.Status.Conditions)
	}
}

// P-30: a node that only the cache lacks is not gone: the claim is not given up.
func TestANodeThatOnlyTheCacheLacksIsNotGone(t *testing.T) {
	t.Parallel()
	r := initialized(t, false)
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if _, nodes := list.(*corev1.NodeList); nodes {
				return nil
			}
			return w.List(ctx, list, options...)
		},
	})
	r.step = claim.New(r.config)
	r.reconcile(t)
	r.clock.Advance(20 * time.Minute)
	r.reconcile(t)
	if got := r.claim(t); got == nil || got.DeletionTimestamp != nil {
		t.Error("the claim is given up although its node is there")
	}
}
