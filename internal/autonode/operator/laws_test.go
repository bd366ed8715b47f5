package operator_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// laws that a changed line broke and no test noticed. Each test names the change that it is against.

// A-09 (a), G22: while the admission policies are held back for 5 s, no controller writes anything else, and the
// policy's status stays empty. Mutants: Protected is always true; a wrapper, the default class or the policy's status
// does not check it; the wait until an API server has put an admission policy into force is left out.
func TestA09a_NothingIsWrittenBeforeAdmission(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, []client.Object{wrapper("web"), class("big")}, policyOf(1, in(instanceType, "a")))
	s.read()
	held := true
	server := interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			switch o.(type) {
			case *karpenterv1.NodePool, *karpenterawsv1.EC2NodeClass, *hypershiftv1.OpenshiftEC2NodeClass:
				if !s.board.Protected() {
					t.Errorf("%T %s is created before the guest is protected", o, o.GetName())
				}
			default:
				if held {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingadmissionpolicies"},
						o.GetName(), errors.New("not yet"))
				}
			}
			return c.Create(ctx, o, options...)
		},
	})
	s.behind(server)
	protector := s.protector(server)
	def := operator.NewDefaultClassController(operator.DefaultClassConfig{
		Guest: operator.GuestClient{Client: server}, InfraID: "infra", Board: s.board, Metrics: s.metrics,
	})
	everybody := func() {
		s.step(s.pools, "web")
		s.step(s.classes, "big")
		s.step(def, "")
		s.step(s.policy, "")
	}
	began := s.clock.Now()
	for ; s.clock.Now().Sub(began) < 5*time.Second; s.clock.Advance(time.Second) {
		if _, err := protector.Reconcile(t.Context(), request("")); err == nil {
			t.Error("it does not tell that it may not write")
		}
		everybody()
		if said := s.stored().Status.Conditions; len(said) != 0 || s.nodePool("web") != nil {
			t.Fatalf("the policy says %v, the pool is %v", said, s.nodePool("web"))
		}
	}
	held = false
	wait := s.step(protector, "").RequeueAfter
	everybody() // written, and in force nowhere yet
	if s.board.Protected() || wait != 2*time.Second || s.nodePool("web") != nil {
		t.Errorf("again after %s, pool %v", wait, s.nodePool("web"))
	}
	s.clock.Advance(wait)
	s.step(protector, "")
	everybody()
	if s.nodePool("web") == nil || s.madeClass("big") == nil || len(s.stored().Status.Conditions) == 0 {
		t.Error("nothing is written when it may be")
	}
}

// A-09 (b), R25: a product is deleted for lack of a wrapper only if the API server itself confirms that. A cache that
// is 5 s behind costs no pool and no node. Mutants: the cache is asked again; the API server's answer is ignored.
func TestA09b_ACacheThatLagsCostsNoPool(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web"), class("big")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.step(s.classes, "big")
	cache := newStale(s.guest)
	cache.hide(s.wrapper("web"))
	cache.hide(s.classWrapper("big"))
	pools, classes := s.lagging(s.kinds[0], cache), s.lagging(s.kinds[1], cache)
	for range 50 {
		for name, c := range map[string]*operator.Controller{"web": pools, "big": classes} {
			if again := s.step(c, name).RequeueAfter; again != 100*time.Millisecond {
				t.Fatalf("%s: again after %s, want 100ms", name, again)
			}
		}
		s.clock.Advance(100 * time.Millisecond)
	}
	if pool, class := s.nodePool("web"), s.madeClass("big"); pool == nil || pool.DeletionTimestamp != nil ||
		class.DeletionTimestamp != nil {
		t.Error("a product went because the cache had not caught up")
	}
	s.deleteWrapper("web") // it is held by its finalizer, and is then really gone
	w := s.wrapper("web")
	w.Finalizers = nil
	s.must(s.guest.Update(t.Context(), w))
	if s.step(pools, "web"); s.nodePool("web") != nil {
		t.Error("a product whose wrapper is gone stays")
	}
}

