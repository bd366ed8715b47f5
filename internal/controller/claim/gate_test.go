package claim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// hardPool is a pool with a hard limit; below 0 it has none.
func hardPool(nodes int64) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool-uid"}}
	pool.Spec.Template.Spec.NodeClassRef = newClaim().Spec.NodeClassRef
	if nodes >= 0 {
		pool.Spec.HardLimits = karpenterv1.Limits{"nodes": *resource.NewQuantity(nodes, resource.DecimalSI)}
	}
	return pool
}

// made is a claim that the pool of that UID has made.
func made(name, poolUID string) *karpenterv1.NodeClaim {
	c := newClaim()
	c.Name, c.UID = name, types.UID("uid-of-"+name)
	c.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool", Name: "default", UID: types.UID(poolUID),
	}}
	return c
}

// holder makes the rig's controller one of that process.
func (r *rig) holder(name string) *claim.Controller {
	r.config.Holder = name
	r.step = claim.New(r.config)
	return r.step
}

// L-14: above the hard limit, a claim without a machine waits and says why. It is launched once there is room.
func TestAClaimAboveTheHardLimitWaits(t *testing.T) {
	t.Parallel()
	relabelled := made("other", "pool-uid")
	relabelled.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere" // its owner counts
	r := newRig(t, hardPool(1), made("c1", "pool-uid"), relabelled)
	r.holder("a")
	again := r.reconcile(t)
	launched, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeLaunched)
	if r.cloud.launches != 0 || again.RequeueAfter == 0 || launched.Status != "Unknown" ||
		!strings.Contains(launched.Message, "NodePool default has 2 NodeClaims, limit 1 (hard limit)") {
		t.Fatalf("%d launches, asks again after %s, condition %+v: want it to wait and say why", r.cloud.launches,
			again.RequeueAfter, launched)
	}
	relabelled.Finalizers = nil
	if err := r.server.Update(t.Context(), relabelled); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Delete(t.Context(), relabelled); err != nil {
		t.Fatal(err)
	}
	if r.reconcile(t); r.cloud.launches != 1 {
		t.Fatalf("%d launches; want one, now that there is room", r.cloud.launches)
	}
}

// L-14: a machine of the pool whose claim is gone counts.
func TestAMachineWithoutAClaimCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	stray := provider.Instance{ProviderID: "fake://stray", ClaimUID: "gone",
		Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}}
	r.cloud.machines[stray.ProviderID] = stray
	if r.reconcile(t); r.cloud.launches != 0 {
		t.Fatal("launched beside a machine that nobody accounts for")
	}
	delete(r.cloud.machines, stray.ProviderID)
	if r.reconcile(t); r.cloud.launches != 1 {
		t.Fatal("not launched although that machine is gone")
	}
}

// L-14: a claim of a pool that is gone, or was made anew under its name, is let go without a machine.
func TestAClaimOfAPoolBeforeIsLetGo(t *testing.T) {
	t.Parallel()
	for name, pools := range map[string][]client.Object{"gone": nil, "made anew": {hardPool(-1)}} {
		r := newRig(t, append(pools, made("c1", "pool-before"))...)
		r.reconcile(t)
		if c := r.claim(t); r.cloud.launches != 0 || c.DeletionTimestamp == nil ||
			!strings.Contains(strings.Join(r.tape.Said(), "\n"), name) {
			t.Errorf("%s: %d launches, deleted %v, events %v", name, r.cloud.launches, c.DeletionTimestamp,
				r.tape.Said())
		}
	}
}

// L-14: until when a launch may land is recorded on the claim before the launch. A process that takes over meanwhile
// records that several may have a launch under way.
func TestTheRecordOfALaunch(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	r.cloud.failure = provider.ErrThrottled
	record := func() string { return r.claim(t).Annotations[karpenterv1.LaunchUntilAnnotationKey] }
	try := func(holder string) {
		t.Helper()
		_, _ = r.holder(holder).Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	}
	try("a")
	until := r.clock.Now().Add(provider.LaunchFor)
	if want := until.UTC().Format(time.RFC3339) + " a"; record() != want || !r.cloud.notAfter.Equal(until) {
		t.Fatalf("record %q, launch until %s; want %q", record(), r.cloud.notAfter, want)
	}
	r.clock.Advance(10 * time.Second)
	if try("b"); !strings.HasSuffix(record(), " several") {
		t.Errorf("record %q while a launch of a may be on its way; want several", record())
	}
	r.clock.Advance(provider.LaunchFor + provider.ClockSkew)
	if try("b"); !strings.HasSuffix(record(), " b") {
		t.Errorf("record %q after nothing of before can land; want b", record())
	}
}

// L-14: a pool without a hard limit costs no list and no record.
func TestNoLimitNoRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(-1), made("c1", "pool-uid"))
	if r.reconcile(t); r.cloud.launches != 1 || r.claim(t).Annotations[karpenterv1.LaunchUntilAnnotationKey] != "" {
		t.Errorf("%d launches, annotations %v", r.cloud.launches, r.claim(t).Annotations)
	}
	if want := r.clock.Now().Add(provider.LaunchFor); !r.cloud.notAfter.Equal(want) {
		t.Errorf("the launch may land until %s, want %s", r.cloud.notAfter, want)
	}
}

// L-14: a deleted claim with an unknown machine keeps its finalizer until no launch for it can land or be missing from
// the list. A refusal frees it at once, if nobody else may have a launch under way.
func TestADeletedClaimWaitsForItsLaunch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		by      string // who finalizes
		before  error  // the answer to a launch before the one that is refused; nil for none
		atOnce  bool
		refused bool
	}{
		"refused, and by nobody else":      {by: "a", refused: true, atOnce: true},
		"refused, another process ends it": {by: "b", refused: true},
		"refused after one without answer": {by: "a", refused: true, before: errors.New("no answer")},
		"without answer":                   {by: "a", before: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, hardPool(1), made("c1", "pool-uid"))
			r.holder("a")
			if r.cloud.failure = test.before; test.before != nil {
				_, _ = r.step.Reconcile(t.Context(),
					reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
			}
			if test.refused {
				r.cloud.failure = &provider.InsufficientCapacityError{}
				r.reconcile(t)
			} else if err := r.server.Delete(t.Context(), r.claim(t)); err != nil {
				t.Fatal(err)
			}
			if test.by != "a" {
				r.holder(test.by)
			}
			r.reconcile(t)
			if gone := r.claim(t) == nil; gone != test.atOnce {
				t.Fatalf("gone at once: %t, want %t", gone, test.atOnce)
			}
			r.clock.Advance(provider.LaunchFor + provider.ClockSkew)
			if r.reconcile(t); !test.atOnce && r.claim(t) == nil {
				t.Fatal("gone before the list must show what was launched")
			}
			r.clock.Advance(provider.ListLag + time.Second)
			if r.reconcile(t); r.claim(t) != nil {
				t.Fatal("still there although nothing can land any more")
			}
		})
	}
}

// L-13, L-14: a claim stays with the pool that it was made for.
func TestTheLabelOfTheClaimsPoolIsPutBack(t *testing.T) {
	t.Parallel()
	c := made("c1", "pool-uid")
	c.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
	r := newRig(t, hardPool(1), c)
	r.reconcile(t)
	if label := r.claim(t).Labels[karpenterv1.NodePoolLabelKey]; label != "default" ||
		!strings.Contains(strings.Join(r.tape.Said(), "\n"), event.NodePoolLabelRestored) {
		t.Errorf("label %q, events %v", label, r.tape.Said())
	}
}
