package operator

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Part is a part of the hosted cluster that this operator or another one writes.
type Part string

// The parts. Those of admission are named by the resource that they protect.
const (
	PartNodePools      Part = "NodePools"
	PartEC2NodeClasses Part = "EC2NodeClasses"
	PartNodePoolRules  Part = "Admission/nodepools"
	PartClassRules     Part = "Admission/ec2nodeclasses"
	PartNodeClaimRules Part = "Admission/nodeclaims"
	PartDefaultClass   Part = "DefaultClass"
)

const (
	// OwnFull stands for every part.
	OwnFull = "Full"
	// OwnAlongside stands for the parts that HyperShift's operator does not know: pools, and the rules for pools and
	// claims.
	OwnAlongside = "Alongside"
)

func parts() []Part {
	return []Part{PartNodePools, PartEC2NodeClasses, PartNodePoolRules, PartClassRules, PartNodeClaimRules,
		PartDefaultClass}
}

// Owning says which parts this operator writes. It reads and judges the others, and never changes them, not even
// finalizers. The zero value owns everything.
type Owning struct {
	others []Part // parts left to others
}

// NewOwning parses the words of --own: OwnFull or OwnAlongside, or a list of parts.
func NewOwning(words []string) (Owning, error) {
	if len(words) == 1 {
		switch words[0] {
		case OwnFull:
			return Owning{}, nil
		case OwnAlongside:
			return Owning{others: []Part{PartEC2NodeClasses, PartClassRules, PartDefaultClass}}, nil
		}
	}
	if len(words) == 0 {
		return Owning{}, fmt.Errorf("is empty: want %s, %s, or some of %s", OwnFull, OwnAlongside, parts())
	}
	var o Owning
	for _, part := range parts() {
		if !slices.Contains(words, string(part)) {
			o.others = append(o.others, part)
		}
	}
	for _, word := range words {
		if word == OwnFull || word == OwnAlongside {
			return Owning{}, fmt.Errorf("is %q: want %s alone, since it stands for several parts",
				strings.Join(words, ","), word)
		}
		if !slices.Contains(parts(), Part(word)) {
			return Owning{}, fmt.Errorf("has %q: want %s, %s, or some of %s with commas between", word, OwnFull,
				OwnAlongside, parts())
		}
	}
	return o, nil
}

// Has reports whether this operator writes a part.
func (o Owning) Has(part Part) bool { return !slices.Contains(o.others, part) }

// Split separates the admission policies that this operator writes from those of others.
func (o Owning) Split(all []merge.Protection) (own, others []merge.Protection) {
	for _, protection := range all {
		resource := protection.Policy.Spec.MatchConstraints.ResourceRules[0].Resources[0]
		if o.Has(Part("Admission/" + resource)) {
			own = append(own, protection)
		} else {
			others = append(others, protection)
		}
	}
	return own, others
}

// guards reports whether somebody else's admission policy protects like ours: it refuses, even if it cannot be
// evaluated, and sees every request that ours sees. What its expressions let pass is its owner's business.
func guards(ours merge.Protection, policy *admissionv1.ValidatingAdmissionPolicy) bool {
	spec := policy.Spec
	if spec.FailurePolicy != nil && *spec.FailurePolicy != admissionv1.Fail || len(spec.Validations) == 0 ||
		spec.MatchConstraints == nil {
		return false
	}
	for _, want := range ours.Policy.Spec.MatchConstraints.ResourceRules {
		for _, operation := range want.Operations {
			if !slices.ContainsFunc(spec.MatchConstraints.ResourceRules,
				func(rule admissionv1.NamedRuleWithOperations) bool {
					return len(rule.ResourceNames) == 0 &&
						either(rule.Operations, operation, admissionv1.OperationAll) &&
						either(rule.APIGroups, want.APIGroups[0], "*") &&
						either(rule.Resources, want.Resources[0], "*")
				}) {
				return false
			}
		}
	}
	return true
}

func either[T comparable](list []T, value, all T) bool {
	return slices.Contains(list, value) || slices.Contains(list, all)
}

// binds reports whether somebody else's binding puts an admission policy into force for all objects.
func binds(policy string, binding *admissionv1.ValidatingAdmissionPolicyBinding) bool {
	return binding.Spec.PolicyName == policy && binding.Spec.MatchResources == nil && binding.Spec.ParamRef == nil &&
		slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny)
}

// notOwned returns the policy's Ready, changed to False if the policy asks for something that this operator does not
// write: that is not applied, whatever somebody else writes there. Mistakes in the policy itself come first.
func notOwned(policy *hypershiftv1beta1.AutoNodePolicy, poolsOfOthers, classesOfOthers bool,
	ready condition.Value) condition.Value {
	if len(merge.Check(policy)) > 0 {
		return ready
	}
	const remedy = "%s: take it away, or let this operator write %s (--own): another one does, so it is not applied. " +
		"Conforming tells what is there. For the rest: %s"
	root := policy.Spec.EC2NodeClassDefaults.RootVolume
	switch {
	case poolsOfOthers && len(policy.Spec.NodePoolDefaults.Requirements) > 0:
		return condition.False(ready.Type, hypershiftv1beta1.ReasonRequirementsNotOwned,
			fmt.Sprintf(remedy, "spec.nodePoolDefaults.requirements", PartNodePools, ready.Message))
	case classesOfOthers && root != nil && !equality.Semantic.DeepEqual(*root, hypershiftv1beta1.RootVolume{}):
		return condition.False(ready.Type, hypershiftv1beta1.ReasonRootVolumeNotOwned,
			fmt.Sprintf(remedy, "spec.ec2NodeClassDefaults.rootVolume", PartEC2NodeClasses, ready.Message))
	}
	return ready
}
