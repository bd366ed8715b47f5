package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// looks counts what is read live: pools and lists of claims. after is called after each.
type looks struct {
	pools, lists int
	after        func()
	fails        func() error
}

func (l *looks) hooks() interceptor.Funcs {
	done := func(err error) error {
		if l.after != nil {
			l.after()
		}
		if err == nil && l.fails != nil {
			err = l.fails()
		}
		return err
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, pool := o.(*karpenterv1.NodePool); !pool {
				return c.Get(ctx, key, o, options...)
			}
			l.pools++
			return done(c.Get(ctx, key, o, options...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			l.lists++
			return c.List(ctx, list, options...)
		},
	}
}

// A plan looks at a pool once, however many launches it has, and lists claims only where they are made in slots.
func TestAPoolIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	for hard, lists := range map[int64]int{limit.None: 0, 3: 1} {
		l := &looks{}
		r := newRig(t, limit.Limits{HardNodes: hard, SoftNodes: limit.None}, l.hooks())
		launches := []plan.Launch{launch(0, "a"), launch(1, "b"), launch(2, "c")}
		for i := range launches {
			if hard == limit.None {
				launches[i].Slot = plan.NoSlot
			}
		}
		r.apply(t, planOf(launches...))
		if l.pools != 1 || l.lists != lists {
			t.Errorf("limit %d: %d reads of the pool and %d lists of claims for one plan, want 1 and %d", hard,
				l.pools, l.lists, lists)
		}
	}
}

// L-14: a view is used for 5 s. Then the pool is read again before the next creates, and the new view's age counts
// from its own reading.
func TestAViewIsTakenAnewAfterFiveSeconds(t *testing.T) {
	t.Parallel()
	for passed, want := range map[time.Duration]int{5 * time.Second: 2, 5*time.Second + time.Nanosecond: 3} {
		clock, l := controllertest.NewClock(), &looks{}
		r := newRig(t, limit.Unlimited(), l.hooks())
		creates := 0
		r.with(func(c *apply.Config) {
			c.Now, c.Decided = clock.Now, func(apply.Decision, apply.About) string {
				if creates++; creates%200 == 1 { // once for each 200 that are created at a time
					clock.Advance(passed)
				}
				return ""
			}
		})
		var launches []plan.Launch
		for i := range 600 {
			launches = append(launches, launch(plan.NoSlot, fmt.Sprint("p", i)))
		}
		r.apply(t, planOf(launches...))
		if l.pools != want {
			t.Errorf("%s pass for each 200 claims: the pool was read %d times for 600, want %d", passed, l.pools, want)
		}
	}
}

// L-13, L-14: a second look does not save a launch that was refused or could not be judged: its limits were never
// checked. The other launches are still judged again.
func TestASecondLookSavesNoLaunch(t *testing.T) {
	t.Parallel()
	clock := controllertest.NewClock()
	l := &looks{}
	r := newRig(t, limit.Limits{HardNodes: limit.None, SoftNodes: 1}, l.hooks(), poolNamed("later"))
	r.store.snapshot = cluster.New(cluster.Snapshot{Version: 7, Names: names(), Pools: []*cluster.Pool{
		{Name: "default", UID: "pool-uid-1", Limits: limit.Limits{HardNodes: limit.None, SoftNodes: 0}},
		{Name: "later", UID: "pool-uid-later", Limits: limit.Unlimited()},
	}})
	r.with(func(c *apply.Config) { c.Now = clock.Now })
	later := launch(plan.NoSlot, "b")
	later.Pool, later.PoolUID = "later", "pool-uid-later"
	l.after = func() {
		if clock.Advance(3 * time.Second); l.pools != 2 {
			return
		}
		l.after = nil // both pools were looked at
		clock.Advance(3 * time.Second)
		var p karpenterv1.NodePool
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: "later"}, &p); err != nil {
			t.Fatal(err)
		}
		p.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("1")}
		if err := r.server.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	out := r.apply(t, planOf(launch(plan.NoSlot, "a"), later))
	if len(out.Refused) != 2 || out.Refused[0].Why != "nodes 0 of 0 (soft limit)" ||
		out.Refused[1].Why != "the NodePool has got a hard limit meanwhile" || len(r.claims(t)) != 0 {
		t.Errorf("outcome %+v: want the first refused as before, the second by what was set meanwhile", out)
	}

	failing := 0
	l = &looks{after: func() { clock.Advance(6 * time.Second) }, fails: func() error {
		if failing++; failing == 1 {
			return controllertest.ErrRefused
		}
		return nil
	}}
	r = newRig(t, limit.Limits{HardNodes: limit.None, SoftNodes: 0}, l.hooks())
	r.with(func(c *apply.Config) { c.Now = clock.Now })
	if _, err := r.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a"))); err == nil || len(r.claims(t)) != 0 {
		t.Errorf("error %v, claims %v: want the first look's failure told, and nothing created", err, r.claims(t))
	}
}

