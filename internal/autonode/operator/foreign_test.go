package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// madeAt is a NodePool and an EC2NodeClass of that name that nobody manages.
func madeAt(name string, at time.Time) []client.Object {
	meta := metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(at)}
	return []client.Object{
		&karpenterv1.NodePool{ObjectMeta: meta, Spec: karpenterv1.NodePoolSpec{
			Limits: karpenterv1.Limits{"cpu": resource.MustParse("100")},
		}},
		&karpenterawsv1.EC2NodeClass{ObjectMeta: meta},
	}
}

// strangers is a guest that is protected by the policy for a minute, with what was made then, and 10 and 11 s later.
func strangers(t *testing.T, rule operator.ForeignRule) *scene {
	t.Helper()
	start := controllertest.NewClock().Now().Add(-time.Minute).Truncate(time.Second)
	policy := policyOf(1)
	policy.Status.Conditions = []karpenterv1.Condition{
		{Type: hypershiftv1beta1.ConditionTypeProtectedOnce, Status: "True",
			LastTransitionTime: metav1.NewTime(start)},
	}
	s := newScene(t, slices.Concat(madeAt("legacy", start.Add(10*time.Second)),
		madeAt("foreign", start.Add(11*time.Second))), policy)
	s.read()
	s.under(rule)
	return s
}

// under lets the controllers follow a rule.
func (s *scene) under(rule operator.ForeignRule) { s.underBehind(rule, s.guest) }

func (s *scene) underBehind(rule operator.ForeignRule, server client.WithWatch) {
	make := func(kind operator.Kind) *operator.Controller {
		return operator.New(operator.Config{
			Kind: kind, Guest: operator.GuestClient{Client: server}, Live: server, Board: s.board, Foreign: rule,
			Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
		})
	}
	s.pools, s.classes = make(s.kinds[0]), make(s.kinds[1])
}

func (s *scene) everyone() {
	s.t.Helper()
	for _, name := range []string{"legacy", "foreign"} {
		s.step(s.pools, name)
		s.step(s.classes, name)
	}
}

