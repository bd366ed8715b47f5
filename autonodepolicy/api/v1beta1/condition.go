package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition is one observation about an object. It is the condition of Kubernetes with fewer
// required fields: only type, status and lastTransitionTime.
type Condition struct {
	// Type names what is observed, for example Ready.
	// +required
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`
	// Status says whether the observation holds: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`
	// ObservedGeneration is the metadata.generation the observation was made for. If it is lower than
	// the current one, the condition is out of date.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Reason is one word, in CamelCase, for programs to act on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Message explains the status to people.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}
