package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// policyCondition returns what the policy says of itself as it is stored, which is read back.
func (s *scene) policyCondition(kind string) karpenterv1.Condition {
	s.t.Helper()
	s.step(s.policy, "")
	said, _ := condition.Get(s.stored().Status.Conditions, kind)
	s.read()
	return said
}

// since when the guest was protected for the first time is said once, whatever becomes of the policy and of the
// protection after that, and as long as anything is missing, whosever it is, not at all.
func TestA07_SinceWhenTheGuestIsProtectedNeverChanges(t *testing.T) {
	t.Parallel()
	const once, protected = hypershiftv1beta1.ConditionTypeProtectedOnce, hypershiftv1beta1.ConditionTypeProtected
	s := newScene(t, nil, policyOf(1))
	s.read()
	others, theirs := s.othersProtector(s.guest)
	s.step(others, "")                                  // two of another's are not there
	s.board.SetMissing([]string{"ours", "our binding"}) // nor two of ours
	if said := s.policyCondition(once); said.Status != "" {
		t.Errorf("with as many missing of ours as of another's it says %+v", said)
	}
	s.board.SetMissing(nil)
	s.must(s.guest.Create(t.Context(), theirs.Policy.DeepCopy()))
	s.must(s.guest.Create(t.Context(), theirs.Binding.DeepCopy()))
	s.step(others, "")
	first := s.policyCondition(once)
	if first.Status != metav1.ConditionTrue {
		t.Fatalf("it says %+v", first)
	}
	s.clock.Advance(time.Hour)
	next := s.stored()
	next.Generation = 2
	s.must(s.management.Update(t.Context(), next))
	s.read()
	if said := s.policyCondition(once); said != first {
		t.Errorf("of the next generation it says %+v, want %+v", said, first)
	}
	taken := s.stored() // by whoever may write the status
	condition.Clear(&taken.Status.Conditions, once)
	s.must(s.management.Status().Update(t.Context(), taken))
	s.read()
	if said := s.policyCondition(once); said.Status != metav1.ConditionTrue {
		t.Error("it is not said again, though nothing else has changed")
	}
	s.board.SetHosted(read(plane("one")))
	s.policyCondition(protected)
	s.board.SetMissing([]string{"ours"})
	if said := s.policyCondition(protected); said.Status != metav1.ConditionFalse {
		t.Error("that something is missing is not told when nothing else has changed")
	}
}

// a policy is looked at again each 10 s while the hosted cluster is paused, and sooner when the word of an
// earlier process ends sooner.
func TestA32_WhenAPausedPolicyIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	said := s.stored()
	condition.Set(&said.Status.Conditions, 1, condition.True(hypershiftv1beta1.ConditionTypeReady, "Applied", ""),
		s.clock.Now())
	s.must(s.management.Status().Update(t.Context(), said))
	s.read()
	s.board.SetHosted(
		read(plane("one", func(spec map[string]any, _ map[string]string) { spec["pausedUntil"] = "true" })))
	for _, test := range []struct{ after, again time.Duration }{
		{0, 10 * time.Second}, {56 * time.Second, 4 * time.Second}, {4 * time.Second, 10 * time.Second},
	} {
		s.clock.Advance(test.after)
		if again := s.step(s.policy, "").RequeueAfter; again != test.again {
			t.Errorf("%s later: again after %s, want %s", test.after, again, test.again)
		}
		s.read()
	}
}

// of the labels that the rule for NodeClaims leaves out ten are named.
func TestA04_TenLabelsThatAreLeftOutAreNamed(t *testing.T) {
	t.Parallel()
	var entries []karpenterv1.NodeSelectorRequirementWithMinValues
	for i := range 11 {
		entries = append(entries, tooMany(fmt.Sprintf("example.com/many-%02d", i))...)
	}
	s := newScene(t, nil, policyOf(1, entries...))
	woken := 0
	c := s.ruler(s.guest, &woken)
	s.read()
	s.step(c, "")
	if n := len(s.board.RuleLeftOut().Labels); n != 11 {
		t.Fatalf("%d labels are left out", n)
	}
	said := s.policyCondition(hypershiftv1beta1.ConditionTypeProtected)
	if said.Reason != hypershiftv1beta1.ReasonRuleTooLarge || strings.Count(said.Message, "example.com/") != 10 {
		t.Errorf("the policy says %s %q", said.Reason, said.Message)
	}
}

// pools count while node classes are left alone, whichever of both comes first.
func TestA32_PoolsCountWhileClassesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web"), class("big")}, policyOf(1))
	s.read()
	s.board.SetHosted(read(plane("one", func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") })))
	s.step(s.pools, "web")
	kinds := slices.Clone(s.kinds)
	slices.Reverse(kinds)
	s.policy = operator.NewPolicyController(operator.PolicyConfig{
		Management: s.managementClient(), Guest: operator.GuestClient{Client: s.guest}, Kinds: kinds, Board: s.board,
		Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	if said := s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied); !strings.Contains(said, "1 of 1") {
		t.Errorf("the policy says %q", said)
	}
}

// wrappers whose status is changed on its way are named in order, whatever order the cache has.
func TestA03_AlteredStatusesAreNamedInOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("a"), wrapper("b")}, policyOf(1))
	s.read()
	s.behind(s.forgetting())
	s.step(s.pools, "a")
	s.step(s.pools, "b")
	backwards := true
	s.policy = s.summing(s.backwards(&backwards), s.management)
	said := s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	if !strings.HasSuffix(said, "OpenshiftNodePool a, OpenshiftNodePool b.") {
		t.Errorf("the policy says %q", said)
	}
}

// an invalid policy is its provider's business though there is no wrapper, what is not protected yet the
// operator's; a wrapper that is going is nobody's.
func TestA45_WhoseBusinessItIsWithoutWrappers(t *testing.T) {
	t.Parallel()
	whose := func(s *scene, want string) {
		t.Helper()
		registry := prometheus.NewRegistry()
		s.metrics = operator.NewMetrics(registry)
		s.step(s.summing(s.guest, s.management), "")
		if got := shown(t, registry, "autonode_policy_not_ready"); got != want {
			t.Errorf("not Ready: %q, want %q", got, want)
		}
		s.read()
	}
	invalid := newScene(t, nil, policyOf(1, in(instanceType, "a"), in(instanceType, "b")))
	invalid.read()
	whose(invalid, "party=Provider 1")
	unprotected := newUnprotectedScene(t, nil, policyOf(1))
	unprotected.read()
	whose(unprotected, "party=Service 1")
	going := failing("web")
	going.Finalizers = []string{"example.com/held"}
	s := newScene(t, []client.Object{going, class("default")}, policyOf(1, in(instanceType, "a")))
	s.bootstrap = nil
	s.read()
	s.step(s.pools, "web")
	s.step(s.classes, "default")
	whose(s, "party=Service 1; party=Tenant 1")
	s.must(s.guest.Delete(t.Context(), s.wrapper("web")))
	whose(s, "party=Service 1")
}
