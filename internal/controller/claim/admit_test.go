package claim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// P-33, L-14: a claim that was made by hand is held to the limits of the pool in its label, and to none without a
// pool.
func TestAClaimMadeByHandAndItsPool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pools    []client.Object
		label    string
		launches int
	}{
		"within the limit": {[]client.Object{hardPool(1)}, "default", 1},
		"above the limit":  {[]client.Object{hardPool(0)}, "default", 0},
		"of no pool":       {[]client.Object{hardPool(0)}, "", 1},
		"pool is gone":     {nil, "default", 1},
	} {
		one := newClaim()
		one.Labels = map[string]string{karpenterv1.NodePoolLabelKey: c.label}
		r := newRig(t, append(c.pools, one)...)
		r.reconcile(t)
		if r.cloud.launches != c.launches {
			t.Errorf("%s: %d launches, want %d", name, r.cloud.launches, c.launches)
		}
		if want := r.clock.Now().Add(provider.LaunchFor); c.launches == 1 && !r.cloud.notAfter.Equal(want) {
			t.Errorf("%s: the launch may land until %s, want %s", name, r.cloud.notAfter, want)
		}
	}
}

// L-14: a waiting claim says how many claims exist and what the limit is, and how many unaccounted machines. It asks
// again in 2 s, and expires like any other.
func TestWhatAWaitingClaimSays(t *testing.T) {
	t.Parallel()
	bad := hardPool(1)
	bad.Spec.HardLimits["nodes"] = resource.MustParse("-1")
	for name, c := range map[string]struct {
		pool   *karpenterv1.NodePool
		strays int
		want   string
	}{
		"above": {hardPool(1), 0, "NodePool default has 2 NodeClaims, limit 1 (hard limit)"},
		"with strays": {hardPool(2), 1,
			"NodePool default has 2 NodeClaims, limit 2 (hard limit); " +
				"beside them instances that are without a NodeClaim of the pool: 1"},
		"nonsense": {bad, 0, "NodePool default: spec.hardLimits.nodes is -1"},
	} {
		one := made("c1", "pool-uid")
		one.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: new(time.Hour)}
		r := newRig(t, c.pool, one, made("other", "pool-uid"))
		if c.strays > 0 {
			r.cloud.machines["fake://stray"] = provider.Instance{ProviderID: "fake://stray",
				Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}}
		}
		result := r.reconcile(t)
		launched, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeLaunched)
		if launched.Status != metav1.ConditionUnknown || launched.Reason != "HardLimit" ||
			!strings.HasPrefix(launched.Message, c.want) ||
			c.strays == 0 && strings.Contains(launched.Message, "beside them") {
			t.Errorf("%s: the claim says %+v, want %q", name, launched, c.want)
		}
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "No instance is launched yet: "+c.want) {
			t.Errorf("%s: events %q", name, said)
		}
		if result.RequeueAfter != 2*time.Second || r.cloud.launches != 0 {
			t.Errorf("%s: %d launches, asks again after %s; want none, 2s", name, r.cloud.launches,
				result.RequeueAfter)
		}
		r.clock.Advance(time.Hour)
		if r.reconcile(t); r.claim(t).DeletionTimestamp == nil {
			t.Errorf("%s: it waits for longer than it may live", name)
		}
	}
}

// peer is a cloud in which something happens while it is asked for its machines.
type peer struct {
	*cloud
	meanwhile func()
}

func (p peer) List(ctx context.Context) ([]provider.Instance, error) {
	p.meanwhile()
	return p.cloud.List(ctx)
}

// L-14: of two claims of one pool only one reads the pool. The other comes again in 50 ms and uses what was read.
func TestClaimsOfAPoolReadItOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(2), made("c1", "pool-uid"), made("c2", "pool-uid"))
	lists, second := 0, reconcile.Request{NamespacedName: types.NamespacedName{Name: "c2"}}
	r.config.Fleet = fleet.New(peer{r.cloud, func() {
		lists++
		if result, err := r.step.Reconcile(t.Context(), second); err != nil ||
			result.RequeueAfter != 50*time.Millisecond || r.cloud.launches != 0 {
			t.Errorf("meanwhile: %d launches, asks again after %s, error %v; want to come again in 50ms",
				r.cloud.launches, result.RequeueAfter, err)
		}
	}})
	r.step = claim.New(r.config)
	r.reconcile(t)
	if _, err := r.step.Reconcile(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if r.cloud.launches != 2 || lists != 1 {
		t.Errorf("%d launches after %d reads of the pool, want 2 after one", r.cloud.launches, lists)
	}
}

// L-14: the cache is not enough. A claim is not launched if on the API server it is gone, being deleted, or without
// our finalizer; the watch will show that. Claims of other pools do not count.
func TestOnlyAClaimThatLivesIsLaunched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live     func(*karpenterv1.NodeClaim)
		launches int
	}{
		"as cached": {func(*karpenterv1.NodeClaim) {}, 1},
		"gone":      {func(c *karpenterv1.NodeClaim) { c.Name, c.UID = "another", "another" }, 0},
		"goes": {func(c *karpenterv1.NodeClaim) { c.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()} },
			0},
		"no finalizer": {func(c *karpenterv1.NodeClaim) { c.Finalizers = nil }, 0},
	} {
		foreign, live := made("foreign", "other-uid"), made("c1", "pool-uid")
		foreign.Labels[karpenterv1.NodePoolLabelKey] = "other"
		c.live(live)
		r := newRig(t, hardPool(1), made("c1", "pool-uid"), foreign)
		r.config.Live = newRig(t, hardPool(1), live, foreign).server
		r.step = claim.New(r.config)
		result := r.reconcile(t)
		if r.cloud.launches != c.launches || c.launches == 0 && result.RequeueAfter != 2*time.Second {
			t.Errorf("%s: %d launches, asks again after %s; want %d", name, r.cloud.launches, result.RequeueAfter,
				c.launches)
		}
	}
}

// L-14: no failure at the gate counts as an answer, nor a failure to report why a claim waits or goes.
func TestNoFailureAtTheGateIsSwallowed(t *testing.T) {
	t.Parallel()
	bad := hardPool(1)
	bad.Spec.HardLimits["nodes"] = resource.MustParse("-1")
	again := hardPool(-1)
	again.UID = "made-anew"
	for name, objects := range map[string][]client.Object{
		"waits": {hardPool(0)}, "nonsense": {bad}, "gone": nil, "made anew": {again},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
				var own []client.Object
				for _, o := range objects {
					own = append(own, o.DeepCopyObject().(client.Object))
				}
				r := newRig(t, append(own, made("c1", "pool-uid"))...)
				r.config.Holder = "a"
				r.fail(f)
				return func() error {
					_, err := r.step.Reconcile(t.Context(),
						reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
					if r.cloud.launches > 0 {
						t.Errorf("%d launches", r.cloud.launches)
					}
					return err
				}
			})
		})
	}
}

// L-14: a claim that is gone when its record is to be written is not launched, and that is no error.
func TestAClaimThatGoesBeforeItsRecordIsNotLaunched(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "c1")
		},
	})
	r.holder("a")
	if r.reconcile(t); r.cloud.launches != 0 {
		t.Errorf("%d launches", r.cloud.launches)
	}
}