func amounts(limits karpenterv1.Limits) string {
	var all []string
	for name, amount := range limits {
		all = append(all, string(name)+"="+amount.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// a product made more than 10 s after the guest was protected is foreign: it is reported, counted and, depending
// on the rule, limited or deleted. All three rules leave older products alone.
func TestA07_WhatIsForeignIsTreatedByTheRule(t *testing.T) {
	t.Parallel()
	for rule, c := range map[operator.ForeignRule]struct {
		limits string // of the foreign pool
		gone   bool
	}{
		operator.ForeignQuarantine: {limits: "cpu=0"}, operator.ForeignReport: {limits: "cpu=100"},
		operator.ForeignDelete: {gone: true}, "": {limits: "cpu=100"},
	} {
		s := strangers(t, rule)
		s.everyone()
		s.everyone()
		pool := s.nodePool("foreign")
		var class karpenterawsv1.EC2NodeClass
		err := s.guest.Get(t.Context(), types.NamespacedName{Name: "foreign"}, &class)
		if (pool == nil) != c.gone || (err != nil) != c.gone || pool != nil && amounts(pool.Spec.Limits) != c.limits {
			t.Errorf("%s: pool %+v, class %v", rule, pool, err)
		}
		if legacy := s.nodePool("legacy"); amounts(legacy.Spec.Limits) != "cpu=100" || len(legacy.Annotations) != 0 {
			t.Errorf("%s: the old pool became %+v", rule, legacy)
		}
		said := strings.Join(s.tape.Said(), "\n")
		for _, part := range []string{"legacy Unmanaged: no OpenshiftNodePool",
			"foreign Foreign: this NodePool was made past", "foreign Foreign: this EC2NodeClass was",
			"(--foreign-objects=" + string(rule) + ")"} {
			if !strings.Contains(said, part) {
				t.Errorf("%s: %q is not in\n%s", rule, part, said)
			}
		}
		if n := s.updates(); (n == 1) != (rule == operator.ForeignQuarantine) {
			t.Errorf("%s: %d updates of pools", rule, n)
		}
	}
}

// a wrapper of its name takes a pool out of quarantine; the limits are then the wrapper's.
func TestA07_AdoptionEndsTheQuarantine(t *testing.T) {
	t.Parallel()
	s := strangers(t, operator.ForeignQuarantine)
	s.everyone()
	if kept := s.nodePool("foreign").Annotations[operator.LimitsAnnotation]; kept != `{"cpu":"100"}` {
		t.Errorf("the former limits are kept as %q", kept)
	}
	s.change("foreign", func(p *karpenterv1.NodePool) {
		p.Spec.Limits = karpenterv1.Limits{"cpu": resource.MustParse("7")}
	})
	s.everyone() // somebody raises them in another gap
	if pool := s.nodePool("foreign"); amounts(pool.Spec.Limits) != "cpu=0" ||
		pool.Annotations[operator.LimitsAnnotation] != `{"cpu":"100"}` {
		t.Errorf("it became %+v", pool)
	}
	s.must(s.guest.Create(t.Context(), wrapper("foreign")))
	s.step(s.pools, "foreign")
	if pool := s.nodePool("foreign"); len(pool.Spec.Limits) != 0 || pool.Annotations[operator.LimitsAnnotation] != "" {
		t.Errorf("after the adoption it is %+v", pool)
	}
}

// a pool with replicas takes no other limit than nodes.
func TestA07_APoolWithReplicasIsLimitedByNodes(t *testing.T) {
	t.Parallel()
	s := strangers(t, operator.ForeignQuarantine)
	s.change("foreign", func(p *karpenterv1.NodePool) { p.Spec.Replicas, p.Spec.Limits = new(int64(3)), nil })
	s.everyone()
	if pool := s.nodePool("foreign"); amounts(pool.Spec.Limits) != "nodes=0" ||
		pool.Annotations[operator.LimitsAnnotation] != "null" {
		t.Errorf("it became %+v", pool)
	}
}

// without a policy the memory is the start of the process. While nobody knows since when the guest is protected,
// nothing is foreign, and it is looked at again.
func TestA07_SinceWhenTheGuestIsProtected(t *testing.T) {
	t.Parallel()
	clock := controllertest.NewClock()
	objects := func() []client.Object {
		return slices.Concat(madeAt("legacy", clock.Now().Add(10*time.Second)),
			madeAt("foreign", clock.Now().Add(11*time.Second)))
	}
	for name, c := range map[string]struct {
		answer  operator.Answer
		began   bool
		foreign bool
		again   time.Duration
	}{
		"no policy":                  {operator.Answer{}, true, true, 0},
		"no policy, not begun":       {operator.Answer{}, false, false, time.Second},
		"a policy that says nothing": {operator.Answer{Policy: policyOf(1)}, true, false, time.Second},
		"an unknown policy":          {operator.Answer{Err: errForbidden}, true, false, time.Second},
	} {
		s := newScene(t, objects())
		if c.began {
			s.step(s.protector(s.guest), "")
		}
		s.learn(c.answer)
		s.under(operator.ForeignQuarantine)
		if again := s.step(s.pools, "foreign").RequeueAfter; again != c.again {
			t.Errorf("%s: again after %s, want %s", name, again, c.again)
		}
		s.step(s.pools, "legacy")
		if limited := amounts(s.nodePool("foreign").Spec.Limits) == "cpu=0"; limited != c.foreign ||
			amounts(s.nodePool("legacy").Spec.Limits) != "cpu=100" {
			t.Errorf("%s: limited %t, want %t", name, limited, c.foreign)
		}
	}
}

// Protected follows the admission policies; ProtectedOnce is True from the first time on and never changes.
func TestA07_ProtectedOnceIsTheMemory(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil, policyOf(1))
	s.read()
	c := s.protector(s.guest)
	s.protect(c)
	told := 0
	s.board.OnVerdict(func(string, string) { told++ })
	says := func(when string, protected metav1.ConditionStatus, part string) karpenterv1.Condition {
		t.Helper()
		s.step(s.policy, "")
		s.read()
		said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeProtected)
		if said.Status != protected || !strings.Contains(said.Message, part) {
			t.Errorf("%s: Protected is %+v", when, said)
		}
		once, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeProtectedOnce)
		return once
	}
	first := says("at first", "True", "")
	if first.Status != metav1.ConditionTrue ||
		!first.LastTransitionTime.Time.Equal(s.clock.Now().Truncate(time.Second)) {
		t.Errorf("ProtectedOnce is %+v", first)
	}
	s.clock.Advance(time.Hour)
	s.weaken()
	s.step(c, "")
	if once := says("weakened", "False", "restored: ValidatingAdmissionPolicyBinding "+poolBinding); once != first {
		t.Errorf("ProtectedOnce became %+v", once)
	}
	s.clock.Advance(2 * time.Second)
	s.step(c, "")
	if once := says("in force again", "True", ""); once != first || told != 2 {
		t.Errorf("ProtectedOnce became %+v, told %d times", once, told)
	}
}

