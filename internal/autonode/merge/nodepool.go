package merge

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// NodePoolSettings are further inputs of the merge, besides policy and wrapper.
type NodePoolSettings struct {
	// Vocabulary is the set of labels that every instance type of the guest's provider has; nil means
	// policy.CommonVocabulary.
	Vocabulary Vocabulary
	// NodeClasses are the kinds of node classes that a wrapper may refer to besides EC2NodeClass and
	// OpenshiftEC2NodeClass: KWOKNodeClass of karpenter.kwok.sh, on a guest with simulated nodes (G20).
	NodeClasses []schema.GroupKind
}

// NodePoolResult is the result of [NodePool].
type NodePoolResult struct {
	// NodePool is what to write: name, labels, annotations, owner and spec. It is nil if there are Problems: then an
	// existing NodePool stays as it is, and a missing one is not created (G12, G14).
	NodePool *karpenterv1.NodePool
	// Problems keep the NodePool from being written.
	Problems []Problem
	// Folded is what policy and wrapper together allow, including template labels, name and node class (K1).
	Folded fold.Set
	// Conflicts are the labels for which nothing is left, ordered by key (G9). Write the NodePool nevertheless: it
	// launches no node (R13).
	Conflicts []Conflict
	// MinValues are the labels with fewer values left than minValues asks for, ordered by key (G11). Write the
	// NodePool as it is: minValues is never lowered.
	MinValues []Shortage
	// Closed says that the NodePool ends with an entry that no instance type satisfies. Without it, Karpenter would
	// launch nodes in spite of the conflict (G10).
	Closed bool
}

// Compatible returns the condition RequirementsCompatible of the wrapper (G9, G11). Its status is Unknown when nothing
// was merged.
func (r NodePoolResult) Compatible() condition.Value {
	return value(hypershiftv1beta1.ConditionTypeRequirementsCompatible, policy.Merged{
		Problems: r.Problems, Conflicts: r.Conflicts, MinValues: r.MinValues,
	}.Compatible())
}

// NodePool merges a policy, nil for none, with an OpenshiftNodePool (R9 to R18). The entries of the policy come first,
// then those of the wrapper, unchanged and in order (R10). All other fields are copied (R9). The result shares nothing
// with the arguments. A policy that fails [Check] results in a Problem (G14).
func NodePool(of *hypershiftv1beta1.AutoNodePolicy, wrapper *hypershiftv1beta1.OpenshiftNodePool,
	settings NodePoolSettings) NodePoolResult {
	provided := Policy(of)
	if problems := policy.Invalid(provided); len(problems) > 0 {
		return NodePoolResult{Problems: problems}
	}
	class, problem := nodeClassRef(wrapper.Spec.Template.Spec.NodeClassRef, settings.NodeClasses)
	if problem != nil {
		return NodePoolResult{Problems: []Problem{*problem}}
	}
	merged := policy.MergeRequirements(provided, policy.Pool{
		Name: wrapper.Name, NodeClass: class, Labels: wrapper.Spec.Template.ObjectMeta.Labels,
		Requirements: FromAPI(wrapper.Spec.Template.Spec.Requirements),
	}, settings.Vocabulary)
	result := NodePoolResult{
		Problems: merged.Problems, Folded: merged.Folded, Conflicts: merged.Conflicts, MinValues: merged.MinValues,
		Closed: merged.Closed,
	}
	if len(result.Problems) > 0 {
		return result
	}
	result.NodePool = build(wrapper, &karpenterv1.NodeClassReference{Group: class.Group, Kind: class.Kind,
		Name: class.Name})
	result.NodePool.Spec.Template.Spec.Requirements = toAPI(merged.Requirements)
	return result
}

// nodeClassRef is policy.ResolveNodeClass for types of the API.
func nodeClassRef(ref *karpenterv1.NodeClassReference, further []schema.GroupKind) (policy.NodeClass, *Problem) {
	kinds := make([]policy.NodeClassKind, len(further))
	for i, kind := range further {
		kinds[i] = policy.NodeClassKind{Group: kind.Group, Kind: kind.Kind}
	}
	if ref == nil {
		return policy.ResolveNodeClass(nil, kinds...)
	}
	return policy.ResolveNodeClass(&policy.NodeClass{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}, kinds...)
}

// build copies a wrapper into a NodePool, without the requirements (R9).
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
					TerminationGracePeriod: template.Spec.TerminationGracePeriod,
					ExpireAfter:            template.Spec.ExpireAfter,
				},
			},
			Disruption: from.Disruption, Limits: from.Limits, HardLimits: from.HardLimits, Weight: from.Weight,
			Replicas: from.Replicas,
		},
	}
}

const (
	// ManagedByLabel is on everything that the operator writes in the guest. The label and the owner reference
	// distinguish the operator's own objects from those of others, which it never deletes (G18).
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel.
	ManagedByValue = "joiner-operator"
)

// ownAnnotations are annotations about the object that has them. They are not copied from a wrapper to what is made
// from it.
var ownAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	karpenterv1.NodePoolHashAnnotationKey, karpenterv1.NodePoolHashVersionAnnotationKey,
	karpenterv1.DisruptionBackoffAnnotationKey,
	awsv1.Group + "/ec2nodeclass-hash", awsv1.Group + "/ec2nodeclass-hash-version",
}

// objectMeta returns the metadata of an object made from a wrapper: the wrapper's name, labels and annotations, with
// the wrapper as owner. The admission policies keep the garbage collector from deleting such objects; the operator
// deletes them (G18).
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
