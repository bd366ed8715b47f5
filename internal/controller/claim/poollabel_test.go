package claim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// relabelBefore lets a user give the claim the label of another pool right before the nth patch of its metadata.
func (r *rig) relabelBefore(t *testing.T, nth int) {
	t.Helper()
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if _, is := o.(*karpenterv1.NodeClaim); is {
				if nth--; nth == 0 {
					live := r.claim(t)
					live.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
					if err := c.Update(ctx, live); err != nil {
						return err
					}
				}
			}
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			if n, is := o.(*corev1.Node); is && n.Labels[karpenterv1.NodePoolLabelKey] != "default" {
				t.Errorf("the node gets the label %q", n.Labels[karpenterv1.NodePoolLabelKey])
			}
			return nil
		},
	})
	r.step = claim.New(r.config)
}

// L-13: a machine and its node get the label of the pool that the claim was made for. This holds even if a user
// changes the claim's label during the launch: while the record, or the launch's result, is written.
func TestALabelThatChangesDuringTheLaunchReachesNothing(t *testing.T) {
	t.Parallel()
	for name, nth := range map[string]int{"the record": 1, "the labels of the machine": 2} {
		c, n := made("c1", "pool-uid"), joined()
		n.Spec.ProviderID = "fake://" + string(c.UID)
		r := newRig(t, hardPool(1), c, n)
		r.relabelBefore(t, nth)
		for range 3 {
			r.reconcile(t)
			r.clock.Advance(2 * time.Second)
		}
		got := map[string]string{
			"machine": r.cloud.labels[karpenterv1.NodePoolLabelKey],
			"claim":   r.claim(t).Labels[karpenterv1.NodePoolLabelKey],
			"node":    r.node(t).Labels[karpenterv1.NodePoolLabelKey],
		}
		for what, label := range got {
			if label != "default" {
				t.Errorf("changed while %s is written, the %s has label %q", name, what, label)
			}
		}
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, event.NodePoolLabelRestored) {
			t.Errorf("nothing was said of it: %q", said)
		}
	}
}

// L-13: the label of a node is put back as that of its claim is; a claim made by hand is where its label says.
func TestTheLabelOfTheNodesPoolIsPutBack(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]*karpenterv1.NodeClaim{"default": made("c1", "pool-uid"),
		"elsewhere": newClaim()} {
		joins := joined()
		joins.Spec.ProviderID = "fake://" + string(c.UID)
		r := newRig(t, hardPool(1), c, joins)
		r.reconcile(t)
		r.clock.Advance(2 * time.Second)
		r.reconcile(t)
		n := r.node(t)
		n.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
		if err := r.server.Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		r.reconcile(t)
		said := strings.Join(r.tape.Said(), "\n")
		told := strings.Count(said, event.NodePoolLabelRestored) == 1
		if label := r.node(t).Labels[karpenterv1.NodePoolLabelKey]; label != want || told != (want == "default") {
			t.Errorf("label %q, want %q; events %s", label, want, said)
		}
	}
}

// L-13: a node that is being deleted gets no new pods, so nothing is written to it any more.
func TestANodeThatGoesKeepsTheLabelItWasGiven(t *testing.T) {
	t.Parallel()
	c, n := made("c1", "pool-uid"), joined()
	n.Spec.ProviderID = "fake://" + string(c.UID)
	r := newRig(t, hardPool(1), c, n)
	r.reconcile(t)
	r.clock.Advance(2 * time.Second)
	r.reconcile(t)
	n = r.node(t)
	n.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
	if err := r.server.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if n := r.node(t); n.DeletionTimestamp == nil || n.Labels[karpenterv1.NodePoolLabelKey] != "elsewhere" {
		t.Errorf("deleted %t, label %q; want it deleted, and as it was", n.DeletionTimestamp != nil,
			n.Labels[karpenterv1.NodePoolLabelKey])
	}
}

// a node has a label with its node class, as Karpenter's nodes do. So its owner is known after its claim is
// gone, even for a claim made by hand in another program's pool.
func TestANodeNamesItsNodeClass(t *testing.T) {
	t.Parallel()
	c := newClaim()
	r := newRig(t, c, joined())
	r.reconcile(t)
	ref := r.claim(t).Spec.NodeClassRef
	label := fleet.ClassLabel(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
	if got := r.node(t).Labels[label]; got == "" || got != ref.Name {
		t.Errorf("the node's label %s is %q, want %q", label, got, ref.Name)
	}
}

// L-13: no machine is launched with another pool's label. If a label changed during the launch cannot be restored, the
// failure is returned and the launch waits.
func TestWithoutItsLabelAClaimIsNotLaunched(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	patches := 0
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if patches++; patches > 1 {
				return controllertest.ErrRefused
			}
			live := r.claim(t)
			live.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
			if err := c.Update(ctx, live); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...) // the record
		},
	})
	r.step = claim.New(r.config)
	err := r.play(t, nil)()
	if !errors.Is(err, controllertest.ErrRefused) || r.cloud.launches != 0 {
		t.Errorf("error %v, %d launches", err, r.cloud.launches)
	}
}

// L-13: that the label of a node cannot be put back is told.
func TestNoFailureToPutTheNodesLabelBackIsSwallowed(t *testing.T) {
	t.Parallel()
	failed := controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		c, n := made("c1", "pool-uid"), joined()
		n.Spec.ProviderID = "fake://" + string(c.UID)
		r := newRig(t, hardPool(1), c, n)
		r.reconcile(t)
		relabelled := r.node(t)
		relabelled.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
		if err := r.server.Update(t.Context(), relabelled); err != nil {
			t.Fatal(err)
		}
		r.fail(f)
		return r.play(t, nil)
	}, "get v1.NodePool")
	if !slices.Contains(failed, "patch v1.Node") {
		t.Errorf("failed were %v, want the node among them", failed)
	}
}
