package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// NodeOverlay changes the price or the extended resources of instance types, as the scheduler sees
// them.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeoverlays,scope=Cluster,shortName=overlays,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the overlay is in effect"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the overlay was created"
// +kubebuilder:printcolumn:name=Weight,type=integer,JSONPath=".spec.weight",priority=1,description="Of overlays that name the same thing the one of highest weight holds"
type NodeOverlay struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says which instance types are changed, and how.
	// +required
	Spec NodeOverlaySpec `json:"spec"`
	// Status says whether the overlay is in effect.
	// +optional
	Status NodeOverlayStatus `json:"status,omitempty"`
}

// NodeOverlayList is a list of NodeOverlays.
//
// +kubebuilder:object:root=true
type NodeOverlayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the NodeOverlays of the list.
	Items []NodeOverlay `json:"items"`
}

// NodeOverlaySpec says which instance types are changed, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.price) || !has(self.priceAdjustment)",message="spec.price and spec.priceAdjustment exclude each other: give one of them"
type NodeOverlaySpec struct {
	// Requirements choose the instance types and offerings that are changed. An empty list chooses all.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Requirements []NodeSelectorRequirement `json:"requirements"`
	// Price replaces the price per hour: a decimal number such as 0.25.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?$')",messageExpression="'spec.price is ' + self + ': it must be a decimal number that is not negative, for example 0.25'"
	Price *string `json:"price,omitempty"`
	// PriceAdjustment is added to the price per hour: a signed decimal number such as -0.05, or a
	// signed percentage such as +10%, not below -100%. The result never falls below 0.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([+-]([0-9]+([.][0-9]+)?|[.][0-9]+)|[+]([0-9]+([.][0-9]+)?|[.][0-9]+)%|-([0-9]{1,2}([.][0-9]+)?|100)%)$')",messageExpression="'spec.priceAdjustment is ' + self + ': it must be a signed decimal number such as -0.05, or a signed percentage such as +10%, not below -100%'"
	PriceAdjustment *string `json:"priceAdjustment,omitempty"`
	// Capacity adds or replaces extended resources, for example smarter-devices/fuse. The resources
	// cpu, memory, ephemeral-storage and pods cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self || 'memory' in self || 'ephemeral-storage' in self || 'pods' in self)",messageExpression="'spec.capacity cannot change ' + ('cpu' in self ? 'cpu' : 'memory' in self ? 'memory' : 'pods' in self ? 'pods' : 'ephemeral-storage') + ': only extended resources are accepted'"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Weight decides between overlays that change the same thing: the highest weight holds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Weight *int32 `json:"weight,omitempty"`
}

// NodeSelectorRequirement is a condition on one label of instance types and offerings.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",messageExpression="'requirement ' + self.key + ': operator ' + self.operator + ' needs at least one value in values'"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && self.values.size() == 1 && self.values[0].matches('^[0-9]{1,18}$'))",messageExpression="'requirement ' + self.key + ': operator ' + self.operator + ' needs exactly one value, an integer from 0 to 999999999999999999'"
type NodeSelectorRequirement struct {
	// Key is the label the condition is about.
	// +required
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",messageExpression="'requirement key \"' + self + '\" is no label name: use letters, digits, \"-\", \"_\" and \".\", beginning and ending with a letter or digit, with an optional lower-case DNS prefix and a slash before it'"
	Key string `json:"key"`
	// Operator says how the label is compared with the values. In and NotIn compare with each value,
	// Exists and DoesNotExist look at the label alone, Gt, Lt, Gte and Lte compare integers.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values are the label values to compare with. In and NotIn need at least one; Gt, Lt, Gte and Lte
	// need exactly one integer that is not negative.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	Values []string `json:"values,omitempty"`
}

// NodeOverlayStatus says whether an overlay is in effect.
type NodeOverlayStatus struct {
	// Conditions are the latest observations about the overlay.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []v1.Condition `json:"conditions,omitempty"`
}
