package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// shown are the gauges of a metric that are not 0, as label=value pairs, in the order of the registry.
func shown(t *testing.T, registry *prometheus.Registry, name string) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != name || metric.GetGauge().GetValue() == 0 {
				continue
			}
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			found = append(found, fmt.Sprintf("%s %v", strings.Join(labels, ","), metric.GetGauge().GetValue()))
		}
	}
	return strings.Join(found, "; ")
}

// whose is a policy that is not Ready, or is, and whose business that is.
type whose struct {
	what    string
	guest   []client.Object
	policy  *hypershiftv1beta1.AutoNodePolicy
	happens func(*scene)
	// notReady and wrappers are what the metrics show.
	notReady, wrappers string
}

// full is a policy with as many entries as a NodePool takes.
func full() *hypershiftv1beta1.AutoNodePolicy {
	many := make([]karpenterv1.NodeSelectorRequirementWithMinValues, 100)
	for i := range many {
		many[i] = in(fmt.Sprintf("example.com/label-%d", i), "a")
	}
	return policyOf(1, many...)
}

// asking is a pool that asks for something itself.
func asking(name string) *hypershiftv1beta1.OpenshiftNodePool {
	w := wrapper(name)
	w.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{in("example.com/own", "b")}
	return w
}

// whose business it is that a policy is not Ready is told by the cause. What users of the guest have to mend is
// theirs alone.
func TestA45_WhoseBusinessItIsThatAPolicyIsNotReady(t *testing.T) {
	t.Parallel()
	versioned := class("big")
	versioned.Spec.Version = "4.21.0"
	altering := func(s *scene) {
		s.behind(s.admitted(func(pool *karpenterv1.NodePool) { pool.Spec.Template.Spec.Requirements = nil }))
	}
	for _, test := range []whose{
		{what: "there is no policy", guest: []client.Object{wrapper("web")},
			wrappers: "applied=True,kind=OpenshiftNodePool,party= 1"},
		{what: "it is applied", guest: []client.Object{wrapper("web")}, policy: policyOf(1, in(instanceType, "a")),
			wrappers: "applied=True,kind=OpenshiftNodePool,party= 1"},
		{what: "there is nothing to apply it to", policy: policyOf(1, in(instanceType, "a"))},
		{what: "a user's pool refers to another kind of node class", guest: []client.Object{failing("web")},
			policy: policyOf(1, in(instanceType, "a")), notReady: "party=Tenant 1",
			wrappers: "applied=False,kind=OpenshiftNodePool,party=Tenant 1"},
		{what: "a user's class has a version that nobody has", guest: []client.Object{versioned}, policy: policyOf(1,
			in(instanceType, "a")),
			notReady: "party=Tenant 1", wrappers: "applied=False,kind=OpenshiftEC2NodeClass,party=Tenant 1"},
		{what: "the guest alters what is written", guest: []client.Object{wrapper("web")}, policy: policyOf(1,
			in(instanceType, "a")),
			happens: altering, notReady: "party=Tenant 1",
			wrappers: "applied=False,kind=OpenshiftNodePool,party=Tenant 1"},
		{what: "the policy leaves no room for a user's entry", guest: []client.Object{asking("web")}, policy: full(),
			notReady: "party=Provider 1", wrappers: "applied=False,kind=OpenshiftNodePool,party=Provider 1"},
		{what: "the policy is not valid", guest: []client.Object{wrapper("web")}, policy: policyOf(1, in(instanceType,
			"a"), in(instanceType, "b")),
			notReady: "party=Provider 1", wrappers: "applied=False,kind=OpenshiftNodePool,party=Provider 1"},
		{what: "what nodes start with is not there", guest: []client.Object{class("default")}, policy: policyOf(1,
			in(instanceType, "a")),
			happens: func(s *scene) { s.bootstrap = nil }, notReady: "party=Service 1",
			wrappers: "applied=Unknown,kind=OpenshiftEC2NodeClass,party=Service 1"},
		{what: "two have to do something", guest: []client.Object{failing("web"), class("default")},
			policy: policyOf(1,
				in(instanceType, "a")),
			happens: func(s *scene) { s.bootstrap = nil }, notReady: "party=Service 1; party=Tenant 1",
			wrappers: "applied=False,kind=OpenshiftNodePool,party=Tenant 1; " +
				"applied=Unknown,kind=OpenshiftEC2NodeClass,party=Service 1"},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, test.guest)
			if test.policy != nil {
				s.must(s.management.Create(t.Context(), test.policy))
			}
			s.read()
			s.behind(s.guest)
			if test.happens != nil {
				test.happens(s)
			}
			for _, object := range test.guest {
				controller := s.pools
				if _, is := object.(*hypershiftv1.OpenshiftEC2NodeClass); is {
					controller = s.classes
				}
				s.step(controller, object.GetName())
			}
			registry := prometheus.NewRegistry()
			s.metrics = operator.NewMetrics(registry)
			s.step(s.summing(s.guest, s.management), "")
			if got := shown(t, registry, "autonode_policy_not_ready"); got != test.notReady {
				t.Errorf("not Ready: %q, want %q", got, test.notReady)
			}
			if got := shown(t, registry, "autonode_wrappers"); got != test.wrappers {
				t.Errorf("wrappers: %q, want %q", got, test.wrappers)
			}
		})
	}
}