// how many are foreign is counted, beside all that are unmanaged.
func TestA07_ForeignObjectsAreCounted(t *testing.T) {
	t.Parallel()
	s := strangers(t, operator.ForeignReport)
	registry := s.behind(s.guest)
	s.must(s.guest.Create(t.Context(),
		&karpenterv1.NodePool{
			ObjectMeta: metav1.ObjectMeta{Name: "ours", CreationTimestamp: metav1.NewTime(s.clock.Now()),
				Labels: map[string]string{merge.ManagedByLabel: merge.ManagedByValue}}}))
	s.step(s.summing(s.guest, s.management), "")
	for _, kind := range []string{"NodePool", "EC2NodeClass"} {
		if foreign, all := controllertest.Count(t, registry, "autonode_foreign_objects", kind),
			controllertest.Count(t, registry, "autonode_unmanaged_objects", kind); foreign != 1 || all != 2 {
			t.Errorf("%v of %v %ss are foreign", foreign, all, kind)
		}
	}
}

// if a foreign object cannot be read, limited or deleted, that is reported and retried.
func TestA07_NoFailureToTreatIsSwallowed(t *testing.T) {
	t.Parallel()
	for _, rule := range []operator.ForeignRule{operator.ForeignQuarantine, operator.ForeignDelete} {
		controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			s := strangers(t, rule)
			s.underBehind(rule, f.Wrap(s.guest))
			return s.steps(s.pools, "foreign", nil)
		})
	}
}

// without a policy the memory is the first look at the admission policies, and not a later one.
func TestA07_TheFirstLookCounts(t *testing.T) {
	t.Parallel()
	s := newScene(t, madeAt("foreign", controllertest.NewClock().Now().Add(11*time.Second)))
	c := s.protector(s.guest)
	s.step(c, "")
	s.clock.Advance(time.Hour)
	s.step(c, "")
	s.learn(operator.Answer{})
	s.under(operator.ForeignQuarantine)
	if s.step(s.pools, "foreign"); amounts(s.nodePool("foreign").Spec.Limits) != "cpu=0" {
		t.Error("what was made between two looks is not foreign")
	}
}

// a product known to be older is left alone, and not checked again and again.
func TestA07_WhatIsOlderIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	s := strangers(t, operator.ForeignQuarantine)
	if again := s.step(s.pools, "legacy").RequeueAfter; again != 0 {
		t.Errorf("again after %s", again)
	}
}

// nothing is limited or deleted while the API server has a wrapper of its name, which the cache does not show
// yet.
func TestA07_WhatHasAWrapperIsNotForeign(t *testing.T) {
	t.Parallel()
	for _, rule := range []operator.ForeignRule{operator.ForeignQuarantine, operator.ForeignDelete} {
		s := strangers(t, rule)
		s.must(s.guest.Create(t.Context(), wrapper("foreign")))
		cache := newStale(s.guest)
		cache.hide(wrapper("foreign"))
		pools := operator.New(operator.Config{
			Kind: s.kinds[0], Guest: operator.GuestClient{Client: cache}, Live: s.guest, Board: s.board, Foreign: rule,
			Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
		})
		again := s.step(pools, "foreign").RequeueAfter
		pool := s.nodePool("foreign")
		if pool == nil || amounts(pool.Spec.Limits) != "cpu=100" || again != 100*time.Millisecond {
			t.Errorf("%s: the pool became %+v, again after %s", rule, pool, again)
		}
	}
}

// A-07, U-10: a quarantine is a write, and counts as one.
func TestA07_AQuarantineIsCounted(t *testing.T) {
	t.Parallel()
	s := strangers(t, operator.ForeignQuarantine)
	registry := s.behind(s.guest)
	s.under(operator.ForeignQuarantine)
	s.everyone()
	s.everyone()
	if n := controllertest.Count(t, registry, "autonode_writes_total", "NodePool", "update"); n != 1 {
		t.Errorf("%v updates of pools are counted, want 1", n)
	}
}
