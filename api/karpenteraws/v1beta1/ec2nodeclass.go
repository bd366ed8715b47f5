package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// EC2NodeClass holds the settings of Amazon EC2 for the nodes of the NodePools that refer to it. Use v1 for new
// manifests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ec2nodeclasses,scope=Cluster,shortName={ec2nc,ec2ncs},categories=karpenter
// +kubebuilder:subresource:status
type EC2NodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec holds the settings for the instances.
	// +required
	Spec EC2NodeClassSpec `json:"spec"`
	// Status says what the selectors of the spec were found to stand for.
	// +optional
	Status EC2NodeClassStatus `json:"status,omitzero"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
//
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the EC2NodeClasses of the list.
	Items []EC2NodeClass `json:"items"`
}

// EC2NodeClassSpec holds the settings for instances of EC2.
//
// +kubebuilder:validation:XValidation:rule="has(self.role) != has(self.instanceProfile)",message="spec.role and spec.instanceProfile exclude each other, and one of them is needed: give the name of an IAM role, or of an instance profile"
// +kubebuilder:validation:XValidation:rule="self.amiFamily != 'Custom' || has(self.amiSelectorTerms) && self.amiSelectorTerms.size() > 0",message="spec.amiSelectorTerms is missing: with amiFamily Custom it says which image is used"
type EC2NodeClassSpec struct {
	// AMIFamily says how the machine image is set up and reads user data, and, without amiSelectorTerms,
	// which image is used: the latest one that AWS publishes. v1 says the latter with an alias. Ubuntu does
	// not exist in v1: it becomes AL2, which reads user data in the same way, and needs amiSelectorTerms.
	// +required
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Ubuntu;Custom;Windows2019;Windows2022;Windows2025
	AMIFamily *string `json:"amiFamily"`
	// AMISelectorTerms choose the machine images. An image that fits one of the terms may be used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms,omitempty"`
	// Role is the name of the IAM role of the instances; an instance profile is made for it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != ''",message="spec.role must not be empty: give the name of an IAM role"
	Role string `json:"role,omitempty"`
	// InstanceProfile is the name of an instance profile that exists, in place of role.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != ''",message="spec.instanceProfile must not be empty: give the name of an instance profile"
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// SubnetSelectorTerms choose the subnets. A subnet that fits one of the terms may be used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	SubnetSelectorTerms []awsv1.SubnetSelectorTerm `json:"subnetSelectorTerms"`
	// SecurityGroupSelectorTerms choose the security groups. Instances get all that fit one of the terms.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	SecurityGroupSelectorTerms []awsv1.SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`
	// AssociatePublicIPAddress says whether instances get a public address. Without it the subnet decides.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// BlockDeviceMappings are the disks of an instance. Without them it has those of its image family.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(m, has(m.rootVolume) && m.rootVolume).size() <= 1",message="spec.blockDeviceMappings has more than one mapping with rootVolume true: an instance has one root volume"
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy says what is done with the disks that are part of an instance type. RAID0 makes
	// one volume of them, for pods and images.
	// +optional
	// +kubebuilder:validation:Enum=RAID0
	InstanceStorePolicy *string `json:"instanceStorePolicy,omitempty"`
	// DetailedMonitoring says whether instances report their metrics each minute instead of every five.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions say how an instance can read the metadata service.
	// +optional
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// Context is passed to the fleet request of EC2 as it is.
	// +optional
	Context *string `json:"context,omitempty"`
	// UserData is run or read by an instance when it starts. It is combined with what the image family
	// needs; with the family Custom it is used as it is.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Tags are put on instances, volumes and whatever else is created for them.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '')",message="spec.tags has an empty key: each tag needs a name"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['karpenter.sh/managed-by', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass']) && !k.startsWith('kubernetes.io/cluster'))",messageExpression="'spec.tags has the key ' + self.filter(k, k in ['karpenter.sh/managed-by', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass'] || k.startsWith('kubernetes.io/cluster'))[0] + ', which the controller sets itself: take it out'"
	Tags map[string]string `json:"tags,omitempty"`
}

// AMISelectorTerm chooses machine images. The fields of a term must all fit.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) || has(self.id) || has(self.name)",message="a term of spec.amiSelectorTerms chooses nothing: give id, name or tags"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.tags) || has(self.name) || has(self.owner))",messageExpression="'a term of spec.amiSelectorTerms has the id ' + self.id + ' and other fields: an id stands alone in its term'"
type AMISelectorTerm struct {
	// ID is the identifier of an image.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-z]+$`
	ID string `json:"id,omitempty"`
	// Name is the name of images; * stands for any text.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// Owner is the account that owns the images: its number, self, or a name such as amazon.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Owner string `json:"owner,omitempty"`
	// Tags are tags that images must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
}

// BlockDeviceMapping is one disk of an instance.
type BlockDeviceMapping struct {
	// DeviceName is the name of the device, for example /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// EBS is the volume behind the device.
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume says whether this is the volume with the kubelet's data. At most one mapping may say so.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is a volume of Amazon EBS.
//
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="ebs of a block device mapping needs snapshotID or volumeSize"
type BlockDevice struct {
	// DeleteOnTermination says whether the volume is deleted together with its instance.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted says whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS is the number of operations per second, for the types gp3, io1 and io2.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the key, its alias or its ARN that an encrypted volume is encrypted with.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the snapshot the volume is made from.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Throughput is the throughput in MiB per second, for the type gp3.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeSize is the size of the volume: a whole number with the unit Gi, G, Ti or T, for example 75Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|(?:[1-9]|[1-4][0-9]|5[0-8])Ti|(?:[1-9]|[1-5][0-9]|6[0-4])T)$')",messageExpression="'ebs.volumeSize is ' + self + ': it must be a whole number with the unit Gi, G, Ti or T, from 1Gi to 59000Gi or 58Ti, or from 1G to 64000G or 64T'"
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// VolumeType is the type of the volume, for example gp3.
	// +optional
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	VolumeType *string `json:"volumeType,omitempty"`
}

// MetadataOptions say how an instance can read the metadata service.
type MetadataOptions struct {
	// HTTPEndpoint says whether the service answers at all: enabled or disabled.
	// +optional
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum=enabled;disabled
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 says whether the service has an address of IPv6 too: enabled or disabled.
	// +optional
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum=enabled;disabled
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is how many network hops an answer may travel. The default of 2 lets pods that
	// have a network of their own read it; in v1 the default is 1.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens says whether a request needs a session token: required or optional.
	// +optional
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// EC2NodeClassStatus says what the selectors of the spec were found to stand for.
type EC2NodeClassStatus struct {
	// Subnets are the subnets that the spec chooses.
	// +optional
	// +listType=atomic
	Subnets []awsv1.Subnet `json:"subnets,omitempty"`
	// SecurityGroups are the security groups that the spec chooses.
	// +optional
	// +listType=atomic
	SecurityGroups []awsv1.SecurityGroup `json:"securityGroups,omitempty"`
	// AMIs are the machine images that the spec chooses.
	// +optional
	// +listType=atomic
	AMIs []AMI `json:"amis,omitempty"`
	// InstanceProfile is the name of the instance profile that instances get.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions are the latest observations about the node class.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []karpenterv1.Condition `json:"conditions,omitempty"`
}

// AMI is a machine image that was found.
type AMI struct {
	// ID is the identifier of the machine image.
	// +required
	ID string `json:"id"`
	// Name is the name of the machine image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements say which instances the image can be used for.
	// +required
	// +listType=atomic
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}
