package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

const zoneLabel = "topology.kubernetes.io/zone"

// before the first answer of the management cluster nothing is known of the policy, for whoever asks.
func TestA04_NothingIsKnownAtTheStart(t *testing.T) {
	t.Parallel()
	board := operator.NewBoard()
	if now, latest := board.Reading().State, board.Latest().State; now != operator.StateStarting || latest != now {
		t.Errorf("the policy is %q, and latest %q", now, latest)
	}
}

// A-04, G14, G15: what leaves the rule as it is counts at once.
func TestA04_WhatChangesNoRuleCountsAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	woken := 0
	s.ruler(s.guest, &woken)
	for name, answer := range map[string]operator.Answer{
		"a failure that passes": {Err: errors.New("down")},
		"refused for a moment":  {Err: errForbidden},
		"not valid":             {Policy: policyOf(2, in(zoneLabel, "a"), in(zoneLabel, "b"))},
	} {
		s.learn(answer)
		if !s.board.Reading().SameForWrappers(s.board.Latest()) {
			t.Errorf("%s: it does not count", name)
		}
	}
	s.learn(operator.Answer{Policy: policyOf(3, in(zoneLabel, "a"))})
	if s.board.Reading().SameForWrappers(s.board.Latest()) {
		t.Error("a valid policy counts before the rule is there for it")
	}
}

// a rule that is rewritten for a new node class was not restored.
func TestA04_ANewClassIsNoRestoration(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1, in(zoneLabel, "a")))
	woken := 0
	c := s.ruler(s.guest, &woken)
	s.read()
	s.step(c, "")
	s.must(s.guest.Create(t.Context(), class("large")))
	if s.step(c, ""); !speaksOf(s.rule(), "'large'") || s.restored() != 0 {
		t.Errorf("the rule has the new class: %t, %d events of a restoration", speaksOf(s.rule(), "'large'"),
			s.restored())
	}
}

// A-04, G14: of a policy that is not valid no rule is made. The last one is kept, with the node classes of now.
func TestA04_ThePolicyBeforeKeepsItsRule(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")})
	woken := 0
	c := s.ruler(s.guest, &woken)
	invalid := operator.Answer{Policy: policyOf(2, in(zoneLabel, "a"), in(zoneLabel, "b"))}
	s.learn(invalid)
	if s.step(c, ""); s.rule() != nil {
		t.Errorf("a policy that is not valid has the rule %+v", s.rule())
	}
	s.learn(operator.Answer{Policy: policyOf(3, in(zoneLabel, "a"))})
	s.step(c, "")
	s.learn(invalid)
	s.must(s.guest.Delete(t.Context(), s.rule()))
	s.must(s.guest.Create(t.Context(), class("large")))
	s.step(c, "")
	if rule := s.rule(); rule == nil || !speaksOf(rule, zoneLabel) || !speaksOf(rule, "'large'") {
		t.Errorf("the rule of the policy before became %+v", rule)
	}
}

// a policy that comes while the rule is written for the one before waits for its own.
func TestA04_APolicyThatComesMeanwhileWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil, policyOf(1, in(zoneLabel, "a")))
	meanwhile := func() { s.learn(operator.Answer{Policy: policyOf(2, in(zoneLabel, "b"))}) }
	woken := 0
	c := s.ruler(interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(ctx context.Context, server client.WithWatch, o client.Object,
			options ...client.CreateOption) error {
			meanwhile()
			return server.Create(ctx, o, options...)
		},
	}), &woken)
	s.read()
	if s.step(c, ""); s.board.Reading().Known() || woken != 0 {
		t.Errorf("%+v counts, though the rule is of the policy before; woken %d times", s.board.Reading(), woken)
	}
	if s.step(c, ""); woken != 1 || s.board.Reading().Policy == nil || s.board.Reading().Policy.Generation != 2 {
		t.Errorf("%+v counts after its rule was written; woken %d times", s.board.Reading(), woken)
	}
}

// a node class that the rule does not have yet waits for it, and looks again soon. What else it waits for is
// told first.
func TestA04_WhatANodeClassWaitsFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(*scene)
		says    string
		again   time.Duration
	}{
		"the rule": {func(*scene) {}, "the rule for NodeClaims does not have this node class yet",
			200 * time.Millisecond},
		"the bootstrap": {func(s *scene) { s.bootstrap = nil }, "the user data of this node class", time.Second},
		"an answer": {func(s *scene) { s.unread = errors.New("down") },
			"what nodes start with cannot be read at the moment", 10 * time.Second},
	} {
		s := newScene(t, []client.Object{class("big")}, policyOf(1, in(zoneLabel, "a")))
		s.read()
		c.happens(s)
		again := s.step(s.controller(operator.AfterRule(s.kinds[1], s.board)), "big").RequeueAfter
		said := s.classSays("big", hypershiftv1beta1.ConditionTypePolicyApplied)
		if !strings.Contains(said.Message, c.says) || said.Reason != operator.ReasonWaiting || again != c.again ||
			s.ec2Class("big") {
			t.Errorf("%s: it says %s %q, again after %s; the class is made: %t", name, said.Reason, said.Message,
				again, s.ec2Class("big"))
		}
	}
}

// node classes that the rule has no room for are not made, and that is told. When there is room they are.
func TestA04_ANodeClassWithoutRoomInTheRuleWaits(t *testing.T) {
	t.Parallel()
	var classes []client.Object
	named := func(i int) string { return fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 240)) }
	for i := range 900 {
		classes = append(classes, class(named(i)))
	}
	s := newScene(t, classes, policyOf(1, in(zoneLabel, "a")))
	woken := 0
	c := s.ruler(s.guest, &woken)
	s.read()
	s.step(c, "")
	kind := s.controller(operator.AfterRule(s.kinds[1], s.board))
	last := named(899)
	s.step(kind, last)
	said := s.classSays(last, hypershiftv1beta1.ConditionTypePolicyApplied)
	if s.ec2Class(last) || said.Reason != hypershiftv1beta1.ReasonRuleTooLarge || !strings.Contains(said.Message,
		"the rule for NodeClaims has no room for this node class") {
		t.Errorf("the class is made: %t; it says %s: %s", s.ec2Class(last), said.Reason, said.Message)
	}
	if s.step(kind, named(0)); !s.ec2Class(named(0)) {
		t.Error("a class that the rule has is not made")
	}
	ready := s.policySays(metav1.ConditionFalse, hypershiftv1beta1.ReasonRuleTooLarge)
	if protected := s.policyCondition(hypershiftv1beta1.ConditionTypeProtected); protected.Status != "True" ||
		!strings.Contains(ready, "OpenshiftEC2NodeClass "+last) { // what the rule does not have is refused
		t.Errorf("the policy says %q and %s: %s", ready, protected.Reason, protected.Message)
	}
	for i := 1; i < 500; i++ {
		s.must(s.guest.Delete(t.Context(), class(named(i))))
	}
	before := woken
	if s.step(c, ""); woken != before+1 {
		t.Errorf("woken %d times when there is room, want once", woken-before)
	}
	if s.step(kind, last); !s.ec2Class(last) {
		t.Error("the class is not made, though there is room")
	}
}
