package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool describes nodes that may be created for pods that find no room, and how these nodes may be
// disrupted again.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
// +kubebuilder:printcolumn:name=NodeClass,type=string,JSONPath=".spec.template.spec.nodeClassRef.name",description="Name of the node class the pool uses"
// +kubebuilder:printcolumn:name=Nodes,type=integer,JSONPath=".status.nodes",description="Number of nodes of the pool"
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the pool may launch nodes"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the pool was created"
// +kubebuilder:printcolumn:name=Weight,type=integer,JSONPath=".spec.weight",priority=1,description="Pools of higher weight are tried first"
// +kubebuilder:printcolumn:name=CPU,type=string,JSONPath=".status.resources.cpu",priority=1,description="CPU capacity of all nodes of the pool"
// +kubebuilder:printcolumn:name=Memory,type=string,JSONPath=".status.resources.memory",priority=1,description="Memory capacity of all nodes of the pool"
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says which nodes the pool may create and when it may disrupt them.
	// +required
	Spec NodePoolSpec `json:"spec"`
	// Status says what the controller observed.
	// +optional
	// +kubebuilder:default={}
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
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="spec.replicas cannot be added or removed after creation: a pool is static or dynamic for life; create another NodePool"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="spec.weight cannot be set together with spec.replicas: a static pool is not chosen for pods"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.limits) || self.limits.size() == 0 || (self.limits.size() == 1 && 'nodes' in self.limits)",message="spec.limits of a pool with spec.replicas accepts only the key nodes"
type NodePoolSpec struct {
	// Template is what every NodeClaim of this pool is made from. Nodes made from an older template
	// drift and are replaced.
	// +required
	Template NodeClaimTemplate `json:"template"`
	// Disruption says when and how fast nodes of this pool may be removed or replaced.
	// +optional
	// +kubebuilder:default={}
	Disruption Disruption `json:"disruption,omitempty"`
	// Limits are soft limits on the sum of the capacity of all nodes of this pool, by resource: cpu,
	// memory, any other resource, and nodes for the number of nodes. At a limit no further node is
	// launched for pods, but a node may be replaced, which goes above the limit for that time.
	// +optional
	Limits Limits `json:"limits,omitempty"`
	// HardLimits are limits that are never passed, not even while a node is being replaced. Only the
	// key nodes is accepted, a whole number that is not negative; 0 freezes the pool. If nodes stands
	// in limits too, the hard limit wins.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k == 'nodes')",messageExpression="'spec.hardLimits accepts only the key nodes, found ' + self.filter(k, k != 'nodes')[0]"
	// +kubebuilder:validation:XValidation:rule="!('nodes' in self) || (type(self['nodes']) == int ? self['nodes'] >= 0 : isQuantity(self['nodes']) && quantity(self['nodes']).isInteger() && quantity(self['nodes']).asInteger() >= 0)",messageExpression="'spec.hardLimits.nodes is ' + string(self['nodes']) + ': it must be a whole number that is not negative'"
	HardLimits Limits `json:"hardLimits,omitempty"`
	// Weight decides between pools that could all hold a pod: the pool with the highest weight is
	// tried first. A pool without weight counts as 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
	// Replicas makes the pool static: it keeps this many nodes, whether pods need them or not. It
	// cannot be added to or removed from an existing pool, and excludes weight and every limit but
	// nodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int64 `json:"replicas,omitempty"`
}

// Limits maps a resource name to the most a NodePool may have of it. The name nodes stands for the
// number of nodes.
type Limits corev1.ResourceList

// NodePoolStatus says what the controller observed about a pool.
type NodePoolStatus struct {
	// Conditions are the latest observations about the pool.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Resources is the sum of the capacity of all nodes of the pool. The key nodes holds their number.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is the number of nodes of the pool.
	// +optional
	// +kubebuilder:default=0
	Nodes *int64 `json:"nodes,omitempty"`
	// Disruption says what the budgets of the pool allow now.
	// +optional
	Disruption *DisruptionStatus `json:"disruption,omitempty"`
	// NodeClassObservedGeneration is the generation of the node class when the health of node
	// registration was last judged.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
}
