package claim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// failing is a cloud whose calls fail as those of the API server do.
type failing struct {
	*cloud
	failures *controllertest.Failures
}

func (f failing) Launch(ctx context.Context, c *karpenterv1.NodeClaim, notAfter time.Time) (provider.Instance, error) {
	if err := f.failures.Call("launch"); err != nil {
		return provider.Instance{}, err
	}
	return f.cloud.Launch(ctx, c, notAfter)
}

func (f failing) Get(ctx context.Context, id string) (provider.Instance, error) {
	if err := f.failures.Call("get instance"); err != nil {
		return provider.Instance{}, err
	}
	return f.cloud.Get(ctx, id)
}

func (f failing) List(ctx context.Context) ([]provider.Instance, error) {
	if err := f.failures.Call("list instances"); err != nil {
		return nil, err
	}
	return f.cloud.List(ctx)
}

func (f failing) Terminate(ctx context.Context, id string, inUse func() bool) error {
	if err := f.failures.Call("terminate"); err != nil {
		return err
	}
	return f.cloud.Terminate(ctx, id, inUse)
}

// fail puts failures between the controller and all that it talks to.
func (r *rig) fail(f *controllertest.Failures) {
	server := f.Wrap(r.server)
	r.config.Client, r.config.Live, r.config.Fleet = server, server, fleet.New(failing{r.cloud, f})
	r.step = claim.New(r.config)
}

// play returns a step that takes the claim further, with what happens in the world in between.
func (r *rig) play(t *testing.T, world ...func()) func() error {
	return func() error {
		for _, happens := range world {
			if happens != nil {
				happens()
			}
			if _, err := r.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}}); err != nil {
				return err
			}
		}
		return nil
	}
}

func (r *rig) create(t *testing.T, n *corev1.Node) {
	t.Helper()
	if err := r.server.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) delete(t *testing.T) {
	t.Helper()
	if err := r.server.Delete(t.Context(), r.claim(t)); err != nil {
		t.Fatal(err)
	}
}

func aPool() *karpenterv1.NodePool {
	return &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"},
		Spec: karpenterv1.NodePoolSpec{
			Template: karpenterv1.NodeClaimTemplate{
				Spec: karpenterv1.NodeClaimTemplateSpec{NodeClassRef: newClaim().Spec.NodeClassRef},
			},
		}}
}

// P-30: failed steps on the way from a claim to a node are repeated. Registration health and drift, which read the
// pool, may wait for the next step.
func TestNoFailureOnTheWayToANodeIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		c := newClaim()
		c.Finalizers = nil // made by hand
		r := newRig(t, c)
		r.fail(f)
		return r.play(t, nil, func() { r.create(t, joined()); r.clock.Advance(2 * time.Second) },
			func() { r.makeReady(t) }, nil)
	}, "get v1.NodePool")
}

// The same with a pool, which gets reports, and with a ready node, which takes one step.
func TestNoFailureInAPoolIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := newRig(t, newClaim(), aPool())
		r.fail(f)
		return r.play(t, nil, func() { r.create(t, joined()); r.makeReady(t); r.clock.Advance(2 * time.Second) },
			func() { r.clock.Advance(time.Hour) })
	}, "get v1.NodePool", "patch status v1.NodePool")
}

// P-32, P-40: a claim is let go only after its node and its instance are proved gone.
func TestNoFailureOnTheWayOutIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		c := newClaim()
		c.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Hour}
		r := newRig(t, c, joined())
		r.reconcile(t)
		r.clock.Advance(2 * time.Second)
		r.reconcile(t)
		r.delete(t)
		r.fail(f)
		r.cloud.slow = true
		step := r.play(t, nil, func() {
			n := r.node(t)
			n.Finalizers = nil // it was being deleted, and goes
			if err := r.server.Update(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}, nil, nil)
		return func() error {
			err := step()
			if gone := r.claim(t) == nil; gone && len(r.cloud.machines) > 0 {
				t.Errorf("the claim went before its %d machines (%v)", len(r.cloud.machines), err)
			} else if err == nil && !gone {
				t.Error("the claim is still there")
			}
			return err
		}
	})
}

// P-32: the same for a claim that was deleted before it knew of its instance.
func TestNoFailureToFindTheInstanceIsSwallowed(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			r := newRig(t, newClaim())
			if known {
				if _, err := r.cloud.Launch(t.Context(), newClaim(), time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			r.delete(t)
			r.fail(f)
			step := r.play(t, nil, func() {
				if c := r.claim(t); c != nil { // the fake server has the time of day
					r.clock.Advance(c.DeletionTimestamp.Sub(r.clock.Now()) + time.Hour)
				}
			}, nil)
			return func() error {
				err := step()
				if err == nil && (r.claim(t) != nil || len(r.cloud.machines) > 0) {
					t.Errorf("claim %v and machines %v are left", r.claim(t), r.cloud.machines)
				}
				return err
			}
		})
	}
}

