package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActiveCapacity is the strategy that keeps nodes with free room: the default, and the only one that is acted upon.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// Types of conditions of a CapacityBuffer.
const (
	// ConditionTypeReadyForProvisioning: it is known what the buffer asks for.
	ConditionTypeReadyForProvisioning = "ReadyForProvisioning"
	// ConditionTypeProvisioning: the room is there.
	ConditionTypeProvisioning = "Provisioning"
	// ConditionTypeLimitedByQuotas: limits make the buffer smaller than it asks for.
	ConditionTypeLimitedByQuotas = "LimitedByQuotas"
)

// CapacityBuffer asks for room that stays free in the cluster, for pods of one kind.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=capacitybuffers,scope=Namespaced,shortName=cb,categories=autoscaling
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Strategy,type=string,JSONPath=".spec.provisioningStrategy",description="How the room is kept"
// +kubebuilder:printcolumn:name=PodTemplate,type=string,JSONPath=".status.podTemplateRef.name",description="The PodTemplate whose pods the room is for"
// +kubebuilder:printcolumn:name=Replicas,type=integer,JSONPath=".status.replicas",description="For how many pods there should be room"
// +kubebuilder:printcolumn:name=ConditionsType,type=string,JSONPath=".status.conditions[*].type",description="Types of the conditions"
// +kubebuilder:printcolumn:name=ConditionsStatus,type=string,JSONPath=".status.conditions[*].status",description="Their status, in the same order"
// +kubebuilder:printcolumn:name=ConditionsReason,type=string,JSONPath=".status.conditions[*].reason",description="Their reasons, in the same order"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the buffer was created"
type CapacityBuffer struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says what room is to stay free.
	// +required
	Spec CapacityBufferSpec `json:"spec"`
	// Status says what came of it.
	// +optional
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// CapacityBufferList is a list of CapacityBuffers.
//
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the CapacityBuffers of the list.
	Items []CapacityBuffer `json:"items"`
}

// CapacityBufferSpec says what room is to stay free.
//
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",message="spec.podTemplateRef alone does not say how much: give spec.replicas or spec.limits too"
// +kubebuilder:validation:XValidation:rule="!(has(self.podTemplateRef) && has(self.scalableRef))",message="spec.podTemplateRef and spec.scalableRef exclude each other: give one of them"
type CapacityBufferSpec struct {
	// ProvisioningStrategy is how the room is kept. Only buffer.x-k8s.io/active-capacity is acted upon: nodes with
	// free room.
	// +optional
	// +kubebuilder:default="buffer.x-k8s.io/active-capacity"
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// PodTemplateRef names a PodTemplate in the buffer's namespace: the room is for pods of that template.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// ScalableRef names a workload in the buffer's namespace: the room is for more pods of it.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`
	// Replicas is for how many pods there is to be room. Of replicas and percentage the larger one counts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=false
	Replicas *int32 `json:"replicas,omitempty"`
	// Percentage is for how many pods there is to be room, in percent of the replicas of scalableRef, rounded up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=false
	Percentage *int32 `json:"percentage,omitempty"`
	// Limits bound what the pods request together. Without replicas and percentage there is room for as many as fit.
	// +optional
	Limits Limits `json:"limits,omitempty"`
}

// Limits are amounts of resources.
type Limits corev1.ResourceList

// LocalObjectRef names an object in the same namespace.
type LocalObjectRef struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ScalableRef names a workload in the same namespace.
type ScalableRef struct {
	// APIGroup of the workload: apps, also if it is left out.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the workload: Deployment, StatefulSet or ReplicaSet.
	// +required
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// CapacityBufferStatus says what came of a buffer.
type CapacityBufferStatus struct {
	// PodTemplateRef is the PodTemplate that spec.podTemplateRef names, once it was found.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// Replicas is for how many pods there should be room, limits considered.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// PodTemplateGeneration is the generation of the PodTemplate that was read.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`
	// Conditions of the buffer: ReadyForProvisioning, Provisioning, LimitedByQuotas.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ProvisioningStrategy is how the room is kept.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
}
