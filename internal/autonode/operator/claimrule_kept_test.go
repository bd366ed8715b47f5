package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// backwards lists the guest's objects from the last to the first while backwards is set: a cache has no order.
func (s *scene) backwards(backwards *bool) client.WithWatch {
	return interceptor.NewClient(s.guest, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil || !*backwards {
				return err
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
				items[i], items[j] = items[j], items[i]
			}
			return meta.SetList(list, items)
		},
	})
}

// A-04, G14: while the policy is unknown or invalid, the existing rule stays. A new process does not write another,
// and a process that has written it restores it.
func TestA04_APolicyThatIsNotKnownLeavesTheRule(t *testing.T) {
	t.Parallel()
	const zone = "topology.kubernetes.io/zone"
	for what, answer := range map[string]operator.Answer{
		"not valid": {Policy: policyOf(2, in(zone, "a"), in(zone, "b"))},
		"not read":  {Err: errors.New("down")},
	} {
		s := newScene(t, []client.Object{class("default")}, policyOf(1, in(zone, "a")))
		woken := 0
		c := s.ruler(s.guest, &woken)
		s.read()
		s.step(c, "")
		s.learn(answer)
		s.must(s.guest.Delete(t.Context(), s.rule()))
		if s.step(c, ""); s.rule() == nil || !speaksOf(s.rule(), zone) || s.restored() != 1 {
			t.Fatalf("%s: restored %d times, the rule is %+v", what, s.restored(), s.rule())
		}
		before := s.rule().ResourceVersion
		s.board = operator.NewBoard()
		begun := s.ruler(s.guest, &woken)
		s.learn(answer)
		if s.step(begun, ""); s.rule().ResourceVersion != before {
			t.Errorf("%s: a process that has just begun wrote %+v", what, s.rule().Spec)
		}
	}
}

// A-04, G25: if no node classes have wrappers, the rule has only the kinds without wrappers.
func TestA04_TheRuleWhereThereAreNoWrappersOfClasses(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1))
	c := operator.NewClaimRuleController(operator.ClaimRuleConfig{
		Guest: operator.GuestClient{Client: s.guest}, Board: s.board,
		AnyOf: []schema.GroupKind{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}},
		Wake:  func(context.Context) {}, Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	s.read()
	if s.step(c, ""); !speaksOf(s.rule(), "KWOKNodeClass") || speaksOf(s.rule(), "'default'") {
		t.Errorf("the rule is %+v", s.rule().Spec.Validations)
	}
}

// a temporary failure to write the rule is reported in the policy, once, before the retry.
func TestA04_AFailureToWriteTheRuleIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1))
	woken := 0
	c := s.ruler(interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewInternalError(errors.New("etcd is slow"))
		},
	}), &woken)
	s.read()
	for range 2 {
		if _, err := c.Reconcile(t.Context(), request("")); err == nil || woken != 1 {
			t.Errorf("error %v, woken %d times, want an error and once", err, woken)
		}
	}
}

// whoever tells which labels the rule leaves out is woken when these are others than before, also for a policy
// that is followed already.
func TestA04_WhoTellsWhatIsLeftOutIsWoken(t *testing.T) {
	t.Parallel()
	const zone = "topology.kubernetes.io/zone"
	s := newScene(t, nil, policyOf(1, in(zone, "a")))
	woken := 0
	s.read()
	c := s.ruler(s.guest, &woken) // what was read before counts
	if s.step(c, ""); woken != 0 {
		t.Errorf("woken %d times, though nothing is left out", woken)
	}
	s.board = operator.NewBoard()
	s.learn(operator.Answer{Policy: policyOf(2, tooMany("example.com/many")...)})
	c = s.ruler(s.guest, &woken)
	for range 2 {
		if s.step(c, ""); woken != 1 {
			t.Errorf("woken %d times, want once for what is left out", woken)
		}
	}
}

// A-04, R38: a rule that was changed is told of, in whatever order the cache lists the node classes.
func TestA04_TheOrderOfTheCacheHidesNoRepair(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default"), class("large")}, policyOf(1))
	woken, backwards := 0, false
	c := s.ruler(s.backwards(&backwards), &woken)
	s.read()
	s.step(c, "")
	backwards = true
	s.must(s.guest.Delete(t.Context(), s.rule()))
	if s.step(c, ""); s.rule() == nil || s.restored() != 1 {
		t.Errorf("%d events tell of the repair, want one", s.restored())
	}
}

// a rule that cannot be written for long does not hold a policy back, whatever the status of the failure. Until
// then the new generation says what it waits for.
func TestA04_ARuleThatFailsForLongDoesNotHoldThePolicyBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web"), class("default")}, policyOf(1, in(zoneLabel, "a")))
	woken, busy := 0, false
	c := s.ruler(interceptor.NewClient(s.guest, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if busy {
				return apierrors.NewTooManyRequests("a tenant's limit", 1)
			}
			return c.Update(ctx, o, options...)
		},
	}), &woken)
	s.read()
	follow := func() { s.step(c, ""); s.step(s.classes, "default"); s.step(s.pools, "web") }
	follow()
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	busy = true
	s.must(s.management.Delete(t.Context(), policyOf(1)))
	s.must(s.management.Create(t.Context(), policyOf(2, in(zoneLabel, "b"))))
	s.read()
	for _, test := range []struct {
		after   time.Duration
		follows bool
		woken   int
	}{{0, false, 2}, {29 * time.Second, false, 2}, {time.Second, true, 3}} {
		s.clock.Advance(test.after)
		if _, err := c.Reconcile(t.Context(), request("")); err == nil || woken != test.woken {
			t.Errorf("error %v, woken %d times, want an error and %d", err, woken, test.woken)
		}
		if got := s.board.Reading().Policy.Generation == 2; got != test.follows {
			t.Errorf("after %s: the policy counts: %t", test.after, got)
		}
		s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing)
		said := s.policyCondition(hypershiftv1beta1.ConditionTypeProtected)
		if said.ObservedGeneration != 2 || said.Reason != hypershiftv1beta1.ReasonProtectionMissing ||
			said.Message != "these could not be written in the hosted cluster: ValidatingAdmissionPolicy "+
				operator.ClaimRule().Policy.Name+" (TooManyRequests)" {
			t.Errorf("the policy says %+v", said)
		}
	}
	busy = false
	follow()
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
}