// P-30, P-31: a claim whose launch was refused goes, and what fails on its way is done again.
func TestNoFailureToGiveUpIsSwallowed(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{&provider.InsufficientCapacityError{}, &provider.NodeClassNotReadyError{},
		provider.ErrNodeClassNotFound} {
		controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			r := newRig(t, newClaim())
			r.cloud.failure = failure
			r.fail(f)
			return r.play(t, nil, nil)
		})
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := newRig(t, newClaim())
		r.cloud.failure = &provider.LaunchError{ConditionReason: "Quota", Message: "no quota"}
		r.fail(f)
		early := r.play(t, nil)
		late := r.play(t, func() { r.clock.Advance(5 * time.Minute) })
		return func() error {
			if err := early(); err != nil {
				return err
			}
			r.cloud.failure = nil
			return late()
		}
	}, "launch", "get v1.NodePool") // at its timeout the claim is given up for whatever the launch answers
}

// D-07: nor of a claim that has lived long enough, whichever way its pool asks for.
func TestNoFailureOfAnExpirationIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		c := newClaim()
		c.Spec.ExpireAfter.Duration = new(time.Hour)
		r := newRig(t, c, joined())
		r.reconcile(t)
		r.makeReady(t)
		r.reconcile(t)
		r.clock.Advance(time.Hour)
		r.fail(f)
		return r.play(t, nil)
	}, "get v1.NodePool")
}

// P-32: garbage that could not be collected is looked at again at once; one cloud's failure holds up no other.
func TestNoFailureOfTheCollectorIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := newRig(t, newClaim())
		r.reconcile(t) // this one loses its machine
		r.cloud.machines = map[string]provider.Instance{
			"fake://orphan": {ProviderID: "fake://orphan", ClaimName: "gone", ClaimUID: "gone",
				Launched: controllertest.Start()},
		}
		r.clock.Advance(time.Hour)
		r.fail(f)
		collector := claim.NewCollector(r.config)
		return func() error {
			result, err := collector.Reconcile(t.Context(), reconcile.Request{})
			if err == nil && (len(r.cloud.machines) > 0 || r.claim(t).DeletionTimestamp == nil ||
				result.RequeueAfter != 10*time.Second) {
				t.Errorf("machines %v, claim %v, again after %s: want both collected, and to look in 10s",
					r.cloud.machines, r.claim(t).DeletionTimestamp, result.RequeueAfter)
			}
			return err
		}
	})
}

// P-30: a node that is Ready and not initialized in time stays while it runs pods, like Karpenter's: it may lack a
// device or keep a startup taint. Pods of DaemonSets, static and finished ones do not count. It goes once the pods
// have left.
func TestANodeInUseOutlivesItsInitializationTimeout(t *testing.T) {
	t.Parallel()
	nothing := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		ready  bool
		change func(*corev1.Pod)
		gone   bool
	}{
		"in use":            {true, nothing, false},
		"in use, not ready": {false, nothing, true},
		"a daemon": {true, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d"}}
		}, true},
		"a static pod": {true, func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}, true},
		"a finished pod":    {true, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"of another's node": {true, func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, true},
	} {
		r := newRig(t, newClaim(), joined())
		r.reconcile(t)
		if c.ready {
			r.makeReady(t)
			n := r.node(t)
			n.Spec.Taints = append(n.Spec.Taints, newClaim().Spec.StartupTaints...)
			r.put(t, n)
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
			Spec: corev1.PodSpec{NodeName: "n1"}}
		c.change(p)
		if err := r.server.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(time.Hour)
		again := r.reconcile(t).RequeueAfter
		if gone := r.claim(t).DeletionTimestamp != nil; gone != c.gone {
			t.Errorf("%s: given up %t, want %t", name, gone, c.gone)
		}
		if c.gone {
			continue
		}
		if said := strings.Join(r.tape.Said(), "\n"); again != 10*time.Minute || !strings.Contains(said,
			"c1 Timeout: NodeClaim is not Initialized after 1h0m0s; look at the node") ||
			!strings.Contains(said, "stays while pods run on node n1, 1 now") {
			t.Errorf("%s: looks again after %s, said %q", name, again, said)
		}
		if err := r.server.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if r.reconcile(t); r.claim(t).DeletionTimestamp == nil {
			t.Errorf("%s: its pods have left, and it stays", name)
		}
	}
}

// P-30: a node that went while it was registered is waited for again, and that is no error.
func TestANodeThatGoesDuringItsRegistrationIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim(), joined())
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if _, is := o.(*corev1.Node); is {
				return apierrors.NewNotFound(corev1.Resource("nodes"), o.GetName())
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	r.step = claim.New(r.config)
	for range 2 {
		r.reconcile(t)
		r.clock.Advance(2 * time.Second)
	}
	if got := r.is(t, karpenterv1.ConditionTypeRegistered); got != "Unknown" {
		t.Errorf("Registered is %s, want Unknown", got)
	}
}
