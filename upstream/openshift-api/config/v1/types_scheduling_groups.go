package v1

// SchedulingGroupsSpec is what is added to SchedulerSpec: the field, with its gate, and the rule for the whole
// spec. It is embedded here, and would be written into SchedulerSpec there.
//
// A rule that names the field cannot stand in a definition without it, so the rule has the gate too.
type SchedulingGroupsSpec struct {
	// schedulingGroups say how groups of nodes are protected from pods that may not run there, and who may use them
	// beside those that the cluster's own configuration lists. When omitted, the cluster's own configuration decides,
	// which protects nothing until it is told to.
	//
	// +openshift:enable:FeatureGate=OpenShiftNodeSchedulingPolicy
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	SchedulingGroups []SchedulingGroup `json:"schedulingGroups,omitempty"`
}

// SchedulingGroup is a protected group of nodes, as the cluster's administrators see it.
type SchedulingGroup struct {
	// name is the group of the cluster's own configuration that this is about. ControlPlane is the only one: the nodes
	// of the control plane.
	// +required
	Name SchedulingGroupName `json:"name"`
	// mode says what happens to pods that may not use the nodes of the group: Enable refuses them, Inform lets them
	// pass with a warning, Disable does nothing. When omitted or empty, the cluster's own configuration decides. It
	// cannot be Enable while mastersSchedulable is true.
	// +optional
	Mode SchedulingGroupMode `json:"mode,omitempty"`
	// authorizedUsers may use the nodes of the group, beside those that the cluster's own configuration lists. A pod
	// gets there when whoever places it is authorized and the pod's namespace is. namespace:NAME is a namespace: its
	// pods may be placed. NAMESPACE/NAME and system:serviceaccount:NAMESPACE:NAME are a service account: it may place
	// pods, and the pods of its namespace may be placed. group:NAME is a group of users, user:NAME a user whose name
	// looks like one of these, and anything else the name of a user. What names a namespace may end in @ and the UID
	// of the namespace: it then authorizes nobody once another namespace has that name. There are no wildcards.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	AuthorizedUsers []string `json:"authorizedUsers,omitempty"`
}

// SchedulingGroupName names a group of nodes.
//
// +kubebuilder:validation:Enum=ControlPlane
type SchedulingGroupName string

// ControlPlaneGroup is the group of the control plane nodes.
const ControlPlaneGroup SchedulingGroupName = "ControlPlane"

// SchedulingGroupMode says how a group of nodes is protected. The empty mode is no opinion.
//
// +kubebuilder:validation:Enum="";Disable;Enable;Inform
type SchedulingGroupMode string

// The modes.
const (
	DisableGroup SchedulingGroupMode = "Disable"
	EnableGroup  SchedulingGroupMode = "Enable"
	InformGroup  SchedulingGroupMode = "Inform"
)
