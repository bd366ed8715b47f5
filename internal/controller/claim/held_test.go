package claim_test

import (
	"errors"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// P-40, D-08: a node that somebody else's finalizer holds after we have let it go does not hold its claim, once the instance is
// proved gone: the claim would use up its pool's budget for as long as the node hangs.
func TestANodeHeldBySomebodyElseDoesNotHoldItsClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	n := joined()
	n.Finalizers = []string{karpenterv1.TerminationFinalizer, "example.com/hold"}
	if err := errors.Join(r.server.Create(t.Context(), n), r.server.Delete(t.Context(), r.claim(t))); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	held := r.node(t)
	held.Finalizers = []string{"example.com/hold"} // drained; but the instance is still ending
	if err := r.server.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if result := r.reconcile(t); result.RequeueAfter == 0 || r.claim(t) == nil || len(r.cloud.machines) != 1 {
		t.Fatalf("again after %s, %d machines: the claim stays until its instance is proved gone", result.RequeueAfter, len(r.cloud.machines))
	}
	clear(r.cloud.machines)
	if r.reconcile(t); r.claim(t) != nil || r.node(t).DeletionTimestamp == nil {
		t.Fatal("the instance is gone: the claim must go, whatever holds the node")
	}
}
