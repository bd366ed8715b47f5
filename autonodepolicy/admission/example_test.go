package admission_test

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// The operator keeps everybody else from writing what it makes, and deletes protections that are not wanted (R34 to
// R37, G5).
func ExamplePolicies() {
	for _, rule := range []admission.NodeClaimRule{
		admission.NodeClaimsAuto, admission.NodeClaimsByContent, admission.NodeClaimsOpen,
		admission.NodeClaimsByIdentity,
	} {
		config := admission.Config{Operator: admission.DefaultOperator, NodeClaims: rule}
		list, err := admission.Policies(config)
		fmt.Printf("%q: %d, unwanted %d, %t\n", rule, len(list), len(admission.Unwanted(config)), err == nil &&
			config.Validate() == nil)
	}
	// Output:
	// "": 2, unwanted 1, true
	// "ByContent": 3, unwanted 0, true
	// "Open": 2, unwanted 1, true
	// "ByIdentity": 0, unwanted 0, false
}

// NodeClaims have to lie within the policy, whoever writes them (A-04).
func ExampleClaimRule() {
	rule := admission.ClaimRule{
		Requirements: []fold.Requirement{{Key: "team", Operator: fold.In, Values: []string{"red", "blue"}}},
		Classes:      []policy.NodeClass{{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}},
	}
	protection, leftOut, err := rule.Protection()
	fmt.Println(protection.Policy.Name == admission.ClaimRuleName, leftOut, err)
	for _, variable := range protection.Policy.Spec.Variables {
		fmt.Println(variable.Name, variable.Expression)
	}
	for _, validation := range protection.Policy.Spec.Validations {
		fmt.Println(strings.ReplaceAll(validation.Expression, " && ", "\n&& "))
	}
	// Output:
	// true [] <nil>
	// classes0 {'default': 0}
	// entries0 has(object.spec.requirements) ? object.spec.requirements.filter(r, r.key == 'team') : []
	// values0 {'blue': 0, 'red': 0}
	// has(object.spec.nodeClassRef)
	// && ((object.spec.nodeClassRef.group == 'karpenter.k8s.aws'
	// && object.spec.nodeClassRef.kind == 'EC2NodeClass'
	// && (object.spec.nodeClassRef.name in variables.classes0)))
	// (!has(object.metadata.labels) || ((!('team' in object.metadata.labels) || object.metadata.labels['team'] in variables.values0)))
	// && !variables.entries0.exists(r, r.operator == 'DoesNotExist')
	// && variables.entries0.size() == 1
	// && variables.entries0.exists(r, r.operator == 'In'
	// && has(r.values)
	// && r.values.all(v, v in variables.values0))
}

// Node classes with too long names together are left out, and named: NodeClaims that refer to them are refused.
func ExampleClaimRule_ClassesLeftOut() {
	rule := admission.ClaimRule{}
	for i := range 1000 {
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("long", 60))
		rule.Classes = append(rule.Classes,
			policy.NodeClass{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: name})
	}
	leftOut := rule.ClassesLeftOut()
	fmt.Println(len(leftOut) > 0, leftOut[0].Name > rule.Classes[500].Name)
	// Output: true true
}

// Labels whose expression would cost too much are left out, and named: then the guest is not wholly protected.
func ExampleClaimRule_Protection() {
	many := func(first rune) fold.Requirement {
		entry := fold.Requirement{Key: "team", Operator: fold.NotIn}
		for i := range 600 {
			entry.Values = append(entry.Values, fmt.Sprintf("%c%d", first, i))
		}
		return entry
	}
	var protection admission.Protection
	protection, leftOut, _ := admission.ClaimRule{Requirements: []fold.Requirement{many('a'), many('b')}}.Protection()
	if len(leftOut) > 0 {
		fmt.Println(protection.Binding.Name, admission.ReasonRuleTooLarge, leftOut)
	}
	// Output: karpenter-binding.nodeclaim-policy.hypershift.io RuleTooLarge [team]
}
