package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// NodePoolSettings are what the merge depends on beside policy and wrapper.
type NodePoolSettings struct {
	// Vocabulary are the labels that every instance type of the guest's provider has; nil means [CommonVocabulary].
	Vocabulary Vocabulary
	// NodeClasses are the kinds of node classes that a wrapper may refer to beside EC2NodeClass and
	// OpenshiftEC2NodeClass: on a guest whose nodes are made by KWOK, KWOKNodeClass of karpenter.kwok.sh (G20).
	NodeClasses []schema.GroupKind
}

// NodePoolResult is what a policy and an OpenshiftNodePool come to.
type NodePoolResult struct {
	// NodePool is what to write: name, labels, annotations, owner and spec. It is nil when Problems says why nothing is
	// written; what was written before then stays as it is, and what does not exist is not created (G12, G14).
	NodePool *karpenterv1.NodePool
	// Problems keep the NodePool from being written.
	Problems []Problem
	// Folded is what policy and wrapper allow together, template labels, name and node class included (K1).
	Folded requirement.Set
	// Conflicts are the labels for which nothing is left, by key (G9). The NodePool is written nevertheless: it launches no
	// node (R13).
	Conflicts []Conflict
	// MinValues are the labels with fewer values left than minValues asks for, by key (G11). The NodePool is written as it
	// is: minValues is never lowered.
	MinValues []Shortage
	// Closed says that the NodePool ends with an entry that no instance type satisfies, since Karpenter would take the
	// conflict for permission (G10).
	Closed bool
}

// Compatible returns the condition RequirementsCompatible of the wrapper (G9, G11). It is Unknown when nothing was merged.
func (r NodePoolResult) Compatible() condition.Value {
	const kind = hypershiftv1beta1.ConditionTypeRequirementsCompatible
	switch {
	case len(r.Problems) > 0:
		return condition.Unknown(kind, r.Problems[0].Reason, "not merged: "+join(r.Problems))
	case len(r.Conflicts) > 0:
		return condition.False(kind, hypershiftv1beta1.ReasonNoCompatibleInstanceTypes, join(r.Conflicts))
	case len(r.MinValues) > 0:
		return condition.False(kind, hypershiftv1beta1.ReasonMinValuesUnsatisfiable, join(r.MinValues))
	}
	return condition.True(kind, hypershiftv1beta1.ReasonCompatible, "")
}

// shownProblems bounds a message that lists problems or conflicts: a policy may have a hundred entries, each with one.
const shownProblems = 10

// join lists what is wrong in one line.
func join[T fmt.Stringer](list []T) string {
	parts := make([]string, 0, shownProblems+1)
	for i, item := range list {
		if i == shownProblems {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		parts = append(parts, item.String())
	}
	return strings.Join(parts, "; ")
}

// NodePool merges a policy, nil for none, with an OpenshiftNodePool (R9 to R18). The entries of the policy come first, then
// those of the wrapper, each as it is and in its order (R10). All other fields are copied (R9). Neither argument is
// changed or referred to by the result. A policy that fails [Check] gives a Problem (G14).
func NodePool(policy *hypershiftv1beta1.AutoNodePolicy, wrapper *hypershiftv1beta1.OpenshiftNodePool, settings NodePoolSettings) NodePoolResult {
	result := NodePoolResult{Problems: invalid(policy)}
	if len(result.Problems) > 0 {
		return result
	}
	if policy == nil {
		policy = &hypershiftv1beta1.AutoNodePolicy{}
	}
	provided, own := policy.Spec.NodePoolDefaults.Requirements, wrapper.Spec.Template.Spec.Requirements
	class, problem := nodeClassRef(wrapper.Spec.Template.Spec.NodeClassRef, settings.NodeClasses)
	if problem != nil {
		result.Problems = []Problem{*problem}
		return result
	}
	pool := build(wrapper, class)
	policySet, _, _ := translate.Requirements(provided) // Check has seen that there is no error
	userSet, problem := userPart(pool, own)
	if problem != nil {
		result.Problems = []Problem{*problem}
		return result
	}
	result.Folded = policySet.And(userSet)
	vocabulary := settings.Vocabulary
	if vocabulary == nil {
		vocabulary = CommonVocabulary()
	}
	result.Conflicts = conflicts(policySet, userSet, result.Folded, vocabulary)
	result.MinValues = shortages(slices.Concat(provided, asRead(own)), result.Folded)
	var closing []Requirement
	if result.Closed = passedBy(result.Conflicts, policySet, vocabulary); result.Closed {
		closing = append(closing, impossible())
	}
	merged, problem := concatenate(provided, own, closing)
	if problem != nil {
		result.Problems = []Problem{*problem}
		return result
	}
	pool.Spec.Template.Spec.Requirements = merged
	result.NodePool = pool
	return result
}

// invalid returns a Problem when there is a policy and it fails [Check]. What is wrong with it in detail is for those who
// can read policies: the result goes to wrappers, which the users of the guest read (R8).
func invalid(policy *hypershiftv1beta1.AutoNodePolicy) []Problem {
	if policy == nil {
		return nil
	}
	problems := Check(policy)
	if len(problems) == 0 {
		return nil
	}
	return []Problem{{problems[0].Reason, "policy of the provider", "is not valid, and so not applied; what was applied before stays"}}
}

// userPart folds what the wrapper alone says: its entries, and the labels, name and node class of pool, which has no
// requirements yet.
func userPart(pool *karpenterv1.NodePool, own []Requirement) (requirement.Set, *Problem) {
	pool.Spec.Template.Spec.Requirements = asRead(own)
	set, _, err := translate.PoolRequirements(pool)
	pool.Spec.Template.Spec.Requirements = nil
	if err != nil {
		message := "cannot be understood: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		return set, &Problem{hypershiftv1beta1.ReasonInvalidRequirements, "spec.template.spec.requirements", message}
	}
	return set, nil
}

// concatenate puts the parts of the list together. When they are too many, entries of the user that stand there already,
// the policy's or an earlier one of the user's, are left out: that changes nothing (G12). Never is an entry of the
// policy left out, or one that restricts.
func concatenate(provided, own, closing []Requirement) ([]Requirement, *Problem) {
	if len(provided)+len(own)+len(closing) > MaxRequirements {
		own = withoutDuplicates(provided, own)
	}
	merged := make([]Requirement, 0, len(provided)+len(own)+len(closing)) // never nil: NodePools need the list
	for _, entry := range slices.Concat(provided, own, closing) {
		merged = append(merged, *entry.DeepCopy())
	}
	if len(merged) <= MaxRequirements {
		return merged, nil
	}
	message := fmt.Sprintf("has %d different entries, and the policy %d", len(own), len(provided))
	if len(closing) > 0 {
		message += ", and one more is needed since they contradict each other"
	}
	message += fmt.Sprintf(": a NodePool takes at most %d", MaxRequirements)
	return nil, &Problem{hypershiftv1beta1.ReasonTooManyRequirements, "spec.template.spec.requirements", message}
}

func withoutDuplicates(provided, own []Requirement) []Requirement {
	seen := map[string]bool{}
	for _, entry := range provided {
		seen[identity(entry)] = true
	}
	var kept []Requirement
	for _, entry := range own {
		if id := identity(entry); !seen[id] {
			seen[id] = true
			kept = append(kept, entry)
		}
	}
	return kept
}

// nodeClassRef returns what the NodePool refers to: the EC2NodeClass that is made from the OpenshiftEC2NodeClass of the same
// name, the EC2NodeClass named default when the wrapper says nothing, and otherwise what it says (G20).
func nodeClassRef(ref *karpenterv1.NodeClassReference, further []schema.GroupKind) (*karpenterv1.NodeClassReference, *Problem) {
	if ref == nil {
		return &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: hypershiftv1beta1.PolicyName}, nil
	}
	own := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	wrapper := schema.GroupKind{Group: hypershiftv1.Group, Kind: hypershiftv1.OpenshiftEC2NodeClassKind}
	allowed := append([]schema.GroupKind{{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind}, wrapper}, further...)
	if !slices.Contains(allowed, own) {
		names := make([]string, len(allowed))
		for i, kind := range allowed {
			names[i] = kind.Kind + " of " + kind.Group
		}
		return nil, &Problem{ReasonInvalidNodeClassRef, "spec.template.spec.nodeClassRef",
			fmt.Sprintf("has kind %q and group %q: it must be %s", ref.Kind, ref.Group, strings.Join(names, ", or "))}
	}
	if own == wrapper {
		return &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: ref.Name}, nil
	}
	return new(*ref), nil
}

