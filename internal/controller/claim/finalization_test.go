package claim_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// going is a claim without a record whose launch was never answered: it was deleted in the middle of it.
func going() *karpenterv1.NodeClaim {
	c := newClaim()
	c.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()}
	return c
}

// P-32: a claim without a record waits until the list must show what was launched. That is 30 s after its deletion if
// no launch can be under way. If the previous process may have sent one, it is until that can neither land nor be
// missing from the list. Until then the list is read every 10 s.
func TestAClaimWithoutARecordWaitsForTheList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ created, deleted, gone time.Duration }{ // since this process began
		"older than this process": {0, 0, 150 * time.Second},
		"made since":              {time.Second, time.Second, 31 * time.Second},
		"deleted late":            {0, 200 * time.Second, 230 * time.Second},
	} {
		one := going()
		one.CreationTimestamp = metav1.NewTime(controllertest.Start().Add(c.created))
		one.DeletionTimestamp = &metav1.Time{Time: controllertest.Start().Add(c.deleted)}
		r := newRig(t, one)
		begins := reconcile.Request{NamespacedName: types.NamespacedName{Name: "another"}}
		if _, err := r.step.Reconcile(t.Context(), begins); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(c.deleted)
		for range 20 {
			again := r.reconcile(t).RequeueAfter
			passed := r.clock.Now().Sub(controllertest.Start())
			if r.claim(t) == nil {
				break
			}
			if again != min(10*time.Second, c.gone-passed) {
				t.Errorf("%s: after %s it asks again after %s", name, passed, again)
			}
			r.clock.Advance(again)
		}
		if passed := r.clock.Now().Sub(controllertest.Start()); r.claim(t) != nil || passed != c.gone {
			t.Errorf("%s: gone %t after %s, want it gone after %s", name, r.claim(t) == nil, passed, c.gone)
		}
	}
}

// P-32: the machine of a deleted claim is found by the claim's UID, recorded and ended. Another claim's machine is
// left alone, even if the claims have the same name.
func TestTheMachineOfADeletedClaimIsFoundByItsUID(t *testing.T) {
	t.Parallel()
	r := newRig(t, going())
	r.cloud.machines["fake://a"] = provider.Instance{ProviderID: "fake://a", ClaimName: "c1", ClaimUID: "before"}
	r.cloud.machines["fake://b"] = provider.Instance{ProviderID: "fake://b", ClaimName: "c1", ClaimUID: "u1"}
	r.cloud.slow = true
	r.reconcile(t)
	if got := r.claim(t).Status.ProviderID; got != "fake://b" {
		t.Errorf("the claim has the machine %q, want fake://b", got)
	}
	r.reconcile(t)
	if r.reconcile(t); r.claim(t) != nil || len(r.cloud.machines) != 1 || r.cloud.machines["fake://a"].Terminating {
		t.Errorf("claim %v, machines %v: want only the machine of the other left", r.claim(t), r.cloud.machines)
	}
}

// P-32: the claim may name its machine without the cache showing it. That does not count if another claim has the
// name.
func TestWhatWasWrittenOntoTheClaimAMomentAgoCounts(t *testing.T) {
	t.Parallel()
	for uid, ended := range map[types.UID]bool{"u1": true, "after": false} {
		live := newClaim()
		live.UID, live.Status.ProviderID = uid, "fake://late"
		r := newRig(t, going())
		r.config.Live = newRig(t, live).server
		r.cloud.machines["fake://late"] = provider.Instance{ProviderID: "fake://late", ClaimName: "c1"} // not by UID
		r.step = claim.New(r.config)
		r.reconcile(t)
		// the first moment of which it is sure
		r.clock.Advance(provider.LaunchFor + provider.ClockSkew + provider.ListLag)
		r.reconcile(t)
		if got := len(r.cloud.ended) > 0; got != ended {
			t.Errorf("claim %s on the API server: machines ended %v, want it ended: %t", uid, r.cloud.ended, ended)
		}
	}
}

// P-40: a claim that another's finalizer alone holds is none of our business any more.
func TestAClaimWithoutOurFinalizerIsLeftAlone(t *testing.T) {
	t.Parallel()
	one := going()
	one.Finalizers = []string{"example.com/hold"}
	one.Status.ProviderID = "fake://u1"
	r := newRig(t, one)
	r.cloud.machines["fake://u1"] = provider.Instance{ProviderID: "fake://u1", ClaimUID: "u1"}
	if result := r.reconcile(t); r.writes != 0 || len(r.cloud.ended) != 0 || result.RequeueAfter != 0 {
		t.Errorf("%d writes, ended %v, asks again after %s", r.writes, r.cloud.ended, result.RequeueAfter)
	}
}

