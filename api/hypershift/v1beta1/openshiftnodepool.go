package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// OpenshiftNodePool describes nodes that may be created for pods that find no room in a hosted cluster. A
// NodePool of the same name is made from it, with the requirements of the provider's policy put before its
// own.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftnodepools,scope=Cluster,shortName={onp,onps},categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
// +kubebuilder:printcolumn:name=NodeClass,type=string,JSONPath=".spec.template.spec.nodeClassRef.name",description="Name of the node class the pool uses"
// +kubebuilder:printcolumn:name=Nodes,type=integer,JSONPath=".status.nodes",description="Number of nodes of the pool"
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the pool may launch nodes"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the pool was created"
// +kubebuilder:printcolumn:name=Compatible,type=string,JSONPath=".status.conditions[?(@.type=='RequirementsCompatible')].status",priority=1,description="Whether the provider's policy leaves instance types that the pool can use"
// +kubebuilder:printcolumn:name=Policy,type=string,JSONPath=".status.conditions[?(@.type=='PolicyApplied')].status",priority=1,description="Whether the provider's policy is applied"
// +kubebuilder:printcolumn:name=Weight,type=integer,JSONPath=".spec.weight",priority=1,description="Pools of higher weight are tried first"
// +kubebuilder:printcolumn:name=CPU,type=string,JSONPath=".status.resources.cpu",priority=1,description="CPU capacity of all nodes of the pool"
// +kubebuilder:printcolumn:name=Memory,type=string,JSONPath=".status.resources.memory",priority=1,description="Memory capacity of all nodes of the pool"
type OpenshiftNodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says which nodes the pool may create and when it may disrupt them.
	// +required
	Spec OpenshiftNodePoolSpec `json:"spec"`
	// Status says what was observed about the pool and the NodePool made from it.
	// +optional
	// +kubebuilder:default={}
	Status OpenshiftNodePoolStatus `json:"status,omitempty"`
}

// OpenshiftNodePoolList is a list of OpenshiftNodePools.
//
// +kubebuilder:object:root=true
type OpenshiftNodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the OpenshiftNodePools of the list.
	Items []OpenshiftNodePool `json:"items"`
}

// OpenshiftNodePoolSpec says which nodes a pool may create and when it may disrupt them. Its fields are those
// of a NodePool; only nodeClassRef and requirements may be left out.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="spec.replicas cannot be added or removed after creation: a pool is static or dynamic for life; create another OpenshiftNodePool"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="spec.weight cannot be set together with spec.replicas: a static pool is not chosen for pods"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.limits) || self.limits.size() == 0 || (self.limits.size() == 1 && 'nodes' in self.limits)",message="spec.limits of a pool with spec.replicas accepts only the key nodes"
type OpenshiftNodePoolSpec struct {
	// Template is what every NodeClaim of this pool is made from. Nodes made from an older template drift and
	// are replaced.
	// +required
	Template OpenshiftNodeClaimTemplate `json:"template"`
	// Disruption says when and how fast nodes of this pool may be removed or replaced.
	// +optional
	// +kubebuilder:default={}
	Disruption karpenterv1.Disruption `json:"disruption,omitempty"`
	// Limits are soft limits on the sum of the capacity of all nodes of this pool, by resource: cpu, memory, any
	// other resource, and nodes for the number of nodes. At a limit no further node is launched for pods, but a
	// node may be replaced, which goes above the limit for that time.
	// +optional
	Limits karpenterv1.Limits `json:"limits,omitempty"`
	// HardLimits are limits that are never passed, not even while a node is being replaced. Only the key nodes
	// is accepted, a whole number that is not negative; 0 freezes the pool. If nodes stands in limits too, the
	// hard limit wins.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k == 'nodes')",messageExpression="'spec.hardLimits accepts only the key nodes, found ' + self.filter(k, k != 'nodes')[0]"
	// +kubebuilder:validation:XValidation:rule="!('nodes' in self) || (type(self['nodes']) == int ? self['nodes'] >= 0 : isQuantity(self['nodes']) && quantity(self['nodes']).isInteger() && quantity(self['nodes']).asInteger() >= 0)",messageExpression="'spec.hardLimits.nodes is ' + string(self['nodes']) + ': it must be a whole number that is not negative'"
	HardLimits karpenterv1.Limits `json:"hardLimits,omitempty"`
	// Weight decides between pools that could all hold a pod: the pool with the highest weight is tried first. A
	// pool without weight counts as 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
	// Replicas makes the pool static: it keeps this many nodes, whether pods need them or not. It cannot be added
	// to or removed from an existing pool, and excludes weight and every limit but nodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int64 `json:"replicas,omitempty"`
}

