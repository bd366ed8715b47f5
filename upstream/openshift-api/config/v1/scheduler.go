package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Scheduler is the kind that is there already, as far as it has to do with the field.
//
// +kubebuilder:resource:path=schedulers,scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type Scheduler struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the cluster's administrators decide.
	// +required
	Spec SchedulerSpec `json:"spec"`
	// status is empty.
	// +optional
	Status SchedulerStatus `json:"status,omitempty"`
}

// SchedulerList is a list of Schedulers.
type SchedulerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Scheduler `json:"items"`
}

// SchedulerSpec has the fields that are there and the one that is added.
//
// +openshift:validation:FeatureGateAwareXValidation:featureGate=OpenShiftNodeSchedulingPolicy,rule="!has(self.mastersSchedulable) || !self.mastersSchedulable || !has(self.schedulingGroups) || !self.schedulingGroups.exists(g, g.name == 'ControlPlane' && has(g.mode) && g.mode == 'Enable')",message="spec.mastersSchedulable is true, which opens the control plane nodes to all pods, and the mode of the scheduling group ControlPlane is Enable, which closes them: set mastersSchedulable to false, or the mode to Disable or Inform. One update may change both"
type SchedulerSpec struct {
	// policy names a ConfigMap.
	// +optional
	Policy *ConfigMapNameReference `json:"policy,omitempty"`
	// profile is the scheduling profile.
	// +optional
	// +kubebuilder:validation:Enum="";LowNodeUtilization;HighNodeUtilization;NoScoring
	Profile string `json:"profile,omitempty"`
	// defaultNodeSelector is put on pods of namespaces without a node selector of their own.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	DefaultNodeSelector string `json:"defaultNodeSelector,omitempty"`
	// mastersSchedulable opens the control plane nodes to all pods.
	// +optional
	// +default=false
	MastersSchedulable bool `json:"mastersSchedulable"`

	SchedulingGroupsSpec `json:",inline"`
}

// ConfigMapNameReference names a ConfigMap in the namespace openshift-config.
type ConfigMapNameReference struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SchedulerStatus is empty.
type SchedulerStatus struct{}
