package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// NodeSchedulingGroup says how a group of nodes is protected, and who may use them beside those that the cluster's
// own configuration lists. It counts only where the cluster's Scheduler (config.openshift.io/v1) has no field
// schedulingGroups.
//
// Names of objects are small letters, so the object is called as its group in small letters: there is one for each
// group.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeschedulinggroups,scope=Cluster
// +kubebuilder:printcolumn:name=Group,type=string,JSONPath=".spec.name",description="The group of nodes"
// +kubebuilder:printcolumn:name=Mode,type=string,JSONPath=".spec.mode",description="How the nodes are protected, where that is set here"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the object was created"
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.name.lowerAscii()",messageExpression="'metadata.name is ' + self.metadata.name + ': there is one object for each group, so that of ' + self.spec.name + ' is called ' + self.spec.name.lowerAscii()"
type NodeSchedulingGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what the cluster's administrators decide: the same fields as an entry of schedulingGroups of Scheduler
	// has.
	// +required
	Spec NodeSchedulingGroupSpec `json:"spec"`
}

// NodeSchedulingGroupSpec is a protected group of nodes, as the cluster's administrators see it.
//
// +kubebuilder:validation:XValidation:rule="self.name == 'ControlPlane'",messageExpression="'spec.name is ' + self.name + ': it must be ControlPlane, the nodes of the control plane'"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || size(self.mode) == 0 || self.mode in ['Disable', 'Enable', 'Inform']",messageExpression="'spec.mode is ' + self.mode + ': it must be Disable, Enable or Inform, or be left out'"
type NodeSchedulingGroupSpec struct {
	// Name is the group of the cluster's own configuration that this is about. ControlPlane is the only one: the
	// nodes of the control plane.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Mode says what happens to pods that may not use the nodes of the group: Enable refuses them, Inform lets them
	// pass with a warning, Disable does nothing. Unset or empty leaves it to the cluster's own configuration. It
	// cannot become Enable while mastersSchedulable of Scheduler is true.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Mode string `json:"mode,omitempty"`
	// AuthorizedUsers may use the nodes of the group, beside those that the cluster's own configuration lists. A pod
	// gets there when whoever places it is authorized and the pod's namespace is. namespace:NAME is a namespace: its
	// pods may be placed. NAMESPACE/NAME and system:serviceaccount:NAMESPACE:NAME are a service account: it may place
	// pods, and the pods of its namespace may be placed. group:NAME is a group of users, user:NAME a user whose name
	// looks like one of these, and anything else the name of a user. What names a namespace may end in @ and its UID.
	// There are no wildcards.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	AuthorizedUsers []string `json:"authorizedUsers,omitempty"`
}

// Entry is what the spec says, as an entry of schedulingGroups of Scheduler says it.
func (s NodeSchedulingGroupSpec) Entry() configv1.SchedulingGroup {
	return configv1.SchedulingGroup{Name: configv1.GroupName(s.Name), Mode: configv1.GroupMode(s.Mode),
		AuthorizedUsers: s.AuthorizedUsers}
}

// NodeSchedulingGroupList is a list of NodeSchedulingGroups.
//
// +kubebuilder:object:root=true
type NodeSchedulingGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the NodeSchedulingGroups of the list.
	Items []NodeSchedulingGroup `json:"items"`
}

// NameOf is what the object of a group is called.
func NameOf(group configv1.GroupName) string { return strings.ToLower(string(group)) }
