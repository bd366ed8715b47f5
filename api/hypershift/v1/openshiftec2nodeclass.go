package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// OpenshiftEC2NodeClass holds what users of a hosted cluster may set for the nodes of EC2. An EC2NodeClass of
// the same name is made from it, with the machine image, the identity and the root volume of the provider.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftec2nodeclasses,scope=Cluster,shortName={oec2nc,oec2ncs},categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the EC2NodeClass made from this object may be used"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the node class was created"
// +kubebuilder:printcolumn:name=Policy,type=string,JSONPath=".status.conditions[?(@.type=='PolicyApplied')].status",priority=1,description="Whether the provider's policy is applied"
type OpenshiftEC2NodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec holds the settings for the instances. At least one field must be given.
	// +required
	Spec OpenshiftEC2NodeClassSpec `json:"spec"`
	// Status says what became of the node class.
	// +optional
	Status OpenshiftEC2NodeClassStatus `json:"status,omitzero"`
}

// OpenshiftEC2NodeClassList is a list of OpenshiftEC2NodeClasses.
//
// +kubebuilder:object:root=true
type OpenshiftEC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the OpenshiftEC2NodeClasses of the list.
	Items []OpenshiftEC2NodeClass `json:"items"`
}

// OpenshiftEC2NodeClassSpec holds the settings for instances of EC2 that users may make.
//
// +kubebuilder:validation:MinProperties=1
type OpenshiftEC2NodeClassSpec struct {
	// SubnetSelectorTerms choose the subnets. A subnet that fits one of the terms may be used. Without terms
	// it is those tagged for internal load balancers and for this cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms,omitempty"`
	// SecurityGroupSelectorTerms choose the security groups. Instances get all that fit one of the terms.
	// Without terms it is those tagged for this cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms,omitempty"`
	// CapacityReservationSelectorTerms choose the capacity reservations that may be used. Without terms none
	// is used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`
	// IPAddressAssociation says whether instances get a public address: Public, or SubnetDefault for what the
	// subnet says, which also holds when the field is unset.
	// +optional
	// +kubebuilder:validation:Enum=Public;SubnetDefault
	IPAddressAssociation IPAddressAssociation `json:"ipAddressAssociation,omitempty"`
	// Tags are put on instances, volumes and whatever else is created for them, together with the tags of
	// the cluster.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '')",message="spec.tags has an empty key: each tag needs a name"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass']) && !k.startsWith('kubernetes.io/cluster'))",messageExpression="'spec.tags has the key ' + self.filter(k, k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass'] || k.startsWith('kubernetes.io/cluster'))[0] + ', which the controller sets itself: take it out'"
	Tags map[string]string `json:"tags,omitempty"`
	// BlockDeviceMappings are the disks of an instance beside the root volume. The root volume, which is
	// /dev/xvda or the mapping with rootVolume RootVolume, is the provider's: what a mapping says about it has
	// no effect, and the condition RootVolumeOverridden tells so.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(m, has(m.rootVolume) && m.rootVolume == 'RootVolume').size() <= 1",message="spec.blockDeviceMappings has more than one mapping with rootVolume RootVolume: an instance has one root volume"
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy says what is done with the disks that are part of an instance type. RAID0 makes one
	// volume of them, for pods and images.
	// +optional
	// +kubebuilder:validation:Enum=RAID0
	InstanceStorePolicy InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// Monitoring says how often instances report their metrics: Detailed for each minute, Basic for every
	// five.
	// +optional
	// +kubebuilder:validation:Enum=Detailed;Basic
	Monitoring Monitoring `json:"monitoring,omitempty"`
	// MetadataOptions say how an instance can read the metadata service.
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// Version is the OpenShift release that nodes run, for example 4.21.0. Without it nodes run the release of
	// the control plane.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?$')",messageExpression="'spec.version is ' + self + ': it must be a semantic version such as 4.21.0 or 4.21.0-rc.1'"
	Version string `json:"version,omitempty"`
	// Kubelet are settings of the kubelet. Fields that are not described here are passed through.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.maxPods) || (self.maxPods >= 1 && self.maxPods <= 2500)",message="spec.kubelet.maxPods must be 1 to 2500",fieldPath=".maxPods"
	// +kubebuilder:validation:XValidation:rule="!has(self.podsPerCore) || (self.podsPerCore >= 1 && self.podsPerCore <= 2500)",message="spec.kubelet.podsPerCore must be 1 to 2500",fieldPath=".podsPerCore"
	// +kubebuilder:validation:XValidation:rule="!has(self.systemReserved) || self.systemReserved.size() > 0",message="spec.kubelet.systemReserved is empty: give an amount, or leave the field out",fieldPath=".systemReserved"
	// +kubebuilder:validation:XValidation:rule="!has(self.kubeReserved) || self.kubeReserved.size() > 0",message="spec.kubelet.kubeReserved is empty: give an amount, or leave the field out",fieldPath=".kubeReserved"
	// +kubebuilder:validation:XValidation:rule="!has(self.podsPerCore) || !has(self.maxPods) || self.podsPerCore <= self.maxPods",message="spec.kubelet.podsPerCore must not be greater than maxPods",fieldPath=".podsPerCore"
	// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoft) || !has(self.evictionHard) || self.evictionSoft.all(k, !(k in self.evictionHard) || (self.evictionSoft[k].matches('^[0-9]+([.][0-9]+)?%$') ? !self.evictionHard[k].matches('^[0-9]+([.][0-9]+)?%$') || double(self.evictionSoft[k].replace('%', '')) >= double(self.evictionHard[k].replace('%', '')) : !isQuantity(self.evictionSoft[k]) || !isQuantity(self.evictionHard[k]) || quantity(self.evictionSoft[k]).compareTo(quantity(self.evictionHard[k])) >= 0))",message="spec.kubelet.evictionSoft has a threshold below the one of the same signal in evictionHard: a soft threshold must not be lower, or it would never act first",fieldPath=".evictionSoft"
	Kubelet *awsv1.KubeletConfiguration `json:"kubelet,omitempty"`
}

