package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SchedulerName is the name of the only Scheduler that counts (N8).
const SchedulerName = "cluster"

// Scheduler configures scheduling for the whole cluster. There is one, called cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=schedulers,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=ControlPlane,type=string,JSONPath=".spec.schedulingGroups[?(@.name=='ControlPlane')].mode",description="How the control plane nodes are protected, where that is set here"
// +kubebuilder:printcolumn:name=MastersSchedulable,type=boolean,JSONPath=".spec.mastersSchedulable",description="Whether control plane nodes are open to all pods"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the object was created"
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",messageExpression="'metadata.name is ' + self.metadata.name + ': there is one Scheduler, and it is called cluster'"
type Scheduler struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what the cluster's administrators decide.
	// +required
	Spec SchedulerSpec `json:"spec"`
	// Status is empty: a Scheduler only says what is wanted.
	// +optional
	Status SchedulerStatus `json:"status,omitempty"`
}

// SchedulerList is a list of Schedulers.
//
// +kubebuilder:object:root=true
type SchedulerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the Schedulers of the list.
	Items []Scheduler `json:"items"`
}

// SchedulerSpec says who may use the control plane nodes (N70, N71). Fields of OpenShift's Scheduler that have nothing
// to do with that are in the definition so that manifests keep them; nothing here reads them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mastersSchedulable) || !self.mastersSchedulable || !has(self.schedulingGroups) || !self.schedulingGroups.exists(g, g.name == 'ControlPlane' && has(g.mode) && g.mode == 'Enable')",message="spec.mastersSchedulable is true, which opens the control plane nodes to all pods, and the mode of the scheduling group ControlPlane is Enable, which closes them: set mastersSchedulable to false, or the mode to Disable or Inform. One update may change both"
type SchedulerSpec struct {
	// Policy names a ConfigMap with a policy of the scheduler. It is not read here.
	// +optional
	Policy *ConfigMapNameReference `json:"policy,omitempty"`
	// Profile is the scheduling profile of OpenShift's scheduler. It is not read here.
	// +optional
	// +kubebuilder:validation:Enum="";LowNodeUtilization;HighNodeUtilization;NoScoring
	Profile string `json:"profile,omitempty"`
	// DefaultNodeSelector is put on pods of namespaces that have no node selector of their own, for example
	// type=user-node,region=east. It is not read here.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	DefaultNodeSelector string `json:"defaultNodeSelector,omitempty"`
	// MastersSchedulable opens the control plane nodes to all pods: they have no taint then. It cannot be true while
	// the mode of the scheduling group ControlPlane is Enable.
	// +optional
	// +default=false
	MastersSchedulable bool `json:"mastersSchedulable"`
	// SchedulingGroups say how groups of nodes are protected, and who may use them beside those that the cluster's
	// own configuration lists.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	SchedulingGroups []SchedulingGroup `json:"schedulingGroups,omitempty"`
}

// ConfigMapNameReference names a ConfigMap in the namespace openshift-config.
type ConfigMapNameReference struct {
	// Name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SchedulingGroup is a protected group of nodes, as the cluster's administrators see it.
type SchedulingGroup struct {
	// Name is the group of the cluster's own configuration that this is about. ControlPlane is the only one: the
	// nodes of the control plane.
	// +required
	Name GroupName `json:"name"`
	// Mode says what happens to pods that may not use the nodes of the group: Enable refuses them, Inform lets them
	// pass with a warning, Disable does nothing. Unset or empty leaves it to the cluster's own configuration.
	// +optional
	Mode GroupMode `json:"mode,omitempty"`
	// AuthorizedUsers may use the nodes of the group, beside those that the cluster's own configuration lists. A pod
	// gets there when whoever places it is authorized and the pod's namespace is. NAMESPACE/NAME and
	// system:serviceaccount:NAMESPACE:NAME are a service account: it may place pods, and the pods of its namespace
	// may be placed. group:NAME is a group of users, user:NAME a user whose name looks like one of these, and
	// anything else the name of a user. There are no wildcards.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	AuthorizedUsers []string `json:"authorizedUsers,omitempty"`
}

// GroupName names a group of nodes.
//
// +kubebuilder:validation:Enum=ControlPlane
type GroupName string

// ControlPlane is the group of the control plane nodes.
const ControlPlane GroupName = "ControlPlane"

// GroupMode says how a group of nodes is protected. The empty mode is no opinion.
//
// +kubebuilder:validation:Enum="";Disable;Enable;Inform
type GroupMode string

const (
	// Disable protects nothing.
	Disable GroupMode = "Disable"
	// Enable refuses what may not use the nodes.
	Enable GroupMode = "Enable"
	// Inform lets everything pass and says what Enable would refuse.
	Inform GroupMode = "Inform"
)

// SchedulerStatus is empty.
type SchedulerStatus struct{}
