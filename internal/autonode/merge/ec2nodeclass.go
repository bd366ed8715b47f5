package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Infra is what the management cluster knows about a hosted cluster on AWS, and about one node class.
type Infra struct {
	// InfraID is the identifier in the tags of the cluster's AWS resources.
	InfraID string
	// InstanceProfile is the instance profile of all nodes.
	InstanceProfile string
	// ResourceTags are the tags that the hosted cluster has for all its resources.
	ResourceTags []ResourceTag
	// Bootstrap is what nodes of this node class start with; nil if it does not exist yet.
	Bootstrap *Bootstrap
}

// Bootstrap is what nodes of a node class start with.
type Bootstrap struct {
	// UserData makes an instance a node of the cluster.
	UserData string
	// AMIs are the identifiers of the machine images, one for each architecture.
	AMIs []string
}

// ResourceTag is a tag that the hosted cluster has for all its resources.
type ResourceTag struct {
	Key, Value string
	// Overridable lets a tag of the wrapper with the same key win.
	Overridable bool
}

// Wait says why nothing can be written yet. It is no failure: it ends without a change of policy or wrapper.
type Wait struct {
	// Reason is one of the constants below.
	Reason string
	// Message says what is awaited.
	Message string
}

// Reasons of a [Wait].
const (
	ReasonUserDataMissing        = "UserDataMissing"
	ReasonAMIMissing             = "AMIMissing"
	ReasonInfraIDMissing         = "InfraIDMissing"
	ReasonInstanceProfileMissing = "InstanceProfileMissing"
)

// EC2NodeClassResult is the result of [EC2NodeClass].
type EC2NodeClassResult struct {
	// EC2NodeClass is what to write: name, labels, annotations, owner and spec. It is nil if there are Problems or a
	// Wait: then an existing EC2NodeClass stays as it is (G14).
	EC2NodeClass *awsv1.EC2NodeClass
	// Problems keep the EC2NodeClass from being written.
	Problems []Problem
	// Wait says what is missing; nil if nothing is, or if there are Problems to solve first.
	Wait *Wait
	// Overridden are the wrapper's fields about the root volume, which have no effect (G6).
	Overridden []string
	// IgnoredTags are the keys, sorted, of the wrapper's tags without effect: the hosted cluster sets another value,
	// or they belong to the autoscaler.
	IgnoredTags []string
}

// RootVolume returns the condition RootVolumeOverridden of the wrapper (G6).
func (r EC2NodeClassResult) RootVolume() condition.Value {
	const kind = hypershiftv1beta1.ConditionTypeRootVolumeOverridden
	if len(r.Overridden) == 0 {
		return condition.False(kind, hypershiftv1beta1.ReasonNoRootVolumeMapping, "")
	}
	return condition.True(kind, hypershiftv1beta1.ReasonRootVolumeFromProvider,
		"without effect: "+strings.Join(r.Overridden, ", ")+": the root volume is the provider's")
}