// build copies a wrapper into a NodePool, but for the requirements (R9).
func build(wrapper *hypershiftv1beta1.OpenshiftNodePool, class *karpenterv1.NodeClassReference) *karpenterv1.NodePool {
	from := wrapper.DeepCopy().Spec
	template := from.Template
	return &karpenterv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool"},
		ObjectMeta: objectMeta(wrapper.ObjectMeta, hypershiftv1beta1.GroupVersion().WithKind("OpenshiftNodePool")),
		Spec: karpenterv1.NodePoolSpec{
			Template: karpenterv1.NodeClaimTemplate{
				ObjectMeta: template.ObjectMeta,
				Spec: karpenterv1.NodeClaimTemplateSpec{
					Taints: template.Spec.Taints, StartupTaints: template.Spec.StartupTaints, NodeClassRef: class,
					TerminationGracePeriod: template.Spec.TerminationGracePeriod, ExpireAfter: template.Spec.ExpireAfter,
				},
			},
			Disruption: from.Disruption, Limits: from.Limits, HardLimits: from.HardLimits, Weight: from.Weight, Replicas: from.Replicas,
		},
	}
}

const (
	// ManagedByLabel is on everything that the operator writes in the guest; with the owner reference it tells the
	// operator's own objects from those of others, which it never deletes (G18).
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel.
	ManagedByValue = "joiner-operator"
)

// ownAnnotations are annotations that belong to the object they stand on, and so are not copied to what is made from it.
var ownAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	karpenterv1.NodePoolHashAnnotationKey, karpenterv1.NodePoolHashVersionAnnotationKey, karpenterv1.DisruptionBackoffAnnotationKey,
	awsv1.Group + "/ec2nodeclass-hash", awsv1.Group + "/ec2nodeclass-hash-version",
}

// objectMeta returns the metadata of what is made from a wrapper: its name, labels and annotations, with the wrapper as the
// owner. The garbage collector cannot delete what is owned, since the admission policies refuse that; the operator does
// (G18).
func objectMeta(wrapper metav1.ObjectMeta, kind schema.GroupVersionKind) metav1.ObjectMeta {
	labels := map[string]string{}
	maps.Copy(labels, wrapper.Labels)
	labels[ManagedByLabel] = ManagedByValue
	var annotations map[string]string
	for key, value := range wrapper.Annotations {
		if slices.Contains(ownAnnotations, key) {
			continue
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	return metav1.ObjectMeta{
		Name: wrapper.Name, Labels: labels, Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: wrapper.Name, UID: wrapper.UID,
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}
