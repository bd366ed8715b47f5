package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
)

// OpenshiftEC2NodeClass holds what users of a hosted cluster may set for the nodes of EC2. An EC2NodeClass of
// the same name is made from it, with the machine image, the identity and the root volume of the provider.
//
// +kubebuilder:object:root=true
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
	Spec hypershiftv1.OpenshiftEC2NodeClassSpec `json:"spec"`
	// Status says what became of the node class.
	// +optional
	Status hypershiftv1.OpenshiftEC2NodeClassStatus `json:"status,omitzero"`
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
