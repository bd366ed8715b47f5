package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// ruler keeps the rule for NodeClaims through server; woken counts how often it lets a reading count.
func (s *scene) ruler(server client.Client, woken *int) *operator.ClaimRuleController {
	s.t.Helper()
	return operator.NewClaimRuleController(operator.ClaimRuleConfig{
		Guest: operator.GuestClient{Client: server}, Board: s.board, Class: s.kinds[1],
		AnyOf: []schema.GroupKind{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}},
		Wake:  func(context.Context) { *woken++ }, Events: s.tape, Metrics: s.metrics, Now: s.clock.Now,
		Log: logr.Discard(),
	})
}

// rule returns the rule as the guest has it, nil for none.
func (s *scene) rule() *admissionv1.ValidatingAdmissionPolicy {
	s.t.Helper()
	var found admissionv1.ValidatingAdmissionPolicy
	err := s.guest.Get(s.t.Context(), types.NamespacedName{Name: operator.ClaimRule().Policy.Name}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return &found
}

// speaksOf reports whether the rule has something to say of a text.
func speaksOf(rule *admissionv1.ValidatingAdmissionPolicy, text string) bool {
	return slices.ContainsFunc(rule.Spec.Validations, func(v admissionv1.Validation) bool {
		return strings.Contains(v.Expression, text)
	}) ||
		slices.ContainsFunc(rule.Spec.Variables, func(v admissionv1.Variable) bool {
			return strings.Contains(v.Expression, text)
		})
}

// restored counts the events that tell of a restored rule.
func (s *scene) restored() int {
	count := 0
	for _, said := range s.tape.Said() {
		if strings.Contains(said, " "+operator.ReasonRestored+": ") {
			count++
		}
	}
	return count
}

// ec2Class reports whether there is an EC2NodeClass of that name.
func (s *scene) ec2Class(name string) bool {
	s.t.Helper()
	err := s.guest.Get(s.t.Context(), types.NamespacedName{Name: name}, &karpenterawsv1.EC2NodeClass{})
	s.must(client.IgnoreNotFound(err))
	return err == nil
}

// the rule is written for a generation of the policy before any pool follows it, whether it narrows or widens.
func TestA04_TheRuleComesBeforeThePools(t *testing.T) {
	t.Parallel()
	const zone = "topology.kubernetes.io/zone"
	s := newScene(t, []client.Object{wrapper("web"), class("default")}, policyOf(1, in(zone, "a")))
	woken := 0
	c := s.ruler(s.guest, &woken)
	for generation, zones := range [][]string{{"a"}, {"a", "b"}, {"b"}} {
		p := policyOf(int64(generation+1), in(zone, zones...))
		s.must(client.IgnoreNotFound(s.management.Delete(s.t.Context(), p)))
		s.must(s.management.Create(s.t.Context(), p))
		s.read()
		before := s.nodePool("web")
		s.step(s.pools, "web")
		if after := s.nodePool("web"); (before == nil) != (after == nil) ||
			after != nil && after.ResourceVersion != before.ResourceVersion {
			t.Fatalf("generation %d: the pool was written before the rule", generation+1)
		}
		s.step(c, "")
		if woken != generation+1 {
			t.Errorf("generation %d: woken %d times", generation+1, woken)
		}
		rule := s.rule()
		for _, value := range []string{"a", "b"} {
			if got := speaksOf(rule, "'"+value+"': 0"); got != slices.Contains(zones, value) {
				t.Errorf("generation %d: zone %s is allowed: %t", generation+1, value, got)
			}
		}
		s.step(s.pools, "web")
		if got := s.nodePool("web").Spec.Template.Spec.Requirements[0].Values; !slices.Equal(got, zones) {
			t.Errorf("generation %d: the pool has %v", generation+1, got)
		}
	}
	if s.step(c, ""); woken != 3 {
		t.Errorf("woken %d times, though nothing is new", woken)
	}
}

// A-04, G14, G15: a policy that is not valid leaves the last rule; without a policy, and where it may not be read, the
// rule has the node classes only.
func TestA04_WhichPolicyTheRuleIsFor(t *testing.T) {
	t.Parallel()
	const zone = "topology.kubernetes.io/zone"
	s := newScene(t, []client.Object{class("default")})
	woken := 0
	c := s.ruler(s.guest, &woken)
	invalid := policyOf(2, in(zone, "a"), in(zone, "b"))
	for _, step := range []struct {
		what    string
		answer  operator.Answer
		wants   bool
		advance time.Duration
	}{
		{"no policy", operator.Answer{}, false, 0},
		{"a policy", operator.Answer{Policy: policyOf(1, in(zone, "a"))}, true, 0},
		{"an invalid one", operator.Answer{Policy: invalid}, true, 0},
		{"a failure that passes", operator.Answer{Err: errors.New("down")}, true, 0},
		{"refused for a moment", operator.Answer{Err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, true,
			0},
		{"refused for good", operator.Answer{Err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, false,
			operator.ConfirmAfter},
		{"a policy again", operator.Answer{Policy: policyOf(3, in(zone, "a"))}, true, 0},
		{"deleted", operator.Answer{}, false, 0},
	} {
		s.clock.Advance(step.advance)
		s.board.Set(s.board.Latest().Next(step.answer, s.clock.Now(), false))
		s.step(c, "")
		if got := speaksOf(s.rule(), zone); got != step.wants {
			t.Errorf("%s: the rule speaks of the zone: %t", step.what, got)
		}
		if !s.board.Reading().SameForWrappers(s.board.Latest()) {
			t.Errorf("%s: what was read does not count", step.what)
		}
	}
}

// the rule has every node class with a wrapper and all of the kinds without wrappers; a node class is
// written only when the rule has it.
func TestA04_TheRuleComesBeforeANodeClass(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")})
	woken := 0
	c := s.ruler(s.guest, &woken)
	classes := s.controller(operator.AfterRule(s.kinds[1], s.board))
	s.read()
	s.step(c, "")
	s.must(s.guest.Create(t.Context(), class("large")))
	for _, name := range []string{"default", "large"} {
		s.step(classes, name)
	}
	if !s.ec2Class("default") || s.ec2Class("large") {
		t.Error("want the class that the rule has, and not the other")
	}
	s.step(c, "")
	if s.step(classes, "large"); !s.ec2Class("large") {
		t.Error("the class is not written after the rule")
	}
	for _, text := range []string{"'default': 0, 'large': 0", "KWOKNodeClass"} {
		if !speaksOf(s.rule(), text) {
			t.Errorf("the rule lacks %s: %+v", text, s.rule().Spec.Validations)
		}
	}
	s.must(s.guest.Delete(t.Context(), class("large")))
	for range 2 { // the product goes, and then the wrapper
		s.step(classes, "large")
	}
	if s.step(c, ""); speaksOf(s.rule(), "large") {
		t.Error("the rule has a class that is gone")
	}
}

// A-04, R38: a rule that somebody changed or deleted is restored, and that is told; rewriting it for a policy is not.
func TestA04_TheRuleIsRestored(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1, in("topology.kubernetes.io/zone", "a")))
	woken := 0
	c := s.ruler(s.guest, &woken)
	s.read()
	s.step(c, "")
	if got := s.restored(); got != 0 {
		t.Errorf("%d events of a rule that was never there", got)
	}
	for i, spoil := range []func(){
		func() {
			rule := s.rule()
			rule.Spec.Validations = rule.Spec.Validations[:1]
			s.must(s.guest.Update(t.Context(), rule))
		},
		func() { s.must(s.guest.Delete(t.Context(), s.rule())) },
		func() { rule := operator.ClaimRule(); s.must(s.guest.Delete(t.Context(), &rule.Binding)) },
	} {
		spoil()
		s.step(c, "")
		if !speaksOf(s.rule(), "topology.kubernetes.io/zone") || s.restored() != i+1 {
			t.Errorf("case %d: %d events, rule %+v", i, s.restored(), s.rule())
		}
	}
	s.board.Release()
	s.must(s.guest.Delete(t.Context(), s.rule()))
	if s.step(c, ""); s.rule() != nil {
		t.Error("restored after a teardown")
	}
}

// no failure to write the rule is swallowed, and until it is written nothing follows the policy.
func TestA04_NoFailureToWriteTheRuleIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, []client.Object{class("default")}, policyOf(1, in("topology.kubernetes.io/zone", "a")))
		woken := 0
		c := s.ruler(f.Wrap(s.guest), &woken)
		s.read()
		return func() error {
			_, err := c.Reconcile(t.Context(), request(""))
			if err != nil && s.board.Reading().Known() {
				t.Error("what was read counts, though the rule is not there")
			}
			return err
		}
	})
}