// EC2NodeClass merges a policy, nil for none, with an OpenshiftEC2NodeClass (R28 to R33). defaults is the root volume
// for what the policy leaves open, usually [DefaultRootVolume]. The root volume of the result is the provider's,
// whatever the wrapper says. Everything else is the wrapper's, translated to Karpenter's API, with the hosted
// cluster's values where it is silent. The arguments are not changed. A policy that fails [Check] results in a
// Problem.
func EC2NodeClass(of *hypershiftv1beta1.AutoNodePolicy, wrapper *hypershiftv1.OpenshiftEC2NodeClass,
	defaults RootVolume, infra Infra) EC2NodeClassResult {
	provided := Policy(of)
	result := EC2NodeClassResult{Problems: policy.Invalid(provided)}
	root := defaults
	if provided != nil {
		root = defaults.With(provided.RootVolume)
	}
	if len(result.Problems) == 0 {
		result.Problems = root.Check("root volume") // the caller's defaults may not fit the policy
	}
	own := wrapper.DeepCopy().Spec
	mappings, overridden, problems := blockDevices(root, own.BlockDeviceMappings)
	result.Overridden = overridden
	result.Problems = append(result.Problems, problems...)
	if len(result.Problems) > 0 {
		return result
	}
	if result.Wait = missing(own, infra); result.Wait != nil {
		return result
	}
	tags, ignored := mergeTags(own.Tags, infra.ResourceTags)
	result.IgnoredTags = ignored
	result.EC2NodeClass = &awsv1.EC2NodeClass{
		TypeMeta: metav1.TypeMeta{APIVersion: awsv1.GroupVersion().String(), Kind: awsv1.EC2NodeClassKind},
		ObjectMeta: objectMeta(wrapper.ObjectMeta,
			hypershiftv1.GroupVersion().WithKind(hypershiftv1.OpenshiftEC2NodeClassKind)),
		Spec: awsv1.EC2NodeClassSpec{
			AMIFamily: new("Custom"), AMISelectorTerms: amis(infra.Bootstrap.AMIs),
			UserData: new(infra.Bootstrap.UserData), InstanceProfile: new(infra.InstanceProfile),
			SubnetSelectorTerms:              subnets(own.SubnetSelectorTerms, infra.InfraID),
			SecurityGroupSelectorTerms:       securityGroups(own.SecurityGroupSelectorTerms, infra.InfraID),
			CapacityReservationSelectorTerms: capacityReservations(own.CapacityReservationSelectorTerms),
			AssociatePublicIPAddress:         publicAddress(own.IPAddressAssociation),
			BlockDeviceMappings:              mappings,
			InstanceStorePolicy:              optional(string(own.InstanceStorePolicy)),
			DetailedMonitoring:               detailedMonitoring(own.Monitoring),
			MetadataOptions:                  metadataOptions(own.MetadataOptions),
			Kubelet:                          own.Kubelet,
			Tags:                             tags,
		},
	}
	return result
}

// missing returns the first missing thing without which the API server would refuse the EC2NodeClass, or instances
// would not become nodes.
func missing(own hypershiftv1.OpenshiftEC2NodeClassSpec, infra Infra) *Wait {
	switch {
	case infra.Bootstrap == nil || infra.Bootstrap.UserData == "":
		return &Wait{ReasonUserDataMissing, "the user data of this node class is not there yet"}
	case len(infra.Bootstrap.AMIs) == 0:
		return &Wait{ReasonAMIMissing, "the machine image of this node class is not known yet"}
	case infra.InfraID == "" && (len(own.SubnetSelectorTerms) == 0 || len(own.SecurityGroupSelectorTerms) == 0):
		return &Wait{ReasonInfraIDMissing,
			"the infrastructure ID of the hosted cluster is not known yet, and subnets or security groups are to be found by it"}
	case infra.InstanceProfile == "":
		return &Wait{ReasonInstanceProfileMissing,
			"the instance profile of the hosted cluster's nodes is not known yet"}
	}
	return nil
}

// blockDevices returns the provider's root volume and then the wrapper's other disks. It also returns the fields of
// the wrapper's root volume, which it leaves out (G6), and what an EC2NodeClass would not accept.
func blockDevices(root RootVolume,
	own []hypershiftv1.BlockDeviceMapping) ([]awsv1.BlockDeviceMapping, []string, []Problem) {
	size, _ := policy.NormalSize(root.Size) // RootVolume.Check has seen that it fits
	mappings := []awsv1.BlockDeviceMapping{rootMapping(root, size)}
	var overridden []string
	var problems []Problem
	for i, mapping := range own {
		field := fmt.Sprintf("spec.blockDeviceMappings[%d]", i)
		if mapping.DeviceName == RootDevice || mapping.RootVolume == hypershiftv1.RootVolumeRoleRoot {
			overridden = append(overridden, field)
			continue
		}
		disk := awsv1.BlockDeviceMapping{DeviceName: optional(mapping.DeviceName)}
		if mapping.RootVolume == hypershiftv1.RootVolumeRoleNotRoot {
			disk.RootVolume = new(false)
		}
		if mapping.EBS != nil {
			volume, problem := ebs(field+".ebs", *mapping.EBS)
			disk.EBS = volume
			problems = append(problems, problem...)
		}
		mappings = append(mappings, disk)
	}
	return mappings, overridden, problems
}

// maxGiB is the largest volume that an EC2NodeClass accepts: 58Ti.
const maxGiB = 58 << 10

