package merge

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// The admission policies are package admission's; they have their names here too, since whoever merges needs no other
// package for them.
type (
	// AdmissionConfig says who may write what in the guest cluster. Validate says what must hold. Labels are ours.
	AdmissionConfig = admission.Config
	// NodeClaimRule says how NodeClaims are protected (G5).
	NodeClaimRule = admission.NodeClaimRule
	// Protection is an admission policy with the binding that puts it into force.
	Protection = admission.Protection
)

const (
	// DefaultOperator is the user name that the operator has in the guest cluster unless it is told another (G4).
	DefaultOperator = admission.DefaultOperator
	// NodeClaimsAuto is NodeClaimsByIdentity when the operand has an identity of its own, and NodeClaimsOpen
	// otherwise.
	NodeClaimsAuto = admission.NodeClaimsAuto
	// NodeClaimsOpen protects nothing.
	NodeClaimsOpen = admission.NodeClaimsOpen
	// NodeClaimsByIdentity lets only the operand and the operator create NodeClaims and change their spec.
	NodeClaimsByIdentity = admission.NodeClaimsByIdentity
	// NodeClaimsByContent lets everyone create NodeClaims that name a NodePool as their owner and in their label.
	NodeClaimsByContent = admission.NodeClaimsByContent
)

// Admission returns the policies for the guest cluster (R34 to R39), with the label of what the operator manages; see
// [admission.Policies].
func Admission(config AdmissionConfig) ([]Protection, error) {
	return admission.Policies(labelled(config))
}

// Unwanted returns what Admission leaves out under this configuration and not under every one; see
// [admission.Unwanted].
func Unwanted(config AdmissionConfig) []Protection { return admission.Unwanted(labelled(config)) }

const (
	// RuleGenerationAnnotation of the rule for NodeClaims says of which generation of the policy it is: "none" for no
	// policy.
	RuleGenerationAnnotation = "karpenter.hypershift.openshift.io/policy-generation"
	// RuleNoteAnnotation says what to do with a rule that nobody keeps any more.
	RuleNoteAnnotation = "karpenter.hypershift.openshift.io/note"
)

// ruleNote is for whoever finds that the rule is of another generation than the policy: an operator that is too old
// to know the rule leaves it, and Karpenter would be refused what the policy allows by now.
const ruleNote = "joiner-operator writes this rule anew with each generation of the policy. If it is of another one, " +
	"the operator does not run or is older than the rule: run one that knows it, or delete the binding %s and then this policy."

// ClaimRule returns the rule for NodeClaims of a policy, nil for none, with the label of what the operator manages
// . They may refer to the EC2NodeClasses of these names, and to any of the kinds of anyOf. See
// [admission.ClaimRule.Protection] for what is left out, and the error. The rule says of which generation of the
// policy it is, also to whom it refuses.
func ClaimRule(of *hypershiftv1beta1.AutoNodePolicy, classes []string,
	anyOf []schema.GroupKind) (rule Protection, leftOut []string, err error) {
	wanted := admission.ClaimRule{Labels: labelled(AdmissionConfig{}).Labels}
	if provided := Policy(of); provided != nil {
		wanted.Requirements = provided.Requirements
	}
	for _, name := range classes {
		wanted.Classes = append(wanted.Classes, policy.NodeClass{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind,
			Name: name})
	}
	for _, kind := range anyOf {
		wanted.Kinds = append(wanted.Kinds, policy.NodeClassKind{Group: kind.Group, Kind: kind.Kind})
	}
	rule, keys, err := wanted.Protection()
	for _, key := range keys {
		leftOut = append(leftOut, string(key))
	}
	generation, told := "none", "there is no AutoNodePolicy"
	if of != nil {
		generation = fmt.Sprint(of.Generation)
		told = "generation " + generation + " of the AutoNodePolicy"
	}
	rule.Policy.Annotations = map[string]string{RuleGenerationAnnotation: generation,
		RuleNoteAnnotation: fmt.Sprintf(ruleNote, rule.Binding.Name)}
	for i := range rule.Policy.Spec.Validations {
		rule.Policy.Spec.Validations[i].Message += " (" + told + ")"
	}
	return rule, leftOut, err
}

func labelled(config AdmissionConfig) AdmissionConfig {
	config.Labels = map[string]string{ManagedByLabel: ManagedByValue}
	return config
}
