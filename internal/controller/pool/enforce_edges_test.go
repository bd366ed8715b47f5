package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// counting is a cloud that counts how often its machines are listed.
type counting struct {
	*cloud
	machines []provider.Instance
	listed   int
	fails    func() error
}

func (c *counting) Name() string { return "fake" }

func (c *counting) List(context.Context) ([]provider.Instance, error) {
	c.listed++
	if c.fails != nil {
		if err := c.fails(); err != nil {
			return nil, err
		}
	}
	return c.machines, nil
}

// limited is a pool with a hard limit of one node, in its first generation.
type limited struct {
	*rig
	t     *testing.T
	clock *controllertest.Clock
	cloud *counting
	live  client.Reader
	held  time.Duration // by the cloud, at most
}

func hardPool(nodes string) *karpenterv1.NodePool {
	p := newPool()
	p.Generation, p.Spec.HardLimits = 1, karpenterv1.Limits{"nodes": resource.MustParse(nodes)}
	return p
}

func newLimited(t *testing.T, objects ...client.Object) *limited {
	t.Helper()
	r := newRig(t, append(objects, hardPool("1"))...)
	l := &limited{rig: r, t: t, clock: controllertest.NewClock(), cloud: &counting{cloud: r.cloud}, live: r.server}
	l.restart()
	return l
}

// restart begins a new process.
func (l *limited) restart() {
	config := l.config()
	config.Now, config.Fleet, config.Live, config.Held = l.clock.Now, fleet.New(l.cloud), l.live, l.held
	l.step = pool.New(config)
}

// settled waits for what was launched before, and a little longer.
func (l *limited) settled() { l.clock.Advance(5 * time.Minute) }

// change makes the next generation of the pool, or a later one, unseen by the controller.
func (l *limited) change(nodes string, generation int64, changes ...func(p *karpenterv1.NodePool)) {
	l.t.Helper()
	p := l.get()
	p.Generation, p.Spec.HardLimits = generation, karpenterv1.Limits{"nodes": resource.MustParse(nodes)}
	for _, change := range changes {
		change(p)
	}
	if err := l.server.Update(l.t.Context(), p); err != nil {
		l.t.Fatal(err)
	}
}

func (l *limited) get() *karpenterv1.NodePool {
	l.t.Helper()
	var p karpenterv1.NodePool
	if err := l.server.Get(l.t.Context(), types.NamespacedName{Name: "default"}, &p); err != nil {
		l.t.Fatal(err)
	}
	return &p
}

func (l *limited) enforced() karpenterv1.Condition {
	l.t.Helper()
	got, _ := condition.Get(l.get().Status.Conditions, karpenterv1.ConditionTypeHardLimitEnforced)
	return got
}

// says takes a step, and demands what it says and when it wants to look again.
func (l *limited) says(when, reason string, again time.Duration) {
	l.t.Helper()
	if got := l.again(l.t); got != again {
		l.t.Errorf("%s: again after %s, want %s", when, got, again)
	}
	if got := l.enforced(); got.Reason != reason {
		l.t.Errorf("%s: HardLimitEnforced is %s %s %q, want %s", when, got.Status, got.Reason, got.Message, reason)
	}
}

const usual = 30 * time.Second

// L-14: a wait that ends soon is not slept through.
func TestTheEndOfAWaitIsNotMissed(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	l.says("at first", "Settling", usual)
	l.clock.Advance(3*time.Minute + 20*time.Second)
	l.says("shortly before", "Settling", 10*time.Second)
	l.clock.Advance(10 * time.Second)
	l.says("at its end", "Enforced", usual)
}

// L-14, found by EC2 seed 58636: a cloud that accepts requests minutes after they were sent may create a machine for
// that long.
func TestL14_LaunchesThatAreHeldUpAreWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	l.held = 5 * time.Minute
	l.restart()
	l.says("at first", "Settling", usual)
	l.clock.Advance(8*time.Minute + 20*time.Second)
	l.says("shortly before", "Settling", 10*time.Second)
	l.clock.Advance(10 * time.Second)
	l.says("at its end", "Enforced", usual)
}

// L-14: the limit is enforced when the API server and the clouds confirm it, whatever the cache shows; otherwise it is
// checked again in 20 s. Other pools' claims and machines do not matter.
func TestTheAPIServerSaysWhetherALimitIsInForce(t *testing.T) {
	t.Parallel()
	other := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "other",
		Labels: map[string]string{karpenterv1.NodePoolLabelKey: "q"}}}
	reborn, changed := hardPool("1"), hardPool("1")
	reborn.UID, changed.Generation = "another", 2
	claims := func(n int) (list []client.Object) {
		for i := range n {
			list = append(list, claimOf(hardPool("1"), fmt.Sprint("c", i)))
		}
		return list
	}
	for name, c := range map[string]struct {
		live    []client.Object
		strays  int
		reason  string
		message string
		again   time.Duration
	}{
		"as many as allowed": {append(claims(1), hardPool("1"), other), 0, "Enforced",
			"there are never more than 1 instances", usual},
		"more than the cache": {append(claims(3), hardPool("1")), 0, "TooMany", "3 NodeClaims, limit 1 (hard limit)",
			20 * time.Second},
		"machines of nobody": {append(claims(1), hardPool("1")), 2, "StrayInstances",
			"instances of the pool that none of its NodeClaims has: 2", 20 * time.Second},
		"a pool of another kind": {[]client.Object{reborn}, 0, "Settling", "", 20 * time.Second},
		"a pool that changed":    {[]client.Object{changed}, 0, "Settling", "", 20 * time.Second},
		"a pool that is gone":    {nil, 0, "Settling", "", usual},
	} {
		l := newLimited(t, claims(1)...)
		l.live = controllertest.NewServer(t, c.live...).Build()
		l.restart()
		l.says(name, "Settling", usual)
		l.settled()
		for i := range c.strays {
			l.cloud.machines = append(l.cloud.machines,
				provider.Instance{ProviderID: fmt.Sprint("s", i), ClaimUID: "gone",
					Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}})
		}
		for range 2 { // what was said once is no proof
			l.says(name, c.reason, c.again)
		}
		if got := l.enforced().Message; c.message != "" && got != c.message {
			t.Errorf("%s: says %q, want %q", name, got, c.message)
		}
		if n := len(slices.DeleteFunc(l.get().Status.Conditions,
			func(c karpenterv1.Condition) bool { return c.Type != "" })); n != 0 {
			t.Errorf("%s: %d conditions without a type", name, n)
		}
	}
}

