package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// ObservedPolicy says which state of the AutoNodePolicy an object was last brought in line with.
type ObservedPolicy struct {
	// UID is the metadata.uid of the policy, which tells it from another one that had the same name.
	// +required
	UID types.UID `json:"uid"`
	// Generation is the metadata.generation of the policy.
	// +required
	Generation int64 `json:"generation"`
}

// OpenshiftEC2NodeClassStatus says what became of the node class.
type OpenshiftEC2NodeClassStatus struct {
	// Conditions are the latest observations about the node class and the EC2NodeClass made from it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Conditions []karpenterv1.Condition `json:"conditions,omitempty"`
	// ObservedPolicy is the state of the policy that the condition PolicyApplied speaks of. It is absent when
	// there was no policy.
	// +optional
	ObservedPolicy *ObservedPolicy `json:"observedPolicy,omitempty"`
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
	// ReleaseImage is the image of the OpenShift release that nodes run.
	// +optional
	ReleaseImage string `json:"releaseImage,omitempty"`
	// Version is the OpenShift release that nodes run.
	// +optional
	Version string `json:"version,omitempty"`
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
	// InstanceMatchCriteria is Open when any instance that fits takes the capacity, and Targeted when an
	// instance has to ask for it.
	// +required
	// +kubebuilder:validation:Enum=Open;Targeted
	InstanceMatchCriteria InstanceMatchCriteria `json:"instanceMatchCriteria"`
	// InstanceType is the instance type of the reserved capacity.
	// +required
	InstanceType string `json:"instanceType"`
	// OwnerID is the number of the account that owns the reservation.
	// +required
	OwnerID string `json:"ownerID"`
}