// MetadataOptions say how an instance can read the metadata service.
//
// +kubebuilder:validation:MinProperties=1
type MetadataOptions struct {
	// Access says whether the service answers: HTTPEndpoint, or None for not at all.
	// +optional
	// +kubebuilder:validation:Enum=HTTPEndpoint;None
	Access MetadataAccess `json:"access,omitempty"`
	// HTTPIPProtocol is the protocol of the service's address: IPv4, or IPv6 for that in addition.
	// +optional
	// +kubebuilder:validation:Enum=IPv4;IPv6
	HTTPIPProtocol MetadataIPProtocol `json:"httpIPProtocol,omitempty"`
	// HTTPPutResponseHopLimit is how many network hops an answer may travel. With 1 only the instance itself
	// can read it, not the pods that have a network of their own.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens says whether a request needs a session token: Required or Optional.
	// +optional
	// +kubebuilder:validation:Enum=Required;Optional
	HTTPTokens MetadataTokens `json:"httpTokens,omitempty"`
}

// BlockDeviceMapping is one disk of an instance.
//
// +kubebuilder:validation:MinProperties=1
type BlockDeviceMapping struct {
	// DeviceName is the name of the device, for example /dev/xvdb.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DeviceName string `json:"deviceName,omitempty"`
	// EBS is the volume behind the device.
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume says whether this is the root volume: RootVolume or NotRootVolume. At most one mapping may
	// say RootVolume.
	// +optional
	// +kubebuilder:validation:Enum=RootVolume;NotRootVolume
	RootVolume RootVolumeRole `json:"rootVolume,omitempty"`
}

// BlockDevice is a volume of Amazon EBS.
//
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSizeGiB)",message="ebs of a block device mapping needs snapshotID or volumeSizeGiB"
type BlockDevice struct {
	// DeleteOnTermination says what becomes of the volume when its instance ends: Delete or Retain.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Retain
	DeleteOnTermination DeleteOnTermination `json:"deleteOnTermination,omitempty"`
	// Encrypted says whether the volume is encrypted: Encrypted or Unencrypted.
	// +optional
	// +kubebuilder:validation:Enum=Encrypted;Unencrypted
	Encrypted Encryption `json:"encrypted,omitempty"`
	// IOPS is the number of operations per second, for the types GP3, IO1 and IO2.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the key, its alias or its ARN that an encrypted volume is encrypted with.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the snapshot the volume is made from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SnapshotID string `json:"snapshotID,omitempty"`
	// Throughput is the throughput in MiB per second, for the type GP3.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeSizeGiB is the size of the volume in GiB.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	VolumeSizeGiB *int64 `json:"volumeSizeGiB,omitempty"`
	// VolumeType is the type of the volume, for example GP3.
	// +optional
	// +kubebuilder:validation:Enum=Standard;IO1;IO2;GP2;SC1;ST1;GP3
	VolumeType VolumeType `json:"volumeType,omitempty"`
}
