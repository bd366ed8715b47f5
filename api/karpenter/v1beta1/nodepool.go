package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// NodePool describes nodes that may be created for pods that find no room, and how these nodes may be
// disrupted again. Use v1 for new manifests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=NodeClass,type=string,JSONPath=".spec.template.spec.nodeClassRef.name",description="Name of the node class the pool uses"
// +kubebuilder:printcolumn:name=Weight,type=string,JSONPath=".spec.weight",priority=1,description="Pools of higher weight are tried first"
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says which nodes the pool may create and when it may disrupt them.
	// +required
	Spec NodePoolSpec `json:"spec"`
	// Status says what the controller observed.
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the NodePools of the list.
	Items []NodePool `json:"items"`
}

// NodePoolSpec says which nodes a pool may create and when it may disrupt them.
type NodePoolSpec struct {
	// Template is what every NodeClaim of this pool is made from.
	// +required
	Template NodeClaimTemplate `json:"template"`
	// Disruption says when and how fast nodes of this pool may be removed or replaced.
	// +optional
	// +kubebuilder:default={consolidationPolicy: WhenUnderutilized, expireAfter: "720h"}
	Disruption Disruption `json:"disruption,omitzero"`
	// Limits are limits on the sum of the capacity of all nodes of this pool, by resource, for example
	// cpu and memory.
	// +optional
	Limits karpenterv1.Limits `json:"limits,omitempty"`
	// Weight decides between pools that could all hold a pod: the pool with the highest weight is
	// tried first. A pool without weight counts as 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
}

// NodeClaimTemplate is what the NodeClaims of a pool are made from.
type NodeClaimTemplate struct {
	// ObjectMeta holds labels and annotations for the NodeClaims and nodes of the pool.
	// +optional
	ObjectMeta karpenterv1.ObjectMeta `json:"metadata,omitzero"`
	// Spec holds the fields that NodeClaims of the pool get.
	// +required
	Spec NodeClaimSpec `json:"spec"`
}

// Disruption says when and how fast nodes of a pool may be removed or replaced.
//
// +kubebuilder:validation:XValidation:rule="!has(self.consolidateAfter) || !has(self.consolidationPolicy) || self.consolidationPolicy != 'WhenUnderutilized' || self.consolidateAfter == 'Never'",messageExpression="'consolidateAfter is ' + self.consolidateAfter + ': with consolidationPolicy WhenUnderutilized it must be left out or be Never; v1 allows both together'"
// +kubebuilder:validation:XValidation:rule="!has(self.consolidationPolicy) || self.consolidationPolicy != 'WhenEmpty' || has(self.consolidateAfter)",message="consolidateAfter is missing: consolidationPolicy WhenEmpty needs it, for example 30s"
type Disruption struct {
	// ConsolidateAfter is how long a node must have been empty before it is removed, with the policy
	// WhenEmpty: whole numbers with the units s, m and h, for example 30s, or Never. With the policy
	// WhenUnderutilized only Never may be given, which turns consolidation off.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(([0-9]+[smh])+|Never)$`
	ConsolidateAfter *karpenterv1.NillableDuration `json:"consolidateAfter,omitempty"`
	// ConsolidationPolicy says which nodes are considered for consolidation. WhenEmpty: those that hold
	// only pods of daemon sets. WhenUnderutilized: also those whose pods fit elsewhere or on a cheaper
	// node.
	// +optional
	// +kubebuilder:default=WhenUnderutilized
	// +kubebuilder:validation:Enum=WhenEmpty;WhenUnderutilized
	ConsolidationPolicy string `json:"consolidationPolicy,omitempty"`
	// ExpireAfter is how long a node of the pool lives before it is removed: whole numbers with the units
	// s, m, h and d, for example 720h, or Never. In v1 it stands in spec.template.spec.
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+[smhd])+|Never)$`
	ExpireAfter *karpenterv1.NillableDuration `json:"expireAfter,omitempty"`
	// Budgets bound how many nodes of the pool may be disrupted at the same time. Of several active
	// budgets the smallest holds.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	Budgets []Budget `json:"budgets,omitzero"`
}

// The consolidation policies.
const (
	ConsolidationPolicyWhenEmpty         = "WhenEmpty"
	ConsolidationPolicyWhenUnderutilized = "WhenUnderutilized"
)

// Budget bounds how many nodes of a pool may be disrupted at the same time, for whatever reason.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration belong together: give both, or neither for a budget that is always active"
type Budget struct {
	// Nodes is how many nodes may be disrupted at the same time while the budget is active: a number in
	// quotes such as "5", or a share of the pool's nodes such as 10%, rounded up. "0" forbids disruption.
	// +optional
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]{1,9})$`
	Nodes string `json:"nodes,omitempty"`
	// Schedule is when the budget becomes active, in UTC: five fields as in cron (minute, hour, day of
	// month, month, day of week), or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
	// Without it, and without duration, the budget is always active.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\s*(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*?,/-]+(\s+[0-9A-Za-z*?,/-]+){4})\s*$`
	Schedule *string `json:"schedule,omitempty"`
	// Duration is how long the budget stays active after each time of the schedule: whole numbers with
	// the units m and h, for example 8h or 1h30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+[mh])+(0s)?$`
	Duration *karpenterv1.Duration `json:"duration,omitempty"`
}

// NodePoolStatus says what the controller observed about a pool.
type NodePoolStatus struct {
	// Conditions are the latest observations about the pool.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Resources is the sum of the capacity of all nodes of the pool.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}
