package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// refusing lets the guest's API server answer every write of a NodePool with an error.
func (s *scene) refusing(answer error) client.WithWatch {
	refuse := func(o client.Object) error {
		if _, is := o.(*karpenterv1.NodePool); is {
			return answer
		}
		return nil
	}
	return interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Update(ctx, o, options...)
		},
	})
}

// G13, G14, G16: PolicyApplied and Ready say in the same words why a wrapper is not applied.
func TestWhatKeepsAWrapperFromBeingAppliedStandsInReady(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "nodepools"}
	short := apierrors.NewForbidden(resource, "web", errors.New("no"))
	for name, c := range map[string]struct {
		policy *hypershiftv1beta1.AutoNodePolicy
		answer error
		reason string
		says   []string
		length int // of the message; 0 for any
	}{
		"a policy that contradicts itself": {policyOf(2, in(instanceType, "a"), in(instanceType, "b")), nil,
			hypershiftv1beta1.ReasonConflictingRequirements, []string{"policy of the provider: is not valid"}, 0},
		"a refusal": {policyOf(2), short, operator.ReasonRefused,
			[]string{"the NodePool cannot be written: ", short.Error()}, 0},
		"a long refusal": {policyOf(2), apierrors.NewForbidden(resource, "web",
			errors.New(strings.Repeat("x", 3000))), operator.ReasonRefused, []string{"xxx..."}, 2000},
	} {
		s := newScene(t, []client.Object{wrapper("web")})
		s.behind(s.refusing(c.answer))
		s.learn(operator.Answer{Policy: c.policy})
		if s.step(s.pools, "web"); len(s.tape.Said()) != 0 {
			t.Errorf("%s: said %q, want it in the conditions alone", name, s.tape.Said())
		}
		for _, kind := range []string{hypershiftv1beta1.ConditionTypePolicyApplied,
			hypershiftv1beta1.ConditionTypeReady} {
			s.says("web", kind, metav1.ConditionFalse, c.reason)
			said := messageOf(s.wrapper("web"), kind)
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("%s: %s says %q, want %q in it", name, kind, said, part)
				}
			}
			if c.length > 0 && len(said) != c.length {
				t.Errorf("%s: %s says %d bytes, want %d", name, kind, len(said), c.length)
			}
		}
	}
}

// A refused write is retried after 20 s, since no event tells of changed rules.
func TestARefusalIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	server := s.refusing(apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "web", errors.New("no")))
	s.behind(server)
	if again := s.step(s.pools, "web").RequeueAfter; again != 20*time.Second {
		t.Errorf("again after %s, want 20s", again)
	}
}

// Where there is no policy, a wrapper is applied as it is, and says so.
func TestWithoutAPolicyAWrapperIsApplied(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in("team", "a"))})
	s.learn(operator.Answer{})
	s.step(s.pools, "web")
	s.merged("web", in("team", "a"))
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue, hypershiftv1beta1.ReasonNoPolicy)
	if seen := s.wrapper("web").Status.ObservedPolicy; seen != nil {
		t.Errorf("it has seen the policy %v", seen)
	}
}

// A NodePool that is being deleted and held by something is not written until it is gone.
func TestANodePoolThatIsGoingIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.change("web", func(p *karpenterv1.NodePool) { p.Finalizers = []string{"example.com/held"} })
	s.deletePool("web")
	s.learn(operator.Answer{Policy: policyOf(2, in(instanceType, "b"))})
	clear(s.guestWrites)
	if again := s.step(s.pools, "web").RequeueAfter; again != 0 || s.updates() != 0 {
		t.Errorf("again after %s, %d updates; want its end to be awaited", again, s.updates())
	}
	for _, kind := range []string{hypershiftv1beta1.ConditionTypePolicyApplied, hypershiftv1beta1.ConditionTypeReady} {
		s.says("web", kind, metav1.ConditionUnknown, operator.ReasonDeleting)
		if said := messageOf(s.wrapper("web"),
			kind); said != "the NodePool is being deleted and will be created again" {
			t.Errorf("%s says %q", kind, said)
		}
	}
	s.change("web", func(p *karpenterv1.NodePool) { p.Finalizers = nil })
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "b"))
}

