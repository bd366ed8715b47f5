package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// KWOKNodeClass holds the settings of the provider that only pretends to launch nodes. It is for
// tests and trials.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=kwoknodeclasses,scope=Cluster,shortName={kwoknc,kwokncs},categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether NodePools may use the node class"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the node class was created"
type KWOKNodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec holds the settings of the pretended nodes.
	// +optional
	Spec KWOKNodeClassSpec `json:"spec,omitempty"`
	// Status says whether NodePools may use the node class. There is nothing that could be missing, so
	// it is ready from the start.
	// +optional
	// +kubebuilder:default={conditions: {{type: "Ready", status: "True", lastTransitionTime: "2024-01-01T01:01:01Z", reason: "Ready", message: ""}}}
	Status KWOKNodeClassStatus `json:"status,omitzero"`
}

// KWOKNodeClassList is a list of KWOKNodeClasses.
//
// +kubebuilder:object:root=true
type KWOKNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the KWOKNodeClasses of the list.
	Items []KWOKNodeClass `json:"items"`
}

// KWOKNodeClassSpec holds the settings of the pretended nodes.
type KWOKNodeClassSpec struct {
	// NodeRegistrationDelay is how long after the launch a node appears in the cluster: whole numbers
	// with the units s, m and h, for example 30s. Without it the node appears at once.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+[smh])+$`
	NodeRegistrationDelay *v1.Duration `json:"nodeRegistrationDelay,omitempty"`
}

// KWOKNodeClassStatus says whether NodePools may use the node class.
type KWOKNodeClassStatus struct {
	// Conditions are the latest observations about the node class.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []v1.Condition `json:"conditions,omitempty"`
}
