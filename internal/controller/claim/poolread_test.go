package claim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// poolReads lets a function answer what reads of pools ask for.
func poolReads(server client.WithWatch, answer func(name string) error) client.WithWatch {
	return interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, pool := o.(*karpenterv1.NodePool); pool {
				if err := answer(key.Name); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, options...)
		},
	})
}

// setCondition writes a condition of the claim, as another controller does.
func (r *rig) setCondition(t *testing.T, value condition.Value) {
	t.Helper()
	one := r.claim(t)
	condition.Set(&one.Status.Conditions, 0, value, r.clock.Now())
	if err := r.server.Status().Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
}

// D-03, D-06, D-07: an unreadable pool is not a missing one. A drifted claim stays drifted, and an expiring claim
// waits for its pool. What needs the pool is an error; what can wait is checked again after 30 seconds.
func TestAPoolThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready, chosen, expired bool
		fails                  bool
		again                  time.Duration
	}{
		"registered":          {again: 30 * time.Second},
		"ready":               {ready: true, fails: true},
		"chosen to go":        {ready: true, chosen: true, again: 30 * time.Second},
		"chosen, and expired": {ready: true, chosen: true, expired: true, fails: true, again: 30 * time.Second},
	} {
		pool, one := aPool(), newClaim()
		pool.Annotations = map[string]string{karpenterv1.GracefulExpirationAnnotationKey: "true"}
		one.Spec.ExpireAfter.Duration = new(time.Hour)
		r := newRig(t, pool, one, joined())
		r.config.Timeouts = claim.Timeouts{}
		r.config.Client = poolReads(r.server, func(string) error { return nil })
		r.step = claim.New(r.config)
		r.reconcile(t)
		if c.ready {
			r.makeReady(t)
			r.reconcile(t)
		}
		if c.chosen {
			r.setCondition(t, condition.True(karpenterv1.ConditionTypeDisruptionReason, "Drifted", ""))
		}
		r.setCondition(t, condition.True(karpenterv1.ConditionTypeDrifted, "NodePoolDrifted", ""))
		if c.expired {
			r.clock.Advance(time.Hour)
		}
		r.config.Client = poolReads(r.server, func(string) error { return controllertest.ErrRefused })
		r.step = claim.New(r.config)
		result, err := r.step.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		if errors.Is(err, controllertest.ErrRefused) != c.fails || result.RequeueAfter != c.again {
			t.Errorf("%s: error %v, asks again after %s; want one: %t, %s", name, err, result.RequeueAfter, c.fails,
				c.again)
		}
		if r.drifted(t) != "NodePoolDrifted" || r.claim(t).DeletionTimestamp != nil {
			t.Errorf("%s: drifted %q, deleted %v", name, r.drifted(t), r.claim(t).DeletionTimestamp)
		}
	}
}

// P-33: for a claim without a pool nobody looks for one: it is launched, becomes a node, and expires.
func TestAClaimWithoutAPoolAsksForNone(t *testing.T) {
	t.Parallel()
	one := newClaim()
	one.Labels = nil
	one.Spec.ExpireAfter.Duration = new(time.Hour)
	r := newRig(t, one, joined())
	server := poolReads(r.server, func(name string) error { return errors.New("read the pool " + name) })
	r.config.Client, r.config.Live = server, server
	r.step = claim.New(r.config)
	r.reconcile(t)
	r.makeReady(t)
	if r.reconcile(t); r.is(t, karpenterv1.ConditionTypeReady) != "True" {
		t.Fatal("it is no node")
	}
	if label, found := r.node(t).Labels[karpenterv1.NodePoolLabelKey]; found {
		t.Errorf("its node has the label of the pool %q", label)
	}
	r.clock.Advance(time.Hour)
	if r.reconcile(t); r.claim(t).DeletionTimestamp == nil {
		t.Error("it does not expire")
	}
}