func ebs(field string, own hypershiftv1.BlockDevice) (*awsv1.BlockDevice, []Problem) {
	volume := &awsv1.BlockDevice{
		IOPS: own.IOPS, Throughput: own.Throughput, KMSKeyID: optional(own.KMSKeyID),
		SnapshotID: optional(own.SnapshotID), VolumeType: optional(strings.ToLower(string(own.VolumeType))),
		DeleteOnTermination: flag(own.DeleteOnTermination, hypershiftv1.DeleteOnTerminationDelete),
		Encrypted:           flag(own.Encrypted, hypershiftv1.EncryptionEncrypted),
	}
	if own.VolumeSizeGiB == nil {
		return volume, nil
	}
	size, fits := policy.NormalSize(*resource.NewQuantity(min(*own.VolumeSizeGiB, maxGiB)<<30, resource.BinarySI))
	if !fits || *own.VolumeSizeGiB > maxGiB {
		return nil, []Problem{{Reason: ReasonInvalidBlockDevice, Field: field + ".volumeSizeGiB",
			Message: fmt.Sprintf("is %d: it must be from 1 to 59000, or %d", *own.VolumeSizeGiB, maxGiB)}}
	}
	volume.VolumeSize = &size
	return volume, nil
}

// mergeTags returns the tags of an EC2NodeClass, and the keys of the wrapper's tags without effect. The hosted
// cluster's tags win unless they are Overridable. Tags that the autoscaler sets itself are left out: the API would
// refuse them.
func mergeTags(own map[string]string, cluster []ResourceTag) (map[string]string, []string) {
	merged := map[string]string{}
	for key, value := range own {
		if !reservedTag(key) {
			merged[key] = value
		}
	}
	for _, tag := range cluster {
		if _, given := own[tag.Key]; reservedTag(tag.Key) || given && tag.Overridable {
			continue
		}
		merged[tag.Key] = tag.Value
	}
	var ignored []string
	for key, value := range own {
		if left, kept := merged[key]; !kept || left != value {
			ignored = append(ignored, key)
		}
	}
	slices.Sort(ignored)
	if len(merged) == 0 {
		return nil, ignored
	}
	return merged, ignored
}

// reservedTag reports whether the autoscaler sets the tag itself, or AWS sets it.
func reservedTag(key string) bool {
	return strings.HasPrefix(key, "kubernetes.io/cluster") ||
		slices.Contains([]string{"", "eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim",
			awsv1.NodeClassLabelKey}, key)
}

func amis(ids []string) []awsv1.AMISelectorTerm {
	terms := make([]awsv1.AMISelectorTerm, len(ids))
	for i, id := range ids {
		terms[i].ID = id
	}
	return terms
}

// subnets translates the wrapper's terms. Without any, it selects the private subnets of the cluster.
func subnets(own []hypershiftv1.SubnetSelectorTerm, infraID string) []awsv1.SubnetSelectorTerm {
	if len(own) == 0 {
		return []awsv1.SubnetSelectorTerm{{Tags: map[string]string{
			"kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/" + infraID: "*",
		}}}
	}
	terms := make([]awsv1.SubnetSelectorTerm, len(own))
	for i, term := range own {
		terms[i] = awsv1.SubnetSelectorTerm{Tags: maps.Clone(term.Tags), ID: term.ID}
	}
	return terms
}

// securityGroups translates the wrapper's terms. Without any, it selects the security groups tagged for the cluster's
// nodes.
func securityGroups(own []hypershiftv1.SecurityGroupSelectorTerm, infraID string) []awsv1.SecurityGroupSelectorTerm {
	if len(own) == 0 {
		return []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": infraID}}}
	}
	terms := make([]awsv1.SecurityGroupSelectorTerm, len(own))
	for i, term := range own {
		terms[i] = awsv1.SecurityGroupSelectorTerm{Tags: maps.Clone(term.Tags), ID: term.ID, Name: term.Name}
	}
	return terms
}

func capacityReservations(own []hypershiftv1.CapacityReservationSelectorTerm) []awsv1.CapacityReservationSelectorTerm {
	var terms []awsv1.CapacityReservationSelectorTerm
	for _, term := range own {
		terms = append(terms, awsv1.CapacityReservationSelectorTerm{
			Tags: maps.Clone(term.Tags), ID: term.ID, OwnerID: term.OwnerID,
			InstanceMatchCriteria: strings.ToLower(string(term.InstanceMatchCriteria)),
		})
	}
	return terms
}