// if the guest's admin removes the right to write the rule, the policy reaches the pools all the same. The
// failure is reported, and the write retried.
func TestA04_ALostRightDoesNotKeepThePolicyFromThePools(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1, in("topology.kubernetes.io/zone", "a")))
	forbidden := interceptor.NewClient(s.guest,
		interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
			...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "rule", errors.New("taken away"))
		}})
	woken := 0
	c := s.ruler(forbidden, &woken)
	s.read()
	for range 2 {
		if _, err := c.Reconcile(t.Context(), request("")); err == nil {
			t.Error("the failure is swallowed")
		}
	}
	if woken != 1 || s.board.Reading().Policy == nil {
		t.Errorf("woken %d times, the board shows %+v", woken, s.board.Reading())
	}
	protected := func() string {
		s.step(s.policy, "")
		said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeProtected)
		return said.Reason + ": " + said.Message
	}
	if got := protected(); !strings.HasPrefix(got, hypershiftv1beta1.ReasonProtectionMissing+": ") ||
		!strings.Contains(got, operator.ClaimRule().Policy.Name) {
		t.Errorf("the policy says %s", got)
	}
	if s.step(s.ruler(s.guest, &woken), ""); woken != 2 {
		t.Errorf("woken %d times after the rule is there", woken)
	}
	s.read() // the status that was written
	if got := protected(); !strings.HasPrefix(got, hypershiftv1beta1.ReasonInForce) {
		t.Errorf("then the policy says %s", got)
	}
}