// D-06: the API server itself is asked about a drift that is new, and about nothing else.
func TestHowOftenADriftIsAskedAboutLive(t *testing.T) {
	t.Parallel()
	another := func(p *karpenterv1.NodePool) {
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"generation": "2"}
	}
	for name, c := range map[string]struct {
		change func(*rig)
		reads  int
	}{
		"no drift":  {func(*rig) {}, 0},
		"new":       {func(r *rig) { r.edit(t, another) }, 1},
		"known":     {func(r *rig) { r.edit(t, another); r.reconcile(t) }, 0},
		"pool gone": {func(r *rig) { r.dropPool(t) }, 0},
	} {
		r, _ := driftRig(t)
		c.change(r)
		reads := 0
		r.config.Live = poolReads(r.server, func(string) error { reads++; return nil })
		r.step = claim.New(r.config)
		if r.reconcile(t); reads != c.reads {
			t.Errorf("%s: %d reads, want %d", name, reads, c.reads)
		}
	}
}

func (r *rig) dropPool(t *testing.T) {
	t.Helper()
	if err := r.server.Delete(t.Context(), aPool()); err != nil {
		t.Fatal(err)
	}
}

// D-03: without its pool a claim keeps what is known about its quiet time.
func TestAClaimWhosePoolIsGoneKeepsItsQuietTime(t *testing.T) {
	t.Parallel()
	r := settled(t, new(time.Duration(0)), func(*karpenterv1.NodeClaim) {})
	r.dropPool(t)
	r.clock.Advance(time.Hour)
	r.podComes("a")
	r.reconcile(t)
	if got := r.claim(t).Status.LastPodEventTime; !got.IsZero() || r.is(t,
		karpenterv1.ConditionTypeConsolidatable) != "True" {
		t.Errorf("stamp %s, Consolidatable=%s: want no stamp, and the condition as it was", got,
			r.is(t, karpenterv1.ConditionTypeConsolidatable))
	}
}

// D-07: a claim that expires before it has a machine goes for that reason, and no longer reports why it has none. No
// failure on this way is swallowed.
func TestAClaimThatExpiresWithoutAMachine(t *testing.T) {
	t.Parallel()
	quota := &provider.LaunchError{ConditionReason: "Quota", Message: "no quota"}
	for name, failure := range map[string]error{"waits": nil, "cannot be launched": quota,
		"unknown": errors.New("no answer")} {
		expiring := func(t *testing.T) *rig {
			t.Helper()
			one := made("c1", "pool-uid")
			one.Spec.ExpireAfter.Duration = new(time.Minute)
			pool := hardPool(0)
			if failure != nil {
				pool = hardPool(-1)
			}
			r := newRig(t, pool, one)
			r.clock.Advance(time.Minute)
			r.cloud.failure = failure
			return r
		}
		r := expiring(t)
		r.reconcile(t)
		said := r.tape.Said()
		if r.claim(t).DeletionTimestamp == nil || len(said) != 1 || !strings.Contains(said[0], "Expired") ||
			r.is(t, karpenterv1.ConditionTypeLaunched) != "" {
			t.Errorf("%s: deleted %v, said %q, Launched=%s", name, r.claim(t).DeletionTimestamp, said,
				r.is(t, karpenterv1.ConditionTypeLaunched))
		}
		controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			r := expiring(t)
			r.fail(f)
			return r.play(t, nil)
		}, "launch") // it expires whatever the launch answers
	}
}

// L-14: nothing that fails on the way of a launch under a hard limit is swallowed: without the record there is no
// launch.
func TestNoFailureUnderAHardLimitIsSwallowed(t *testing.T) {
	t.Parallel()
	failed := controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := newRig(t, hardPool(1), made("c1", "pool-uid"))
		r.config.Holder = "a"
		r.fail(f)
		return func() error {
			_, err := r.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
			if record := r.claim(t).Annotations[karpenterv1.LaunchUntilAnnotationKey]; r.cloud.launches > 0 &&
				record == "" {
				t.Errorf("%d launches without a record", r.cloud.launches)
			}
			return err
		}
	}, "get v1.NodePool") // the drift may wait
	if !slices.Contains(failed, "launch") {
		t.Errorf("failed were %v, want the launch among them", failed)
	}
}