// OpenshiftNodeClaimTemplate is what the NodeClaims of a pool are made from.
type OpenshiftNodeClaimTemplate struct {
	// ObjectMeta holds labels and annotations for the NodeClaims and nodes of the pool.
	// +optional
	ObjectMeta karpenterv1.ObjectMeta `json:"metadata,omitzero"`
	// Spec holds the fields that NodeClaims of the pool get.
	// +required
	Spec OpenshiftNodeClaimTemplateSpec `json:"spec"`
}

// OpenshiftNodeClaimTemplateSpec holds the fields of a NodeClaim that a pool may set.
type OpenshiftNodeClaimTemplateSpec struct {
	// Taints are put on every node of the pool; only pods that tolerate them are placed there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints are on every node of the pool when it joins and are taken off by someone else, such as a
	// daemon that prepares the node. Pods need not tolerate them; the node counts as initialized when they are
	// gone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements narrow down which instance types, zones, architectures and so on the pool may use, within
	// what the provider's policy allows. Without any, the pool may use all that the policy allows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.key != 'karpenter.sh/nodepool')",message="requirement key karpenter.sh/nodepool is restricted: the controller sets it to the name of the pool"
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.key != 'karpenter.kwok.sh/kwoknodeclass')",message="requirement key karpenter.kwok.sh/kwoknodeclass is restricted: of the domain karpenter.kwok.sh only instance-size, instance-family, instance-cpu and instance-memory may be required"
	Requirements []karpenterv1.NodeSelectorRequirementWithMinValues `json:"requirements,omitzero"`
	// NodeClassRef points to the object that holds the cloud provider's settings for the nodes of this pool: an
	// EC2NodeClass, or the OpenshiftEC2NodeClass it is made from. Without it, it is the EC2NodeClass named
	// default. Its group and kind cannot be changed. A KWOKNodeClass is for clusters of simulated nodes; elsewhere
	// the pool says that it may not be used.
	// +optional
	// +kubebuilder:default={group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",messageExpression="'nodeClassRef.group cannot be changed from ' + oldSelf.group + ' to ' + self.group + ': create another OpenshiftNodePool'"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",messageExpression="'nodeClassRef.kind cannot be changed from ' + oldSelf.kind + ' to ' + self.kind + ': create another OpenshiftNodePool'"
	// +kubebuilder:validation:XValidation:rule="(self.group == 'karpenter.k8s.aws' && self.kind == 'EC2NodeClass') || (self.group == 'karpenter.hypershift.openshift.io' && self.kind == 'OpenshiftEC2NodeClass') || (self.group == 'karpenter.kwok.sh' && self.kind == 'KWOKNodeClass')",messageExpression="'nodeClassRef has group ' + self.group + ' and kind ' + self.kind + ': it must be karpenter.k8s.aws and EC2NodeClass, karpenter.hypershift.openshift.io and OpenshiftEC2NodeClass, or for simulated nodes karpenter.kwok.sh and KWOKNodeClass'"
	NodeClassRef *karpenterv1.NodeClassReference `json:"nodeClassRef,omitempty"`
	// TerminationGracePeriod is how long a node of the pool may drain before its remaining pods are deleted,
	// whatever protects them: whole numbers with the units s, m, h and d, for example 1h30m. Without it, draining
	// waits as long as it takes.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+[smhd])+$`
	TerminationGracePeriod *karpenterv1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is how long a node of the pool lives before it is drained and removed: whole numbers with the
	// units s, m, h and d, for example 720h or 30d, or Never.
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+[smhd])+|Never)$`
	ExpireAfter karpenterv1.NillableDuration `json:"expireAfter,omitempty"`
}

// OpenshiftNodePoolStatus says what was observed about a pool and the NodePool made from it.
type OpenshiftNodePoolStatus struct {
	// Conditions are the latest observations: those of the NodePool, and about the policy of the provider.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []karpenterv1.Condition `json:"conditions,omitempty"`
	// ObservedPolicy is the state of the policy that the condition PolicyApplied speaks of. It is absent when
	// there was no policy.
	// +optional
	ObservedPolicy *hypershiftv1.ObservedPolicy `json:"observedPolicy,omitempty"`
	// Resources is the sum of the capacity of all nodes of the pool. The key nodes holds their number.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is the number of nodes of the pool.
	// +optional
	// +kubebuilder:default=0
	Nodes *int64 `json:"nodes,omitempty"`
}
