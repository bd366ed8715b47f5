package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// EC2NodeClassStatus says what the selectors of the spec were found to stand for.
type EC2NodeClassStatus struct {
	// Subnets are the subnets that the spec chooses.
	// +optional
	// +listType=atomic
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups are the security groups that the spec chooses.
	// +optional
	// +listType=atomic
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// CapacityReservations are the capacity reservations that the spec chooses.
	// +optional
	// +listType=atomic
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
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

// Subnet is a subnet that was found.
type Subnet struct {
	// ID is the identifier of the subnet.
	// +required
	ID string `json:"id"`
	// Zone is the name of the subnet's availability zone, for example us-east-1a.
	// +required
	Zone string `json:"zone"`
	// ZoneID is the identifier of the zone, which means the same in every account, for example use1-az1.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that was found.
type SecurityGroup struct {
	// ID is the identifier of the security group.
	// +required
	ID string `json:"id"`
	// Name is the name of the security group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is a machine image that was found.
type AMI struct {
	// ID is the identifier of the machine image.
	// +required
	ID string `json:"id"`
	// Name is the name of the machine image.
	// +optional
	Name string `json:"name,omitempty"`
	// Deprecated says whether the image's owner has marked it as deprecated.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Requirements say which instances the image can be used for.
	// +required
	// +listType=atomic
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is a capacity reservation that was found.
type CapacityReservation struct {
	// ID is the identifier of the capacity reservation.
	// +required
	ID string `json:"id"`
	// AvailabilityZone is the zone of the reserved capacity.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is when the reservation ends. Without it the reservation has no end.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// InstanceMatchCriteria is open when any instance that fits takes the capacity, and targeted when an
	// instance has to ask for it.
	// +required
	// +kubebuilder:validation:Enum=open;targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType is the instance type of the reserved capacity.
	// +required
	InstanceType string `json:"instanceType"`
	// Interruptible says whether the capacity may be taken back early.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// OwnerID is the number of the account that owns the reservation.
	// +required
	OwnerID string `json:"ownerID"`
	// ReservationType is default, or capacity-block for a reservation of a fixed time.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:Enum=default;capacity-block
	ReservationType string `json:"reservationType,omitempty"`
	// State is active, or expiring shortly before a capacity block ends.
	// +optional
	// +kubebuilder:default=active
	// +kubebuilder:validation:Enum=active;expiring
	State string `json:"state,omitempty"`
}
