package claim_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// P-32: a claim that the provider has refused is given up. If the cache does not show this yet, the next step must not
// launch it, because capacity may be back: the claim would go and leave the instance. Found by simulation.
func TestRefusedClaimIsNotLaunchedFromAnOldCache(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	before := r.claim(t)
	var stale *karpenterv1.NodeClaim
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			opts ...client.GetOption) error {
			if claim, is := into.(*karpenterv1.NodeClaim); is && stale != nil {
				stale.DeepCopyInto(claim)
				return nil
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
	r.step = claim.New(r.config)
	r.older(t)
	r.cloud.failure = &provider.InsufficientCapacityError{}
	r.reconcile(t)
	if r.claim(t).DeletionTimestamp == nil {
		t.Fatal("the refused claim is not given up")
	}
	stale, r.cloud.failure = before, nil
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(before)}
	// the picture is old
	if _, err := r.step.Reconcile(t.Context(), request); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	stale = nil
	r.reconcile(t)
	if r.claim(t) != nil || r.cloud.launches != 1 || len(r.cloud.machines) != 0 {
		t.Fatalf("claim %v, %d launches, machines %v; want no claim, one launch, no machine", r.claim(t),
			r.cloud.launches, r.cloud.machines)
	}
}

// P-40: a refusal says nothing about an earlier unanswered launch for the claim, which may land later. So the claim
// stays until the provider's list would show the machine, and ends it. Found by simulation.
func TestRefusalAfterALaunchWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	const late = 21 * time.Second
	for name, c := range map[string]struct {
		first error // the answer to the first launch
		older bool  // the process is older than the claim
		waits bool
	}{
		"all refused":           {provider.ErrThrottled, true, false},
		"one not answered":      {controllertest.ErrRefused, true, true},
		"by the process before": {provider.ErrThrottled, false, true},
	} {
		r := newRig(t, newClaim())
		if c.older {
			r.older(t)
		}
		r.cloud.failure = c.first
		_, _ = r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		r.cloud.failure = &provider.InsufficientCapacityError{}
		r.reconcile(t)
		r.cloud.failure = nil
		if r.reconcile(t); (r.claim(t) != nil) != c.waits {
			t.Errorf("%s: the claim waits %t, want %t", name, !c.waits, c.waits)
		}
		if !c.waits || r.claim(t) == nil {
			continue
		}
		r.clock.Advance(late)
		_, _ = r.cloud.Launch(t.Context(), r.claim(t), r.clock.Now())
		for range 3 { // finds it, ends it, sees it gone
			if r.claim(t) != nil {
				r.reconcile(t)
			}
		}
		if r.claim(t) != nil || len(r.cloud.machines) > 0 {
			t.Errorf("%s: claim %v, machines %v; want neither", name, r.claim(t), r.cloud.machines)
		}
	}
}
