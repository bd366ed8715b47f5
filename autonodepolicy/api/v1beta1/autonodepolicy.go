package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoNodePolicy says what the provider of hosted clusters allows for their nodes. It stands in the namespace
// of a hosted control plane and applies to all OpenshiftNodePools and node classes of that cluster. Only the
// policy named default is recognised; others are ignored.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=autonodepolicies,scope=Namespaced,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the policy is applied to all NodePools and node classes"
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why it is or is not"
// +kubebuilder:printcolumn:name=Conforming,type=string,JSONPath=".status.conditions[?(@.type=='Conforming')].status",description="Whether everything in the hosted cluster is as the policy wants it"
// +kubebuilder:printcolumn:name=Protected,type=string,JSONPath=".status.conditions[?(@.type=='Protected')].status",description="Whether the admission policies that keep others from writing are in force"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the policy was created"
type AutoNodePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says what is allowed.
	// +optional
	Spec AutoNodePolicySpec `json:"spec,omitempty"`
	// Status says whether the policy is applied.
	// +optional
	Status AutoNodePolicyStatus `json:"status,omitzero"`
}

// AutoNodePolicyList is a list of AutoNodePolicies.
//
// +kubebuilder:object:root=true
type AutoNodePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the AutoNodePolicies of the list.
	Items []AutoNodePolicy `json:"items"`
}

// AutoNodePolicySpec says what is allowed.
type AutoNodePolicySpec struct {
	// NodePoolDefaults constrain every NodePool. In spite of the name they are no defaults that a user could
	// replace: a node has to satisfy them and the user's own requirements.
	// +optional
	NodePoolDefaults NodePoolDefaults `json:"nodePoolDefaults,omitzero"`
	// EC2NodeClassDefaults are settings of every EC2NodeClass. In spite of the name they replace what a user
	// sets.
	// +optional
	EC2NodeClassDefaults EC2NodeClassDefaults `json:"ec2NodeClassDefaults,omitzero"`
}

// NodePoolDefaults constrain every NodePool.
type NodePoolDefaults struct {
	// Requirements are put before those of every OpenshiftNodePool; a node has to satisfy both, so that users
	// can narrow down what is allowed and not widen it. An empty list allows everything. Common keys are
	// node.kubernetes.io/instance-type, topology.kubernetes.io/zone, kubernetes.io/arch and
	// karpenter.sh/capacity-type. Tightening them replaces nodes that do not conform.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.key != 'karpenter.sh/nodepool')",message="requirement key karpenter.sh/nodepool is restricted: the controller sets it to the name of the pool"
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.key != 'karpenter.kwok.sh/kwoknodeclass')",message="requirement key karpenter.kwok.sh/kwoknodeclass is restricted: of the domain karpenter.kwok.sh only instance-size, instance-family, instance-cpu and instance-memory may be required"
	// +kubebuilder:validation:items:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",messageExpression="'requirement ' + self.key + ': operator ' + self.operator + ' takes no values, they would be ignored; take them out, or use In or NotIn'"
	Requirements []Requirement `json:"requirements,omitzero"`
}

// EC2NodeClassDefaults are settings of every EC2NodeClass.
type EC2NodeClassDefaults struct {
	// RootVolume is the root volume of every node. It replaces whatever a user sets for the root device.
	// Without it the root volume is the one that the operator has built in: 75Gi, gp3, encrypted. Changing it
	// replaces every node.
	// +optional
	RootVolume *RootVolume `json:"rootVolume,omitempty"`
}

// RootVolume is the root volume of every node. Each of size, type and encryption that is unset is the one the
// operator has built in (G8).
//
// +kubebuilder:validation:XValidation:rule="!has(self.throughput) || !has(self.volumeType) || self.volumeType.lowerAscii() == 'gp3'",messageExpression="'rootVolume.throughput cannot be set with volumeType ' + self.volumeType + ': only gp3 has it'"
// +kubebuilder:validation:XValidation:rule="!has(self.iops) || !has(self.volumeType) || self.volumeType.lowerAscii() in ['gp3', 'io1', 'io2']",messageExpression="'rootVolume.iops cannot be set with volumeType ' + self.volumeType + ': only gp3, io1 and io2 have it'"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeType) || !(self.volumeType.lowerAscii() in ['io1', 'io2']) || has(self.iops)",messageExpression="'rootVolume.volumeType ' + self.volumeType + ' needs rootVolume.iops: give the operations per second'"
type RootVolume struct {
	// VolumeSize is the size of the volume: a quantity that is a whole number of Gi, up to 59000Gi or 58Ti, or
	// of G, up to 64000G. Without it the size is the operator's own, 75Gi if it was not told another.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && [quantity(string(self)).asApproximateFloat()].exists(f, f > 0.0 && f <= 64000000000000.0 && double(int(f)) == f && ((int(f) % 1073741824 == 0 && f <= 63350767616000.0) || (int(f) % 1099511627776 == 0 && f <= 63771674411008.0) || int(f) % 1000000000 == 0))",messageExpression="'rootVolume.volumeSize is ' + string(self) + ': it must be a whole number of Gi from 1Gi to 59000Gi (or 58Ti), or of G from 1G to 64000G, for example 75Gi'"
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// VolumeType is the type of the volume: standard, io1, io2, gp2, sc1, st1 or gp3, in any case. EC2 does
	// not start from the types sc1 and st1. Without it the type is gp3.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() in ['standard', 'io1', 'io2', 'gp2', 'sc1', 'st1', 'gp3']",messageExpression="'rootVolume.volumeType is ' + self + ': it must be standard, io1, io2, gp2, sc1, st1 or gp3'"
	VolumeType *string `json:"volumeType,omitempty"`
	// Encrypted says whether the volume is encrypted. Without it the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS is the number of operations per second, for the types gp3, io1 and io2; the latter two need it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	IOPS *int64 `json:"iops,omitempty"`
	// Throughput is the throughput in MiB per second, for the type gp3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Throughput *int64 `json:"throughput,omitempty"`
}

// AutoNodePolicyStatus says whether the policy is applied.
type AutoNodePolicyStatus struct {
	// Conditions are the latest observations about the policy. Compare observedGeneration with
	// metadata.generation: an operator that does not run leaves the old ones.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}
