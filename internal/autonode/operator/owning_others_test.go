package operator_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// parts that are named are owned, and no others; both words for several parts stand alone.
func TestA30_ThePartsThatAreNamedAreOwned(t *testing.T) {
	t.Parallel()
	owning, err := operator.NewOwning([]string{string(operator.PartNodePools), string(operator.PartClassRules)})
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[operator.Part]bool{
		operator.PartNodePools: true, operator.PartClassRules: true, operator.PartEC2NodeClasses: false,
		operator.PartNodePoolRules: false, operator.PartNodeClaimRules: false, operator.PartDefaultClass: false,
	} {
		if owning.Has(part) != want {
			t.Errorf("%s is owned: %t", part, !want)
		}
	}
	for _, word := range []string{operator.OwnFull, operator.OwnAlongside} {
		_, err := operator.NewOwning([]string{word, string(operator.PartNodePools)})
		if err == nil || !strings.Contains(err.Error(), "want "+word+" alone") {
			t.Errorf("%s beside a part: error %v", word, err)
		}
	}
}

// othersProtector looks through server at the admission policy that another operator keeps for node classes, and
// writes none.
func (s *scene) othersProtector(server client.Client) (*operator.ProtectionController, merge.Protection) {
	s.t.Helper()
	all, err := merge.Admission(merge.AdmissionConfig{Operator: merge.DefaultOperator})
	s.must(err)
	owning, err := operator.NewOwning([]string{operator.OwnAlongside})
	s.must(err)
	_, others := owning.Split(all)
	if len(others) != 1 {
		s.t.Fatalf("%d admission policies are another's", len(others))
	}
	return operator.NewProtectionController(operator.ProtectionConfig{
		Guest: operator.GuestClient{Client: server}, Others: others, Board: s.board, Wake: func(context.Context) {},
		Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	}), others[0]
}

// another's admission policy protects when it sees all that ours sees, however it says so.
func TestA30_WhatProtectsInsteadOfOurs(t *testing.T) {
	t.Parallel()
	type spec = admissionv1.ValidatingAdmissionPolicySpec
	every := []admissionv1.OperationType{admissionv1.OperationAll}
	rules := func(s *spec) []admissionv1.NamedRuleWithOperations { return s.MatchConstraints.ResourceRules }
	for what, test := range map[string]struct {
		change func(*spec)
		good   bool
	}{
		"the same":                         {func(*spec) {}, true},
		"it refuses unless told else":      {func(s *spec) { s.FailurePolicy = nil }, true},
		"it sees every group":              {func(s *spec) { rules(s)[0].APIGroups = []string{"*"} }, true},
		"it sees every kind":               {func(s *spec) { rules(s)[0].Resources = []string{"*"} }, true},
		"it sees every operation":          {func(s *spec) { rules(s)[0].Operations = every }, true},
		"it sees another group":            {func(s *spec) { rules(s)[0].APIGroups = []string{"example.com"} }, false},
		"it sees one object":               {func(s *spec) { rules(s)[0].ResourceNames = []string{"one"} }, false},
		"it does not say what it sees":     {func(s *spec) { s.MatchConstraints = nil }, false},
		"it sees nothing":                  {func(s *spec) { s.MatchConstraints.ResourceRules = nil }, false},
		"it lets pass what it cannot tell": {func(s *spec) { s.FailurePolicy = new(admissionv1.Ignore) }, false},
	} {
		s := newScene(t, nil, policyOf(1))
		s.read()
		c, theirs := s.othersProtector(s.guest)
		policy := theirs.Policy.DeepCopy()
		test.change(&policy.Spec)
		s.must(s.guest.Create(t.Context(), policy))
		s.must(s.guest.Create(t.Context(), theirs.Binding.DeepCopy()))
		s.step(c, "")
		s.step(s.policy, "")
		conditions := s.stored().Status.Conditions
		if good := condition.IsTrue(conditions, hypershiftv1beta1.ConditionTypeProtected); good != test.good {
			t.Errorf("%s: Protected is %t", what, good)
		}
	}
}

// A-30, G5: what of another's admission policies cannot be read is told, and tried again.
func TestA30_NoFailureToLookAtThoseOfOthersIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, nil)
		c, _ := s.othersProtector(f.Wrap(s.guest))
		return s.steps(c, "", nil)
	})
}

// what the policy itself lacks is told before what is not owned; a root volume that is owned is applied.
func TestA30_WhatIsNotOwnedComesLast(t *testing.T) {
	t.Parallel()
	size := resource.MustParse("90Gi")
	volume := policyOf(1)
	volume.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{VolumeSize: &size}
	for what, test := range map[string]struct {
		policy        *hypershiftv1beta1.AutoNodePolicy
		poolsOfOthers bool
		status        metav1.ConditionStatus
		reason        string
	}{
		"not valid": {policyOf(1, in(instanceType, "a"), in(instanceType, "b")), true, metav1.ConditionFalse,
			hypershiftv1beta1.ReasonConflictingRequirements},
		"owned": {volume, false, metav1.ConditionTrue, hypershiftv1beta1.ReasonNoTargets},
	} {
		s := newScene(t, nil, test.policy)
		s.read()
		s.policy = operator.NewPolicyController(operator.PolicyConfig{
			Management: s.managementClient(), Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds,
			Board:         s.board,
			PoolsOfOthers: test.poolsOfOthers, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
		})
		if s.policySays(test.status, test.reason); t.Failed() {
			t.Fatal(what)
		}
	}
}
