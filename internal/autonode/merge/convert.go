package merge

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Aliases for the names of package policy, so that users of this package do not need to import it.
type (
	// Requirement is an entry of a list of requirements, as in policies, wrappers and NodePools.
	Requirement = karpenterv1.NodeSelectorRequirementWithMinValues
	// Problem is something that keeps an object from being written.
	Problem = policy.Problem
	// Conflict is a label for which policy and pool together leave no value that an instance type could have.
	Conflict = policy.Conflict
	// Shortage is a label with fewer values left than minValues asks for (G11).
	Shortage = policy.Shortage
	// Vocabulary is the set of labels that every instance type of the provider has a value for.
	Vocabulary = policy.Vocabulary
	// RootVolume is a complete root volume. Only IOPS and Throughput may be left to AWS.
	RootVolume = policy.RootVolume
)

const (
	// RootDevice is the root device of the machine images, which the policy's root volume applies to (R28).
	RootDevice = policy.RootDevice
	// DefaultRootVolumeSize is the size if neither policy nor the operator's settings give one (R17, G7).
	DefaultRootVolumeSize = policy.DefaultRootVolumeSize
	// MaxRequirements is how many entries a NodePool may have (K4). It bounds a policy too.
	MaxRequirements = policy.MaxRequirements
	// MaxValues is how many values one entry of a policy may have (G12).
	MaxValues = policy.MaxValues
	// ReasonInvalidNodeClassRef: the wrapper refers to a kind of node class that is not allowed (G20).
	ReasonInvalidNodeClassRef = policy.ReasonInvalidNodeClassRef
	// ReasonInvalidBlockDevice: a disk of the wrapper cannot be written to an EC2NodeClass.
	ReasonInvalidBlockDevice = "InvalidBlockDevice"
)

// DefaultRootVolume returns the root volume without a policy: 75Gi of gp3, encrypted (R17, G8).
func DefaultRootVolume() RootVolume { return policy.DefaultRootVolume() }

// Check returns what is wrong with a policy by itself; see [policy.Check].
func Check(p *hypershiftv1beta1.AutoNodePolicy) []Problem { return policy.Check(*Policy(p)) }

// Policy converts an AutoNodePolicy, nil for none.
func Policy(p *hypershiftv1beta1.AutoNodePolicy) *policy.Policy {
	if p == nil {
		return nil
	}
	return &policy.Policy{
		Requirements: FromAPI(p.Spec.NodePoolDefaults.Requirements),
		RootVolume:   change(p.Spec.EC2NodeClassDefaults.RootVolume),
	}
}

func change(volume *hypershiftv1beta1.RootVolume) *policy.RootVolumeChange {
	if volume == nil {
		return nil
	}
	return &policy.RootVolumeChange{
		Size: volume.VolumeSize, Type: volume.VolumeType, Encrypted: volume.Encrypted, IOPS: volume.IOPS,
		Throughput: volume.Throughput,
	}
}

// FromAPI converts requirements. The result shares values and counts with the argument.
func FromAPI(list []Requirement) []fold.Requirement {
	entries := make([]fold.Requirement, len(list))
	for i, entry := range list {
		entries[i] = fold.Requirement{Key: entry.Key, Operator: fold.Operator(entry.Operator), Values: entry.Values,
			MinValues: entry.MinValues}
	}
	return entries
}

// toAPI converts requirements back. The result shares values and counts with the argument.
func toAPI(list []fold.Requirement) []Requirement {
	entries := make([]Requirement, len(list))
	for i, entry := range list {
		entries[i] = Requirement{
			Key: entry.Key, Operator: corev1.NodeSelectorOperator(entry.Operator), Values: entry.Values,
			MinValues: entry.MinValues,
		}
	}
	return entries
}

// value converts a condition of package policy into one of this type.
func value(kind string, c policy.Condition) condition.Value {
	return condition.Value{Type: kind, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message}
}

// rootMapping returns a root volume as the block device mapping of an EC2NodeClass. It marks the volume as the one
// with the kubelet's data: otherwise a node's ephemeral storage would be that of the last mapping. size comes from
// policy.NormalSize.
func rootMapping(v RootVolume, size resource.Quantity) awsv1.BlockDeviceMapping {
	return awsv1.BlockDeviceMapping{
		DeviceName: new(RootDevice),
		RootVolume: new(true),
		EBS: &awsv1.BlockDevice{
			VolumeSize: &size, VolumeType: new(v.Type), Encrypted: new(v.Encrypted), IOPS: copied(v.IOPS),
			Throughput: copied(v.Throughput),
		},
	}
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

func join(problems []Problem) string { return policy.Join(problems) }