// a wrapper that nobody has looked at is the operator's business, one that is being deleted nobody's; where the
// policy may not be read, that is the provider's.
func TestA45_WhatIsNotLookedAtIsTheOperators(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	registry := s.behind(s.guest)
	summing := s.summing(s.guest, s.management)
	for _, test := range []struct {
		what    string
		happens func()
		want    string
	}{
		{"nobody has looked", func() {}, "party=Service 1"},
		{"it was looked at", func() { s.step(s.pools, "web") }, ""},
		{"it fails", func() {
			w := s.wrapper("web")
			w.Spec.Template.Spec.NodeClassRef, w.Generation = &karpenterv1.NodeClassReference{Group: "example.com",
				Kind: "Other", Name: "x"}, 2
			s.must(s.guest.Update(t.Context(), w))
			s.step(s.pools, "web")
		}, "party=Tenant 1"},
		{"the management cluster cannot be asked",
			func() { s.learn(operator.Answer{Err: errors.New("down")}) }, "party=Tenant 1"},
		{"the policy is gone", func() { s.learn(operator.Answer{}) }, ""},
	} {
		test.happens()
		s.step(summing, "")
		if got := shown(t, registry, "autonode_policy_not_ready"); got != test.want {
			t.Errorf("%s: not Ready: %q, want %q", test.what, got, test.want)
		}
		if s.board.Reading().Policy != nil {
			s.read() // what was written is read back
		}
	}
	refused := operator.Answer{Err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}
	s = newScene(t, []client.Object{wrapper("web")})
	registry = s.behind(s.guest)
	s.board.Set(operator.Reading{}.Next(refused, s.clock.Now(), false))
	s.clock.Advance(operator.ConfirmAfter)
	s.board.Set(s.board.Latest().Next(refused, s.clock.Now(), false))
	s.step(s.pools, "web")
	s.step(s.summing(s.guest, s.management), "")
	if got := shown(t, registry, "autonode_wrappers"); got != "applied=False,kind=OpenshiftNodePool,party=Provider 1" {
		t.Errorf("wrappers of a policy that may not be read: %q", got)
	}
}

// whether the guest is protected is shown in the words of the condition, with a policy and without.
func TestA23_WhetherTheGuestIsProtectedIsShown(t *testing.T) {
	t.Parallel()
	for _, policy := range []*hypershiftv1beta1.AutoNodePolicy{nil, policyOf(1, in(instanceType, "a"))} {
		s := newUnprotectedScene(t, nil)
		if policy != nil {
			s.must(s.management.Create(t.Context(), policy))
		}
		s.read()
		registry := s.behind(s.guest)
		summing, protector := s.summing(s.guest, s.management), s.protector(s.guest)
		said := func(what, want string) {
			t.Helper()
			s.step(summing, "")
			if got := shown(t, registry, "autonode_protected"); got != "reason="+want+" 1" {
				t.Errorf("%s: %q, want %s", what, got, want)
			}
			s.read()
		}
		said("before the start", hypershiftv1beta1.ReasonProtectionMissing)
		s.protect(protector)
		said("protected", hypershiftv1beta1.ReasonInForce)
		s.weaken()
		s.step(protector, "")
		said("weakened and restored just now", hypershiftv1beta1.ReasonProtectionMissing)
		s.clock.Advance(s.step(protector, "").RequeueAfter)
		s.step(protector, "")
		said("a while later", hypershiftv1beta1.ReasonInForce)
		open := operator.NewPolicyController(operator.PolicyConfig{
			Management: s.managementClient(), Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds,
			Board: s.board, ClaimsOpen: true, Metrics: s.metrics, Now: s.clock.Now,
		})
		s.step(open, "")
		if got := shown(t, registry, "autonode_protected"); got != "reason="+hypershiftv1beta1.ReasonOpenByFlag+" 1" {
			t.Errorf("with the flag: %q", got)
		}
	}
}

// a release that is not had, or not yet, is the business of who asks for it; without bootstrap data for
// anybody it is the operator's.
func TestA45_AReleaseThatIsNotHadIsTheTenants(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"4.21.0": "party=Tenant 1", "": "party=Service 1"} {
		s := released(t, true, "", class("big"))
		s.bootstrap = nil
		s.asks(version, "")
		registry := s.behind(s.guest)
		s.step(s.classes, "big")
		s.step(s.summing(s.guest, s.management), "")
		if got := shown(t, registry, "autonode_policy_not_ready"); got != want {
			t.Errorf("version %q: not Ready: %q, want %q", version, got, want)
		}
	}
}