// P-41: the deadline of a drain counts from the deletion, and one that stands is not put off.
func TestTheDeadlineOfADrainIsWrittenOnce(t *testing.T) {
	t.Parallel()
	early := controllertest.Start().Add(time.Second).Format(time.RFC3339)
	for name, c := range map[string]struct{ known, want string }{
		"none":  {"", controllertest.Start().Add(time.Hour).Format(time.RFC3339)},
		"known": {early, early},
	} {
		one := going()
		one.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Hour}
		if c.known != "" {
			one.Annotations = map[string]string{karpenterv1.NodeClaimTerminationTimestampAnnotationKey: c.known}
		}
		r := newRig(t, one)
		r.reconcile(t)
		r.reconcile(t)
		if got := r.claim(t).Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]; got != c.want ||
			r.writes != 1-len(c.known)/len(early) {
			t.Errorf("%s: deadline %q after %d writes, want %q", name, got, r.writes, c.want)
		}
	}
}

// P-40: the node of a deleted claim is deleted once, by its UID, and then ends its own machine. A node that the cache
// does not show yet is looked for on the API server: by name, or among the pool's registered nodes.
func TestTheNodeGoesBeforeTheMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodeName, pool string
		change         func(*corev1.Node)
		deleted        bool
	}{
		"by name":             {"n1", "default", func(n *corev1.Node) { n.Labels = nil }, true},
		"registered":          {"", "default", func(*corev1.Node) {}, true},
		"not registered":      {"", "default", func(n *corev1.Node) { n.Labels = nil }, false},
		"no pool":             {"", "", func(*corev1.Node) {}, false},
		"of another machine":  {"n1", "default", func(n *corev1.Node) { n.Spec.ProviderID = "fake://other" }, false},
		"another registered":  {"", "default", func(n *corev1.Node) { n.Spec.ProviderID = "fake://other" }, false},
		"of another provider": {"n1", "default", func(n *corev1.Node) { n.Spec.ProviderID = "aws:///a/i-1" }, false},
		"goes already": {"n1", "default", func(n *corev1.Node) {
			n.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()}
			n.Finalizers = []string{karpenterv1.TerminationFinalizer}
		}, false},
	} {
		one := going()
		one.Status.ProviderID, one.Status.NodeName = "fake://u1", c.nodeName
		one.Labels[karpenterv1.NodePoolLabelKey] = c.pool
		n := joined()
		n.Labels = map[string]string{karpenterv1.NodeRegisteredLabelKey: "true", karpenterv1.NodePoolLabelKey: c.pool}
		c.change(n)
		r := newRig(t, one, n)
		r.cloud.machines["fake://u1"] = provider.Instance{ProviderID: "fake://u1", ClaimUID: "u1"}
		var deleted []string
		r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				if _, nodes := list.(*corev1.NodeList); nodes {
					return nil // the watch is late
				}
				return c.List(ctx, list, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				var asked client.DeleteOptions
				if asked.ApplyOptions(options); asked.Preconditions == nil || asked.Preconditions.UID == nil ||
					*asked.Preconditions.UID != "n1" {
					t.Errorf("%s: preconditions %+v, want the UID of the node", name, asked.Preconditions)
				}
				deleted = append(deleted, o.GetName())
				return nil
			},
		})
		r.step = claim.New(r.config)
		result := r.reconcile(t)
		if (len(deleted) == 1) != c.deleted {
			t.Errorf("%s: nodes deleted %v, want one: %t", name, deleted, c.deleted)
		}
		if waits := c.deleted || name == "goes already"; (len(r.cloud.machines) == 1) != waits || waits &&
			result.RequeueAfter != 2*time.Second {
			t.Errorf("%s: machines %v, asks again after %s: want the machine to wait: %t", name, r.cloud.machines,
				result.RequeueAfter, waits)
		}
	}
}

