package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

const (
	// Group is the API group of the configuration.
	Group = "scheduling.openshift.io"
	// Version is the version of the configuration.
	Version = "v1alpha1"
	// VersionAlias is how the design spells the version in its sample. It is accepted too (H2).
	VersionAlias = "alphav1"
	// Kind is the kind of the configuration.
	Kind = "NodeSchedulingPolicyConfig"
)

// NodeSchedulingPolicyConfig configures the protection of groups of nodes.
type NodeSchedulingPolicyConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Groups are the protected groups of nodes. Names differ.
	Groups []SchedulingPolicyGroup `json:"groups"`
	// Authorization says who is authorized beside those on the lists. Unset is Lists.
	// +optional
	Authorization Authorization `json:"authorization,omitempty"`
	// EmergencyOverride lets administrators place single pods of any namespace, with a reason, by an annotation on the
	// pod, which they write or, with Automatic, the policy. Unset is Disable.
	// +optional
	EmergencyOverride EmergencyOverride `json:"emergencyOverride,omitempty"`
	// EntryPins says whether entries that name a namespace must have its UID. Unset is Warn.
	// +optional
	EntryPins EntryPins `json:"entryPins,omitempty"`
}

// SchedulingPolicyGroup is a protected group of nodes.
type SchedulingPolicyGroup struct {
	// Name is the group's name. Administrators extend the group ControlPlane through Scheduler; any other name is a
	// group that only this file decides about.
	Name configv1.GroupName `json:"name"`
	// LabelSelector chooses the nodes. It cannot be empty, which would be every node.
	LabelSelector metav1.LabelSelector `json:"labelSelector"`
	// Taints choose nodes too: one that has any of them is of the group, with the labels or without. A node may be
	// registered with its taint before somebody else gives it its labels.
	// +optional
	Taints []GroupTaint `json:"taints,omitempty"`
	// Mode says what happens to pods that may not use the nodes of the group, unless Scheduler says it: Enable,
	// Inform or Disable. Unset is Disable.
	// +optional
	Mode configv1.GroupMode `json:"mode,omitempty"`
	// AuthorizedUsers may use the nodes of the group. For the spelling see SchedulingGroup in api/config/v1.
	AuthorizedUsers []string `json:"authorizedUsers"`
}

// GroupTaint is a taint that nodes of a group have. Its value does not matter.
type GroupTaint struct {
	// Key is the key of the taint, such as node-role.kubernetes.io/control-plane. It is none that states a node's
	// condition.
	Key string `json:"key"`
	// Effect is NoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect"`
}

// EntryPins says what becomes of an entry that names a namespace without its UID, where everybody who may create
// namespaces may have one of that name: not of names that begin with openshift- or kube-.
type EntryPins string

const (
	// PinsWarn takes it, and says so in the log, a metric and the audit.
	PinsWarn EntryPins = "Warn"
	// PinsRequire refuses it.
	PinsRequire EntryPins = "Require"
)

// Authorization says who decides beside the lists.
type Authorization string

const (
	// Lists leaves it at the lists.
	Lists Authorization = "Lists"
	// ListsAndRBAC also asks the cluster's authorizer: for the verb assign, whether a user may place pods on the
	// nodes of a group, and for the verb occupy, whether the pods of a namespace may be placed there.
	ListsAndRBAC Authorization = "ListsAndRBAC"
)

// EmergencyOverride says whether the annotation scheduling.openshift.io/emergency-override means something.
type EmergencyOverride string

const (
	// OverrideDisable ignores the annotation.
	OverrideDisable EmergencyOverride = "Disable"
	// OverrideEnable honours it.
	OverrideEnable EmergencyOverride = "Enable"
	// OverrideAutomatic honours it, and writes it on pods that administrators create without it, such as those of oc
	// debug and oc adm must-gather.
	OverrideAutomatic EmergencyOverride = "Automatic"
)
