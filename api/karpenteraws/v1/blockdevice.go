package v1

import "k8s.io/apimachinery/pkg/api/resource"

// The types of EBS volumes.
const (
	VolumeTypeStandard = "standard"
	VolumeTypeIO1      = "io1"
	VolumeTypeIO2      = "io2"
	VolumeTypeGP2      = "gp2"
	VolumeTypeGP3      = "gp3"
	VolumeTypeSC1      = "sc1"
	VolumeTypeST1      = "st1"
)

// BlockDeviceMapping is one disk of an instance.
type BlockDeviceMapping struct {
	// DeviceName is the name of the device, for example /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// EBS is the volume behind the device.
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume says whether this is the volume with the kubelet's data. Its size is then what a node
	// offers as ephemeral storage. At most one mapping may say so.
	// +optional
	RootVolume *bool `json:"rootVolume,omitempty"`
}

// BlockDevice is a volume of Amazon EBS.
//
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="ebs of a block device mapping needs snapshotID or volumeSize"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || has(self.snapshotID)",message="ebs.volumeInitializationRate needs snapshotID: only a volume made from a snapshot is filled"
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
	// VolumeInitializationRate is how fast the volume is filled from its snapshot, in MiB per second.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize is the size of the volume: a whole number with the unit Gi, G, Ti or T, for example 75Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|(?:[1-9]|[1-4][0-9]|5[0-8])Ti|(?:[1-9]|[1-5][0-9]|6[0-4])T)$')",messageExpression="'ebs.volumeSize is ' + self + ': it must be a whole number with the unit Gi, G, Ti or T, from 1Gi to 59000Gi or 58Ti, or from 1G to 64000G or 64T'"
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// VolumeType is the type of the volume, for example gp3.
	// +optional
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	VolumeType *string `json:"volumeType,omitempty"`
}
