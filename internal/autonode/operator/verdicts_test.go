package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// failing is a pool that no policy of these tests can be merged with.
func failing(name string) *hypershiftv1beta1.OpenshiftNodePool {
	w := wrapper(name)
	w.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "example.com", Kind: "Other", Name: "x"}
	return w
}

// whatever a wrapper's status says, the policy's Ready depends on what the operator found out. It becomes
// neither better nor worse.
func TestA03_AForgedStatusDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*hypershiftv1beta1.OpenshiftNodePoolStatus){
		"status": func(s *hypershiftv1beta1.OpenshiftNodePoolStatus) {
			for i := range s.Conditions {
				s.Conditions[i].Status = map[metav1.ConditionStatus]metav1.ConditionStatus{
					"True": "False", "False": "True", "Unknown": "True",
				}[s.Conditions[i].Status]
			}
		},
		"reason": func(s *hypershiftv1beta1.OpenshiftNodePoolStatus) {
			for i := range s.Conditions {
				s.Conditions[i].Reason = "Forged"
			}
		},
		"observedGeneration": func(s *hypershiftv1beta1.OpenshiftNodePoolStatus) {
			for i := range s.Conditions {
				s.Conditions[i].ObservedGeneration = 99
			}
		},
		"conditions": func(s *hypershiftv1beta1.OpenshiftNodePoolStatus) { s.Conditions = nil },
		"observedPolicy": func(s *hypershiftv1beta1.OpenshiftNodePoolStatus) {
			s.ObservedPolicy = &hypershiftv1.ObservedPolicy{UID: "x", Generation: 9}
		},
		"none": func(s *hypershiftv1beta1.OpenshiftNodePoolStatus) { s.ObservedPolicy = nil },
	} {
		for pool, want := range map[*hypershiftv1beta1.OpenshiftNodePool]metav1.ConditionStatus{wrapper("web"): "True",
			failing("web"): "False"} {
			s := newScene(t, []client.Object{pool.DeepCopy()}, policyOf(1, in(instanceType, "a")))
			s.read()
			s.step(s.pools, "web")
			reason := hypershiftv1beta1.ReasonApplied
			if want == metav1.ConditionFalse {
				reason = "InvalidNodeClassRef"
			}
			before := s.policySays(want, reason)
			stored := s.wrapper("web")
			forge(&stored.Status)
			s.must(s.guest.Status().Update(t.Context(), stored))
			if after := s.policySays(want, reason); after != before {
				t.Errorf("%s, %s: %q became %q", name, want, before, after)
			}
		}
	}
}

// what was found out about an earlier generation of a wrapper, or of another of that name, does not count for
// this one.
func TestA03_AVerdictIsAboutOneGenerationOfOneWrapper(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	changed := s.wrapper("web")
	changed.Generation = 2
	s.must(s.guest.Update(t.Context(), changed))
	s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing)
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	another := s.wrapper("web")
	another.UID = "another"
	if _, found := s.board.Verdict("OpenshiftNodePool", another); found {
		t.Error("another wrapper of that name has the verdict of the first")
	}
	s.deleteWrapper("web")
	s.step(s.pools, "web") // deletes the product
	s.step(s.pools, "web")
	if _, found := s.board.Verdict("OpenshiftNodePool", changed); found {
		t.Error("a wrapper that is gone has a verdict")
	}
}

// if a write neither succeeds nor is refused, the state is unknown: an admin whose webhook fails must not keep
// the last good verdict.
func TestA03_AFailureTakesTheVerdictDown(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	s.change("web", func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.Requirements[0].Values = []string{"huge"} })
	s.behind(s.refusing(apierrors.NewInternalError(errors.New("no answer"))))
	if _, err := s.pools.Reconcile(t.Context(), request("web")); err == nil {
		t.Error("the failure is not told")
	}
	s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing)
}

