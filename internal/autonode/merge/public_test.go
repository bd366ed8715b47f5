package merge_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// A-25, G14: by itself, too, the public package writes nothing for a policy that is not valid, folds a pool without a
// node class, and takes every character of a label's value.
func TestThePublicMergeByItself(t *testing.T) {
	t.Parallel()
	own := policy.Pool{
		Name: "web", Requirements: []fold.Requirement{{Key: team, Operator: fold.In, Values: []string{"a_b.c-d"}}},
	}
	invalid := &policy.Policy{Requirements: []fold.Requirement{{Key: "", Operator: fold.Exists}}}
	if merged := policy.MergeRequirements(invalid, own, nil); merged.Requirements != nil ||
		len(merged.Problems) != 1 || merged.Folded.Len() != 0 {
		t.Errorf("an invalid policy comes to %+v", merged)
	}
	merged := policy.MergeRequirements(&policy.Policy{Requirements: own.Requirements}, own, nil)
	if len(merged.Problems) > 0 || merged.Folded.String() != "example.com/team=a_b.c-d karpenter.sh/nodepool=web" {
		t.Errorf("%v, folded %s", merged.Problems, merged.Folded)
	}
}

// which labels of a claim lie outside, in their order, and nothing of the arguments changes.
func TestConforms(t *testing.T) {
	t.Parallel()
	provided := []fold.Requirement{
		{Key: team, Operator: fold.NotIn, Values: []string{"red", "blue"}},
		{Key: gpus, Operator: fold.Gt, Values: []string{"1"}},
		{Key: instanceType, Operator: fold.In, Values: []string{"A", "B"}},
	}
	fine := []fold.Requirement{
		{Key: instanceType, Operator: fold.In, Values: []string{"B"}},
		{Key: gpus, Operator: fold.Gte, Values: []string{"2"}},
		{Key: team, Operator: fold.NotIn, Values: []string{"red", "blue", "green"}},
	}
	for _, c := range []struct {
		replaced int
		by       fold.Requirement
		labels   map[string]string
		want     []fold.Key
	}{
		{0, fine[0], nil, nil},
		{0, fold.Requirement{Key: instanceType, Operator: fold.In, Values: []string{"B", "C"}}, nil,
			[]fold.Key{instanceType}},
		{1, fold.Requirement{Key: gpus, Operator: fold.Gte, Values: []string{"1"}}, nil, []fold.Key{gpus}},
		{2, fold.Requirement{Key: team, Operator: fold.NotIn, Values: []string{"red"}}, nil, []fold.Key{team}},
		{2, fold.Requirement{Key: team, Operator: fold.DoesNotExist}, nil, nil},
		{2, fold.Requirement{Key: "other", Operator: fold.Exists}, map[string]string{gpus: "1"},
			[]fold.Key{team, gpus}},
	} {
		claim := policy.Claim{Requirements: slices.Clone(fine), Labels: c.labels}
		claim.Requirements[c.replaced] = c.by
		if got := policy.Conforms(provided, claim); !slices.Equal(got, c.want) {
			t.Errorf("%+v with %v: %v outside, want %v", c.by, c.labels, got, c.want)
		}
	}
}

// the rule for NodeClaims is made from the policy's requirements, the EC2NodeClasses of these names and the
// kinds given, and carries the operator's label.
func TestTheRuleForNodeClaimsOfAPolicy(t *testing.T) {
	t.Parallel()
	kinds := []schema.GroupKind{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}}
	p := &hypershiftv1beta1.AutoNodePolicy{}
	p.Spec.NodePoolDefaults.Requirements = []merge.Requirement{{Key: team, Operator: "Exists"}}
	many := merge.Requirement{Key: "many", Operator: "NotIn"}
	for i := range 600 {
		many.Values = append(many.Values, fmt.Sprint(i))
	}
	more := many
	more.Values = slices.Clone(many.Values)
	for i := range more.Values {
		more.Values[i] = "m" + more.Values[i]
	}
	p.Spec.NodePoolDefaults.Requirements = append(p.Spec.NodePoolDefaults.Requirements, many, more)
	for _, of := range []*hypershiftv1beta1.AutoNodePolicy{nil, p} {
		rule, leftOut, err := merge.ClaimRule(of, []string{"large"}, kinds)
		if err != nil {
			t.Fatal(err)
		}
		validations := rule.Policy.Spec.Validations
		const ec2 = "object.spec.nodeClassRef.group == 'karpenter.k8s.aws' && object.spec.nodeClassRef.kind == " +
			"'EC2NodeClass' && (object.spec.nodeClassRef.name in variables.classes0)"
		const kwok = "object.spec.nodeClassRef.group == 'karpenter.kwok.sh' && object.spec.nodeClassRef.kind == 'KWOKNodeClass'"
		if want := "has(object.spec.nodeClassRef) && ((" + ec2 + ") || (" + kwok +
			"))"; validations[0].Expression != want {
			t.Errorf("%s, want %s", validations[0].Expression, want)
		}
		if rule.Policy.Labels[merge.ManagedByLabel] != merge.ManagedByValue ||
			rule.Binding.Labels[merge.ManagedByLabel] != merge.ManagedByValue {
			t.Errorf("labels %v and %v", rule.Policy.Labels, rule.Binding.Labels)
		}
		if (len(validations) == 2) != (of != nil) || slices.Contains(leftOut.Labels, "many") != (of != nil) {
			t.Errorf("%d validations, left out %v", len(validations), leftOut)
		}
	}
	p.Spec.NodePoolDefaults.Requirements = []merge.Requirement{{Key: "", Operator: "Exists"}}
	if _, _, err := merge.ClaimRule(p, nil, nil); err == nil {
		t.Error("a policy that is not valid makes a rule")
	}
	// the policy comes first: what users are told does not depend on their own mistakes
	bad := &hypershiftv1beta1.OpenshiftNodePool{}
	bad.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Kind: "Other"}
	if result := merge.NodePool(p, bad,
		merge.NodePoolSettings{}); result.Problems[0].Reason != policy.ReasonInvalidRequirements {
		t.Errorf("%v", result.Problems)
	}
}
