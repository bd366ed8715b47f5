package merge

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// Aliases for the names of package admission, so that users of this package do not need to import it.
type (
	// AdmissionConfig says who may write what in the guest cluster. Validate checks it. Its Labels are set here.
	AdmissionConfig = admission.Config
	// NodeClaimRule says how NodeClaims are protected (G5).
	NodeClaimRule = admission.NodeClaimRule
	// Protection is an admission policy with the binding that puts it into force.
	Protection = admission.Protection
)

const (
	// DefaultOperator is the operator's user name in the guest cluster, unless it is configured otherwise (G4).
	DefaultOperator = admission.DefaultOperator
	// NodeClaimsAuto is NodeClaimsByIdentity if Operand is set, otherwise NodeClaimsOpen.
	NodeClaimsAuto = admission.NodeClaimsAuto
	// NodeClaimsOpen protects nothing.
	NodeClaimsOpen = admission.NodeClaimsOpen
	// NodeClaimsByIdentity lets only the operand and the operator create NodeClaims and change their spec.
	NodeClaimsByIdentity = admission.NodeClaimsByIdentity
	// NodeClaimsByContent lets everyone create NodeClaims that name the same NodePool as owner and in their label.
	NodeClaimsByContent = admission.NodeClaimsByContent
)

// Admission returns the policies for the guest cluster (R34 to R39), with the operator's label; see
// [admission.Policies].
func Admission(config AdmissionConfig) ([]Protection, error) {
	return admission.Policies(labelled(config))
}

// Unwanted returns the policies that Admission leaves out under this configuration but not under others; see
// [admission.Unwanted].
func Unwanted(config AdmissionConfig) []Protection { return admission.Unwanted(labelled(config)) }

const (
	// RuleGenerationAnnotation on the rule for NodeClaims is the generation of the policy that the rule was made from,
	// "none" without a policy.
	RuleGenerationAnnotation = "karpenter.hypershift.openshift.io/policy-generation"
	// RuleNoteAnnotation says what to do with a rule that nobody keeps up to date any more.
	RuleNoteAnnotation = "karpenter.hypershift.openshift.io/note"
)

// ruleNote is for whoever finds a rule of another generation than the policy. An operator too old to know the rule
// leaves it in place. Then the rule refuses what the policy has come to allow Karpenter.
const ruleNote = "joiner-operator writes this rule anew with each generation of the policy. If it is of another one, " +
	"the operator does not run or is older than the rule: run one that knows it, or delete the binding %s and then this policy."

// LeftOut is what the rule for NodeClaims has no room for.
type LeftOut struct {
	// Labels are those of the policy that the rule lacks; see [admission.ClaimRule.Protection].
	Labels []string
	// Classes are the node classes that no NodeClaim may refer to; see [admission.ClaimRule.ClassesLeftOut].
	Classes []string
}

// ClaimRule returns the rule of a policy, nil for none, for NodeClaims, with the operator's label. NodeClaims
// may refer to the EC2NodeClasses with these names, and to any node class of the kinds in anyOf. See
// [admission.ClaimRule.Protection] for the error. An annotation and the messages of refusals state the generation of
// the policy.
func ClaimRule(of *hypershiftv1beta1.AutoNodePolicy, classes []string,
	anyOf []schema.GroupKind) (rule Protection, leftOut LeftOut, err error) {
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
		leftOut.Labels = append(leftOut.Labels, string(key))
	}
	for _, class := range wanted.ClassesLeftOut() {
		leftOut.Classes = append(leftOut.Classes, class.Name)
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