// P-40: a claim whose instance is proved gone still waits until its node was drained, and deletes the node if
// necessary. Without a node, neither the API server nor the cloud is asked again.
func TestANodeWithoutItsInstanceIsWaitedFor(t *testing.T) {
	t.Parallel()
	deleted := &metav1.Time{Time: controllertest.Start()}
	for name, c := range map[string]struct {
		finalizers    []string
		deleted       *metav1.Time
		waits, leaves bool
	}{
		"runs":           {[]string{karpenterv1.TerminationFinalizer}, nil, true, true},
		"never adopted":  {nil, nil, true, true},
		"drains":         {[]string{karpenterv1.TerminationFinalizer}, deleted, true, true},
		"held by others": {[]string{"example.com/hold"}, deleted, false, true},
		"no node":        {},
	} {
		one, n := going(), joined()
		one.Status.ProviderID = "fake://u1"
		n.Finalizers, n.DeletionTimestamp = c.finalizers, c.deleted
		objects := []client.Object{one}
		if name != "no node" {
			objects = append(objects, n)
		}
		r := newRig(t, objects...)
		r.config.Live = failingReads(r.server)
		r.step = claim.New(r.config)
		r.reconcile(t)
		var nodes corev1.NodeList
		if err := r.server.List(t.Context(), &nodes); err != nil {
			t.Fatal(err)
		}
		leaves := len(nodes.Items) == 0 && name == "never adopted" ||
			len(nodes.Items) > 0 && nodes.Items[0].DeletionTimestamp != nil
		if waits := r.claim(t) != nil; waits != c.waits || leaves != c.leaves || len(r.cloud.ended) > 0 {
			t.Errorf("%s: the claim waits %t, its node leaves %t, ended %v; want %t, %t, none", name, waits, leaves,
				r.cloud.ended, c.waits, c.leaves)
		}
	}
}

// failingReads is an API server that answers nothing.
func failingReads(server client.WithWatch) client.Reader {
	return interceptor.NewClient(server, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return controllertest.ErrRefused
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return controllertest.ErrRefused
		},
	})
}

// P-40: the memory about a claim goes with the claim. A claim that comes again with the same UID, as in a test of a
// restored cluster, starts afresh.
func TestWhatWasRememberedGoesWithTheClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.older(t)
	r.cloud.failure = &provider.InsufficientCapacityError{}
	r.reconcile(t)
	if r.reconcile(t); r.claim(t) != nil {
		t.Fatal("the refused claim is still there")
	}
	r.cloud.failure = nil
	if err := r.server.Create(t.Context(), newClaim()); err != nil {
		t.Fatal(err)
	}
	if r.reconcile(t); r.cloud.launches != 2 || r.claim(t).DeletionTimestamp != nil {
		t.Errorf("%d launches: want the claim launched like any other", r.cloud.launches)
	}
}

// P-40: a claim without a machine keeps its finalizer if another leader records one before the write lands (simulation
// with EC2, seed 2864). The machine ends before the claim.
func TestAMachineThatIsNamedMeanwhileKeepsItsClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.cloud.failure = &provider.InsufficientCapacityError{}
	named := false
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if fresh := r.claim(t); !named && fresh.DeletionTimestamp != nil {
				named, fresh.Status.ProviderID = true, "fake://other"
				r.cloud.machines["fake://other"] = provider.Instance{ProviderID: "fake://other", ClaimUID: "u1"}
				if err := r.server.Status().Update(ctx, fresh); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, options...)
		},
	})
	r.step = claim.New(r.config)
	r.older(t)
	for range 2 {
		_, _ = r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	}
	if !named || r.claim(t) == nil {
		t.Fatalf("named %t, claim %v: want the claim kept with its machine", named, r.claim(t))
	}
	if r.reconcile(t); r.claim(t) != nil || len(r.cloud.machines) != 0 {
		t.Errorf("claim %v, machines %v: want both gone", r.claim(t), r.cloud.machines)
	}
}

// P-40: the same for a launch that was not answered: the claim after it waits for its own launches only.
func TestAnUnansweredLaunchIsForgottenWithItsClaim(t *testing.T) {
	t.Parallel()
	began := time.Now() // the fake server has the time of day
	r := newRig(t)
	r.clock.Advance(began.Sub(r.clock.Now()))
	live := func(answer error) {
		c := newClaim()
		c.CreationTimestamp.Time = began.Add(time.Minute) // made by this process
		if err := r.server.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r.cloud.failure = answer
		_, _ = r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		r.delete(t)
	}
	live(controllertest.ErrRefused)
	r.clock.Advance(time.Hour)
	if r.reconcile(t); r.claim(t) != nil {
		t.Fatal("the first claim is still there")
	}
	live(provider.ErrThrottled)
	r.clock.Advance(provider.ListLag + time.Second)
	if r.reconcile(t); r.claim(t) != nil {
		t.Error("the second claim waits for the launch of the first")
	}
}