// poolNamed is a pool without limits under another name.
func poolNamed(name string) *karpenterv1.NodePool {
	p := pool()
	p.Name, p.UID = name, types.UID("pool-uid-"+name)
	return p
}

// L-14: pools that are gone, unknown or have an invalid limit have different refusals, and nothing is created in them.
func TestAPoolThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rig, *karpenterv1.NodePool) error
		want   string
	}{
		"gone": {func(r *rig, p *karpenterv1.NodePool) error { return r.server.Delete(t.Context(), p) },
			"the NodePool is gone"},
		"not in snapshot": {func(r *rig, _ *karpenterv1.NodePool) error {
			r.store.snapshot = cluster.New(cluster.Snapshot{Version: 7, Names: names()})
			return nil
		}, "the NodePool was deleted"},
		"bad limit": {func(r *rig, p *karpenterv1.NodePool) error {
			p.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("-1")}
			return r.server.Update(t.Context(), p)
		}, "hardLimits"},
	} {
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
		var p karpenterv1.NodePool
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: "default"}, &p); err != nil {
			t.Fatal(err)
		}
		if err := c.change(r, &p); err != nil {
			t.Fatal(err)
		}
		out := r.apply(t, planOf(launch(plan.NoSlot, "a")))
		if len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Why, c.want) || len(r.claims(t)) != 0 {
			t.Errorf("%s: outcome %+v, want it refused: %s", name, out, c.want)
		}
	}
}

// A pool that the snapshot does not have and that cannot be read is a failure, not an answer.
func TestAPoolThatCannotBeReadIsAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), (&looks{fails: func() error { return controllertest.ErrRefused }}).hooks())
	r.store.snapshot = cluster.New(cluster.Snapshot{Version: 7, Names: names()})
	out, err := r.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a")))
	if !errors.Is(err, controllertest.ErrRefused) || len(out.Refused)+len(out.Launched) != 0 {
		t.Errorf("outcome %+v, error %v", out, err)
	}
}

// L-14: claims of other pools do not count, whatever their names.
func TestClaimsOfOtherPoolsDoNotCount(t *testing.T) {
	t.Parallel()
	other := claimIn("default-other")
	other.Labels[karpenterv1.NodePoolLabelKey] = "other"
	r := newRig(t, limit.Limits{HardNodes: 1, SoftNodes: limit.None}, interceptor.Funcs{}, other)
	if out := r.apply(t, planOf(launch(0, "a"))); len(out.Launched) != 1 {
		t.Errorf("outcome %+v: want the claim made, the limit of 1 is not reached", out)
	}
}

// L-31: what replaces nodes of a static pool may use slots above its replicas, up to its node limit; what makes the
// replicas may not.
func TestOnlyReplacementsUseSlotsAboveTheReplicas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		launch plan.Launch
		want   string
	}{
		"a replica": {
			launch(2, "a"), "slot 2 is out of use: 1 NodeClaims exist, the NodePool may have 2",
		},
		"a replacement":               {replacement(2, "old"), ""},
		"a replacement above a limit": {replacement(3, "old"), "slot 3 is out of use"},
	} {
		r := newRig(t, limit.Limits{HardNodes: 3, SoftNodes: limit.None}, interceptor.Funcs{}, claimIn(slotName(0)))
		var p karpenterv1.NodePool
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: "default"}, &p); err != nil {
			t.Fatal(err)
		}
		p.Spec.Replicas = new(int64(2))
		if err := r.server.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		out := r.apply(t, planOf(c.launch))
		if refused := len(out.Refused) == 1; refused != (c.want != "") ||
			refused && !strings.Contains(out.Refused[0].Why,
				c.want) {
			t.Errorf("%s: outcome %+v, want it refused: %q", name, out, c.want)
		}
	}
}

// One plan uses at most 65,536 slots of a pool, for replacements too, so that a mistyped limit does not take an hour.
func TestAHugeLimitIsNotCountedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Limits{HardNodes: 1 << 40, SoftNodes: limit.None}, interceptor.Funcs{})
	out := r.apply(t, planOf(launch(65535, "a"), launch(65536, "b"), replacement(65536, "old")))
	if len(out.Launched) != 1 || len(out.Refused) != 2 || !strings.Contains(out.Refused[0].Why,
		"slot 65536 is out of use") {
		t.Errorf("outcome %+v: want the slots above the bound refused", out)
	}
}