// tooMany excludes more values of a label than the rule has room for.
func tooMany(key string) (entries []karpenterv1.NodeSelectorRequirementWithMinValues) {
	for part := range 2 {
		e := karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: "NotIn"}
		for i := range 600 {
			e.Values = append(e.Values, "v"+string(rune('a'+part))+strings.Repeat("x", i%60)+string(rune('a'+i%26)))
		}
		slices.Sort(e.Values)
		e.Values = slices.Compact(e.Values)
		entries = append(entries, e)
	}
	return entries
}

// labels for which the rule would be too large are told.
func TestA04_WhatIsTooLargeForTheRuleIsTold(t *testing.T) {
	t.Parallel()
	entries := append(tooMany("example.com/many"), in("topology.kubernetes.io/zone", "a"))
	s := newScene(t, []client.Object{class("default")}, policyOf(1, entries...))
	woken := 0
	c := s.ruler(s.guest, &woken)
	s.read()
	s.step(c, "")
	if got := s.board.RuleLeftOut().Labels; len(got) != 1 || got[0] != "example.com/many" {
		t.Errorf("left out %v", got)
	}
	s.board.Protect()
	s.step(s.policy, "")
	said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeProtected)
	if said.Reason != hypershiftv1beta1.ReasonRuleTooLarge || !strings.Contains(said.Message, "example.com/many") {
		t.Errorf("the policy says %+v", said)
	}
	if rule := s.rule(); speaksOf(rule, "example.com/many") || !speaksOf(rule, "topology.kubernetes.io/zone") {
		t.Error("the rule should have the zone only")
	}
	if _, leftOut, err := merge.ClaimRule(policyOf(1), nil, nil); err != nil || len(leftOut.Labels) > 0 {
		t.Errorf("%v %v", leftOut, err)
	}
}

// the rule states the generation of its policy, to whoever is refused and to whoever finds it left behind, even
// if a new generation asks the same of NodeClaims.
func TestA48_TheRuleCarriesTheGeneration(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	woken := 0
	c := s.ruler(s.guest, &woken)
	for _, test := range []struct {
		policy           *hypershiftv1beta1.AutoNodePolicy
		annotation, told string
	}{
		{policyOf(1, in("topology.kubernetes.io/zone", "a")), "1", "(generation 1 of the AutoNodePolicy)"},
		{policyOf(2, in("topology.kubernetes.io/zone", "a")), "2", "(generation 2 of the AutoNodePolicy)"},
		{nil, "none", "(there is no AutoNodePolicy)"},
	} {
		s.board.Set(s.board.Latest().Next(operator.Answer{Policy: test.policy}, s.clock.Now(), false))
		s.step(c, "")
		rule := s.rule()
		if got := rule.Annotations[merge.RuleGenerationAnnotation]; got != test.annotation {
			t.Errorf("the rule is of generation %q, want %q", got, test.annotation)
		}
		if note := rule.Annotations[merge.RuleNoteAnnotation]; !strings.Contains(note,
			"delete the binding "+operator.ClaimRule().Binding.Name) {
			t.Errorf("the note is %q", note)
		}
		for _, validation := range rule.Spec.Validations {
			if !strings.HasSuffix(validation.Message, test.told) {
				t.Errorf("it tells %q, want %q at its end", validation.Message, test.told)
			}
		}
	}
	if events := s.restored(); events != 0 {
		t.Errorf("%d events tell of a restored rule: a new generation is none", events)
	}
}