// G15: while the policy is unknown, a wrapper keeps its conditions, unless its NodePool is gone, or the policy was
// never applied to the existing one.
func TestWhatAWrapperSaysWhileThePolicyIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(s *scene)
		status  metav1.ConditionStatus
		reason  string
	}{
		"nothing happens": {func(*scene) {}, metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied},
		"its NodePool goes": {func(s *scene) { s.deletePool("web") }, metav1.ConditionUnknown,
			operator.ReasonPolicyUnknown},
		"it comes new, and late": {func(s *scene) { s.forgetStatus("web") }, metav1.ConditionUnknown,
			operator.ReasonPolicyUnknown},
	} {
		s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
		s.read()
		s.step(s.pools, "web")
		c.happens(s)
		s.learn(operator.Answer{Err: errBusy})
		clear(s.guestWrites)
		s.step(s.pools, "web")
		if s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, c.status, c.reason); t.Failed() {
			t.Fatal(name)
		}
		if len(s.guestWrites) > 1 || s.guestWrites["create NodePool"] != 0 {
			t.Errorf("%s: the writes are %v", name, s.guestWrites)
		}
	}
}

func (s *scene) forgetStatus(name string) {
	s.t.Helper()
	w := s.wrapper(name)
	w.Status = hypershiftv1beta1.OpenshiftNodePoolStatus{}
	s.must(s.guest.Status().Update(s.t.Context(), w))
}

// R26: what the NodePool says is as current for the wrapper as it is for the NodePool, whose generations are other
// numbers. What it said last stays while it cannot be written anew.
func TestHowCurrentTheNodePoolsWordIs(t *testing.T) {
	t.Parallel()
	w := wrapper("web")
	w.Generation = 5
	s := newScene(t, []client.Object{w}, policyOf(1))
	s.read()
	server := s.admitted(asWritten)
	s.behind(server)
	s.step(s.pools, "web")
	s.change("web", func(p *karpenterv1.NodePool) { p.Generation = 2 })
	pool := s.nodePool("web")
	say := func(kind string, generation int64) karpenterv1.Condition {
		return karpenterv1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(s.clock.Now())}
	}
	pool.Status.Conditions = []karpenterv1.Condition{say("Current", 2), say("Old", 1), say("Timeless", 0)}
	s.must(s.guest.Status().Update(t.Context(), pool))
	check := func(when string, generation, before int64) {
		t.Helper()
		got := map[string]int64{}
		for _, c := range s.wrapper("web").Status.Conditions {
			got[c.Type] = c.ObservedGeneration
		}
		if got["Current"] != generation || got["Old"] != before || got["Timeless"] != 0 || len(got) != 6 {
			t.Errorf("%s: the generations are %v; want Current %d, Old %d, Timeless 0", when, got, generation, before)
		}
	}
	s.step(s.pools, "web")
	check("as it is", 5, 4)
	s.deletePool("web")
	s.behind(s.refusing(apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "web", errors.New("no"))))
	s.step(s.pools, "web")
	check("gone and not written anew", 5, 4)
	if n := len(s.tape.Said()); n != 0 {
		t.Errorf("said %q: nothing was restored", s.tape.Said())
	}
}

// A wrapper's first generation has none before it: what is old about its NodePool counts as of no generation.
func TestTheFirstGenerationHasNoneBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	s.change("web", func(p *karpenterv1.NodePool) { p.Generation = 2 })
	pool := s.nodePool("web")
	pool.Status.Conditions = []karpenterv1.Condition{{Type: "Old", Status: metav1.ConditionTrue, ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(s.clock.Now())}}
	s.must(s.guest.Status().Update(t.Context(), pool))
	s.step(s.pools, "web")
	for _, c := range s.wrapper("web").Status.Conditions {
		if c.Type == "Old" && c.ObservedGeneration != 0 {
			t.Errorf("the generation is %d, want 0", c.ObservedGeneration)
		}
	}
}

// G9: a pool that nothing can satisfy, and that is refused on top, is told of on the wrapper.
func TestAPoolThatIsRefusedIsWarnedOfOnItsWrapper(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in(instanceType, "b"))}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.behind(s.refusing(apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "web", errors.New("no"))))
	s.step(s.pools, "web")
	if said := s.tape.Said(); len(said) != 1 || !strings.HasPrefix(said[0], "web NoCompatibleInstanceTypes: ") {
		t.Errorf("said %q, want it once", said)
	}
}