// L-14: a limit that cannot be understood is not in force, and says why.
func TestALimitThatMeansNothingIsNotInForce(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	l.change("-1", 1)
	l.says("negative", "InvalidLimits", usual)
	if got := l.enforced(); got.Status != "Unknown" || got.Message == "" {
		t.Errorf("it says %s %q", got.Status, got.Message)
	}
}

// L-14: a failure during a proof is returned and repeated: no answer proves nothing.
func TestNoFailureOfAProofIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		l := newLimited(t)
		l.live = f.Wrap(l.server)
		l.cloud.fails = func() error { return f.Call("list instances") }
		l.restart()
		l.again(t)
		l.settled()
		return func() error {
			_, err := l.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}})
			if (err == nil) != (l.enforced().Status == "True") {
				t.Errorf("HardLimitEnforced is %+v, error %v", l.enforced(), err)
			}
			return err
		}
	})
}

// L-14: an enforced limit stays enforced without another proof, after a restart, and after a single change of the pool
// that keeps or raises it. Everything else starts a new wait: a lower limit, unseen changes, another pool of that
// name.
func TestWhatKeepsALimitInForce(t *testing.T) {
	t.Parallel()
	another := func(p *karpenterv1.NodePool) { p.UID = "another" }
	for name, c := range map[string]struct {
		happens func(l *limited)
		reason  string
	}{
		"nothing":                     {func(*limited) {}, "Enforced"},
		"a restart":                   {func(l *limited) { l.restart() }, "Enforced"},
		"its condition is lost":       {func(l *limited) { l.wipe() }, "Enforced"},
		"a restart, and it is lost":   {func(l *limited) { l.wipe(); l.restart() }, "Settling"},
		"a change that leaves it":     {func(l *limited) { l.change("1", 2) }, "Enforced"},
		"a change that raises it":     {func(l *limited) { l.change("2", 2) }, "Enforced"},
		"a change that lowers it":     {func(l *limited) { l.change("0", 2) }, "Settling"},
		"a change during a restart":   {func(l *limited) { l.change("1", 2); l.restart() }, "Settling"},
		"two changes":                 {func(l *limited) { l.change("2", 3) }, "Settling"},
		"another pool":                {func(l *limited) { l.change("1", 2, another); l.wipe() }, "Settling"},
		"another pool of that number": {func(l *limited) { l.change("1", 1, another); l.wipe() }, "Settling"},
		"no limit for a while": {func(l *limited) {
			l.change("1", 2,
				func(p *karpenterv1.NodePool) { p.Spec.HardLimits = nil })
			l.again(t)
			l.change("1", 3)
		}, "Settling"},
		"no limit, and it was not seen": {func(l *limited) { l.change("1", 3) }, "Settling"},
	} {
		l := newLimited(t)
		l.again(t)
		l.settled()
		l.says(name+", before", "Enforced", usual)
		before := l.cloud.listed
		c.happens(l)
		l.says(name, c.reason, usual)
		l.says(name+", again", c.reason, usual)
		if l.cloud.listed != before {
			t.Errorf("%s: machines were listed %d times more", name, l.cloud.listed-before)
		}
	}
}

// L-14: a raised limit is not enforced if the one before was not; one that another process has proved is.
func TestWhatPutsALimitInForceBeforeItsTime(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	l.says("at first", "Settling", usual)
	l.change("3", 2)
	l.says("raised", "Settling", usual)
	p := l.get()
	condition.Set(&p.Status.Conditions, p.Generation, condition.True(karpenterv1.ConditionTypeHardLimitEnforced,
		"Enforced", ""), l.clock.Now())
	if err := l.server.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l.says("proved by another", "Enforced", usual)
	l.change("4", 3)
	l.says("raised again", "Enforced", usual)
	if l.cloud.listed != 0 {
		t.Errorf("machines were listed %d times", l.cloud.listed)
	}
}

// wipe takes all conditions off the pool.
func (l *limited) wipe() {
	l.t.Helper()
	p := l.get()
	p.Status.Conditions = nil
	if err := l.server.Status().Update(l.t.Context(), p); err != nil {
		l.t.Fatal(err)
	}
}

// A proof that fails beside a node class that cannot be read is told with it.
func TestBothFailuresAreTold(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	l.again(t)
	l.settled()
	l.cloud.cloud.failure = errors.New("throttled")
	l.cloud.fails = func() error { return controllertest.ErrRefused }
	_, err := l.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}})
	if !errors.Is(err, controllertest.ErrRefused) || !errors.Is(err, l.cloud.cloud.failure) {
		t.Errorf("error %v, want both", err)
	}
}