// after a start nothing is known. A Ready that an earlier process wrote for this generation stays for a minute;
// then it is Unknown and names what is missing. What fails is said at once.
func TestA03_AfterAStartReadyIsLeftForAMinute(t *testing.T) {
	t.Parallel()
	policy := policyOf(3, in(instanceType, "a"))
	policy.Status.Conditions = []karpenterv1.Condition{
		{Type: hypershiftv1beta1.ConditionTypeReady, Status: "True", Reason: "Before", ObservedGeneration: 3},
	}
	s := newScene(t, []client.Object{wrapper("web"), class("big")}, policy)
	s.read()
	if again := s.step(s.policy, "").RequeueAfter; again != time.Minute {
		t.Errorf("again after %s, want 1m", again)
	}
	s.read()
	s.clock.Advance(10 * time.Second)
	if again := s.step(s.policy, "").RequeueAfter; again != 50*time.Second {
		t.Errorf("again after %s, want 50s", again)
	}
	s.policySays(metav1.ConditionTrue, "Before")
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionTrue, "Before")
	s.clock.Advance(50 * time.Second)
	if said := s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing); !strings.Contains(said,
		"not yet to OpenshiftEC2NodeClass big") {
		t.Errorf("it says %q", said)
	}
	s = newScene(t, []client.Object{failing("web"), class("big")}, policy)
	s.read()
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionFalse, "InvalidNodeClassRef")
}

// it is not left when it is of another generation, nor when this process has known all wrappers once.
func TestA03_ReadyIsNotLeftOnceItWasKnown(t *testing.T) {
	t.Parallel()
	for name, generation := range map[string]int64{"another generation": 2, "known once": 3} {
		policy := policyOf(3, in(instanceType, "a"))
		policy.Status.Conditions = []karpenterv1.Condition{
			{Type: hypershiftv1beta1.ConditionTypeReady, Status: "True", Reason: "Before",
				ObservedGeneration: generation},
		}
		s := newScene(t, nil, policy)
		s.read()
		if generation == 3 {
			s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonNoTargets)
		}
		s.must(s.guest.Create(t.Context(), wrapper("later")))
		if said := s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing); !strings.Contains(said,
			"later") {
			t.Errorf("%s: it says %q", name, said)
		}
	}
}

// a status that is changed on its way is counted, told on the policy, and not written again and again.
func TestA03_AStatusThatIsChangedOnItsWayIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	meddling, patches := true, 0
	registry := s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			patches++
			if err := c.SubResource(sub).Patch(ctx, o, p, options...); err != nil || !meddling {
				return err
			}
			w := o.(*hypershiftv1beta1.OpenshiftNodePool)
			condition.Set(&w.Status.Conditions, 1, condition.False(hypershiftv1beta1.ConditionTypePolicyApplied,
				"Forged", ""), s.clock.Now())
			return c.SubResource(sub).Update(ctx, w)
		},
	}))
	news := 0
	s.board.OnVerdict(func(kind, name string) {
		if news++; kind != "OpenshiftNodePool" || name != "web" {
			t.Errorf("told of %s %s", kind, name)
		}
	})
	for try := 1; try <= 2; try++ {
		for range 3 {
			if again := s.step(s.pools, "web").RequeueAfter; again != 20*time.Second || patches != try {
				t.Errorf("try %d: again after %s, %d patches", try, again, patches)
			}
		}
		said := s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
		if !strings.HasSuffix(said,
			"changes the status of 1 of them, which then tells its users something else: OpenshiftNodePool web.") {
			t.Errorf("it says %q", said)
		}
		if n := controllertest.Count(t, registry, "autonode_altered_writes_total", "status"); n != float64(try) {
			t.Errorf("%v altered writes are counted, want %d", n, try)
		}
		s.clock.Advance(20 * time.Second)
	}
	meddling = false
	if again := s.step(s.pools, "web").RequeueAfter; again != 0 {
		t.Errorf("again after %s", again)
	}
	if said := s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied); strings.Contains(said,
		"changes the status") {
		t.Errorf("it says %q", said)
	}
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	if news < 3 {
		t.Errorf("%d times told, want the verdict, the alteration and its end", news)
	}
}

// whoever listens is told of a verdict that says something else than the one before, and of no other.
func TestA03_ANewVerdictIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	news := 0
	s.board.OnVerdict(func(string, string) { news++ })
	for i, generation := range []int64{1, 1, 2, 2, 1} {
		s.learn(operator.Answer{Policy: policyOf(generation, in(instanceType, "a"))})
		s.step(s.pools, "web")
		if want := []int{1, 1, 2, 2, 3}[i]; news != want {
			t.Errorf("step %d: told %d times, want %d", i, news, want)
		}
	}
}