// A-09 (c): a product that this process has seen is the operator's, even if an earlier process wrote it: label and
// owner removed, status forged, wrapper deleted at once. Mutant: only products written by this process count.
func TestA09c_WhatWasLookedAtIsNotSetFree(t *testing.T) {
	t.Parallel()
	for name, orphan := range map[string]bool{"the wrapper is deleted": false, "and its finalizer taken off": true} {
		s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
		s.read()
		server := s.admitted(asWritten)
		s.behind(server)
		s.step(s.pools, "web")
		s.behind(server) // another process
		clear(s.guestWrites)
		s.step(s.pools, "web")
		if s.updates() != 0 {
			t.Fatalf("%s: it wrote the pool, which the attack must not depend on", name)
		}
		s.change("web", func(p *karpenterv1.NodePool) { p.Labels, p.OwnerReferences = nil, nil })
		w := s.wrapper("web")
		for i := range w.Status.Conditions {
			w.Status.Conditions[i].Status = metav1.ConditionFalse
		}
		w.Status.ObservedPolicy = &hypershiftv1.ObservedPolicy{UID: "another"}
		s.must(s.guest.Status().Update(t.Context(), w))
		if orphan {
			w.Finalizers = nil
			s.must(s.guest.Update(t.Context(), w))
		}
		s.deleteWrapper("web")
		s.step(s.pools, "web")
		s.step(s.pools, "web")
		if s.nodePool("web") != nil || s.wrapper("web") != nil {
			t.Errorf("%s: pool %v, wrapper %v; want both gone", name, s.nodePool("web"), s.wrapper("web"))
		}
	}
}

// R24: a wrapper is not let go while the cache does not show its product yet. The product may come and go without ever
// showing in the cache, so no event is waited for. Mutants: the cache is believed; the controller waits for an event.
func TestR24_AProductThatTheCacheDoesNotShowHoldsItsWrapper(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.deleteWrapper("web")
	late := newStale(s.guest)
	late.shows[reflect.TypeFor[*karpenterv1.NodePool]().String()+"web"] = nil
	pools := s.lagging(s.kinds[0], late)
	s.change("web", func(p *karpenterv1.NodePool) { p.Finalizers = []string{"karpenter.sh/termination"} })
	for range 2 {
		again := s.step(pools, "web").RequeueAfter
		if p := s.nodePool("web"); p == nil || p.DeletionTimestamp == nil || again != 100*time.Millisecond {
			t.Fatalf("again after %s, pool %v: want it to go, and another look", again, p)
		}
	}
	s.change("web", func(p *karpenterv1.NodePool) { p.Finalizers = nil })
	if s.nodePool("web") != nil || s.wrapper("web") == nil {
		t.Fatalf("pool %v, wrapper %v: want the pool to go first", s.nodePool("web"), s.wrapper("web"))
	}
	if s.step(pools, "web"); s.wrapper("web") != nil {
		t.Error("the wrapper stays without a pool")
	}
}

// A-09 (c): a product that was written while the policy may not be read is its wrapper's too. Mutant: only a policy
// that is applied counts.
func TestA09c_WhatIsWrittenWithoutAPolicyIsNotSetFree(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "autonodepolicies"}, "", errors.New("no"))
	reading := operator.Reading{}.Next(operator.Answer{Err: denied}, s.clock.Now(), false)
	s.clock.Advance(operator.ConfirmAfter)
	s.board.Set(reading.Next(operator.Answer{Err: denied}, s.clock.Now(), false))
	s.step(s.pools, "web")
	s.change("web", func(p *karpenterv1.NodePool) { p.Labels, p.OwnerReferences = nil, nil })
	s.behind(s.guest) // another process
	s.deleteWrapper("web")
	s.step(s.pools, "web")
	if s.nodePool("web") != nil {
		t.Error("the pool is set free")
	}
}

// R25: a wrapper that was made anew keeps its product, though the cache still shows the old one, which is going.
// Mutant: the cache is believed.
func TestR25_AWrapperMadeAnewKeepsItsProduct(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.deleteWrapper("web")
	late := newStale(s.guest)
	old := s.wrapper("web")
	late.freeze(old)
	old.Finalizers = nil
	s.must(s.guest.Update(t.Context(), old))
	anew := wrapper("web")
	anew.UID = "uid-anew"
	s.must(s.guest.Create(t.Context(), anew))
	pools := s.lagging(s.kinds[0], late)
	if again := s.step(pools, "web").RequeueAfter; again != 100*time.Millisecond || s.nodePool("web") == nil {
		t.Errorf("again after %s, pool %v", again, s.nodePool("web"))
	}
	s.step(s.pools, "web") // its cache is not behind
	if owners := s.nodePool("web").OwnerReferences; !slices.ContainsFunc(owners,
		func(o metav1.OwnerReference) bool { return o.UID == anew.UID }) {
		t.Errorf("the owners are %v", owners)
	}
}
