package operator_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// summing sums up the wrappers of server for the policy in management.
func (s *scene) summing(server client.Client, management client.WithWatch) *operator.PolicyController {
	return operator.NewPolicyController(operator.PolicyConfig{
		Management: operator.ManagementClientOf(management, namespace), Guest: operator.GuestClient{Client: server},
		Kinds: s.kinds, Board: s.board, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
}

// G18, U-10: how many wrappers are in which state is shown, with a policy and without; so is what belongs to none and
// is not the operator's.
func TestWrappersAndStrangersAreCounted(t *testing.T) {
	t.Parallel()
	forged := func(name string) *hypershiftv1beta1.OpenshiftNodePool {
		w := wrapper(name)
		w.Status.Conditions = []karpenterv1.Condition{
			{Type: hypershiftv1beta1.ConditionTypePolicyApplied, Status: "True"},
		}
		return w
	}
	pool := func(name string, labels map[string]string) *karpenterv1.NodePool {
		return &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	s := newUnprotectedScene(t, []client.Object{
		wrapper("a"), wrapper("b"), forged("c"), forged("d"), forged("e"), class("f"),
		pool("a", nil), pool("orphan", map[string]string{merge.ManagedByLabel: merge.ManagedByValue}), pool("x",
			nil), pool("y", nil),
		&karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "z"}},
	})
	registry := s.behind(s.guest)
	s.board.Protect()
	s.learn(operator.Answer{}) // there is no policy
	for name, status := range map[string]metav1.ConditionStatus{"a": "True", "b": "True", "c": "False",
		"d": "Unknown"} {
		s.board.Reach("OpenshiftNodePool", name, operator.Verdict{
			UID: types.UID("uid-" + name), Generation: 1,
			Conditions: []karpenterv1.Condition{{Type: hypershiftv1beta1.ConditionTypePolicyApplied, Status: status}},
		})
	}
	s.step(s.summing(s.guest, s.management), "")
	for _, m := range []struct {
		name, kind, applied string
		want                float64
	}{
		{"autonode_wrappers", "OpenshiftNodePool", "True", 2},
		{"autonode_wrappers", "OpenshiftNodePool", "False", 1},
		{"autonode_wrappers", "OpenshiftNodePool", "Unknown", 2},
		{"autonode_wrappers", "OpenshiftEC2NodeClass", "True", 0},
		{"autonode_wrappers", "OpenshiftEC2NodeClass", "False", 0},
		{"autonode_wrappers", "OpenshiftEC2NodeClass", "Unknown", 1},
		{"autonode_unmanaged_objects", "NodePool", "", 2},
		{"autonode_unmanaged_objects", "EC2NodeClass", "", 1},
	} {
		labels := []string{m.kind}
		if m.applied != "" {
			labels = append(labels, m.applied)
		}
		if n := controllertest.Count(t, registry, m.name, labels...); n != m.want {
			t.Errorf("%s %v is %v, want %v", m.name, labels, n, m.want)
		}
	}
}

// G16, G22: nothing is said on a policy before the guest is protected, since until then it does not hold.
func TestAPolicyIsNotReadyBeforeTheGuestIsProtected(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil, policyOf(1))
	s.read()
	s.step(s.policy, "")
	if said := s.stored().Status.Conditions; len(said) != 0 {
		t.Errorf("it says %v", said)
	}
}

// what an earlier process has said does not stay if this one cannot protect the guest for a minute.
func TestA03_WhatWasSaidDoesNotStayIfTheGuestCannotBeProtected(t *testing.T) {
	t.Parallel()
	policy := policyOf(1)
	for _, kind := range []string{hypershiftv1beta1.ConditionTypeReady, hypershiftv1beta1.ConditionTypeProtected,
		hypershiftv1beta1.ConditionTypeConforming} {
		policy.Status.Conditions = append(policy.Status.Conditions, karpenterv1.Condition{Type: kind,
			Status: metav1.ConditionTrue, Reason: "Before", ObservedGeneration: 1})
	}
	s := newUnprotectedScene(t, nil, policy)
	s.read()
	s.board.SetMissing([]string{"ValidatingAdmissionPolicy x"})
	if again := s.step(s.policy, "").RequeueAfter; again != time.Minute {
		t.Errorf("again after %s", again)
	}
	if got := s.stored().Status.Conditions; len(got) != 3 || got[0].Reason != "Before" {
		t.Errorf("at once it says %v", got)
	}
	s.clock.Advance(time.Minute)
	s.step(s.policy, "")
	const missing = "the admission policies are not in force yet: ValidatingAdmissionPolicy x"
	for _, want := range []karpenterv1.Condition{
		{Type: hypershiftv1beta1.ConditionTypeReady, Status: metav1.ConditionUnknown,
			Reason: hypershiftv1beta1.ReasonProtectionMissing, Message: missing},
		{Type: hypershiftv1beta1.ConditionTypeProtected, Status: metav1.ConditionFalse,
			Reason: hypershiftv1beta1.ReasonProtectionMissing, Message: missing},
		{Type: hypershiftv1beta1.ConditionTypeConforming, Status: metav1.ConditionUnknown,
			Reason: conformance.ReasonNotChecked, Message: missing},
	} {
		got, _ := condition.Get(s.stored().Status.Conditions, want.Type)
		if got.Status != want.Status || got.Reason != want.Reason || got.Message != want.Message {
			t.Errorf("%s is %s %s: %s", want.Type, got.Status, got.Reason, got.Message)
		}
	}
	if _, found := condition.Get(s.stored().Status.Conditions,
		hypershiftv1beta1.ConditionTypeProtectedOnce); found {
		t.Error("it says that the guest was protected")
	}
	s.read()
	s.board.SetMissing(nil)
	s.board.Protect()
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonNoTargets)
}

// G16: what cannot be listed in the guest, or written in the management cluster, is told and tried again.
func TestNoFailureToSumUpIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, []client.Object{wrapper("web"), class("big")}, policyOf(1))
		s.read()
		return s.steps(s.summing(f.Wrap(s.guest), f.Wrap(s.management)), "", nil)
	})
}
