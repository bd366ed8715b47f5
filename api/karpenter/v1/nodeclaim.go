package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim is a request for one node. Most are made by a NodePool; one made by hand is launched and
// looked after in the same way.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type",description="Instance type"
// +kubebuilder:printcolumn:name=Capacity,type=string,JSONPath=".metadata.labels.karpenter\\.sh/capacity-type",description="Capacity type: on-demand, spot or reserved"
// +kubebuilder:printcolumn:name=Zone,type=string,JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone",description="Zone of the instance"
// +kubebuilder:printcolumn:name=Node,type=string,JSONPath=".status.nodeName",description="Name of the node"
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the node is launched, registered and initialized"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the claim was created"
// +kubebuilder:printcolumn:name=ID,type=string,JSONPath=".status.providerID",priority=1,description="The cloud provider's identifier of the instance"
// +kubebuilder:printcolumn:name=NodePool,type=string,JSONPath=".metadata.labels.karpenter\\.sh/nodepool",priority=1,description="Pool the claim belongs to"
// +kubebuilder:printcolumn:name=NodeClass,type=string,JSONPath=".spec.nodeClassRef.name",priority=1,description="Name of the node class"
// +kubebuilder:printcolumn:name=ImageID,type=string,JSONPath=".status.imageID",priority=1,description="Machine image of the instance"
// +kubebuilder:printcolumn:name=Drifted,type=string,JSONPath=".status.conditions[?(@.type=='Drifted')].status",priority=1,description="Whether the node no longer matches its pool"
type NodeClaim struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec says what node is asked for. It cannot be changed after creation.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec of a NodeClaim cannot be changed after creation: delete the NodeClaim and let its NodePool, or yourself, create another"
	Spec NodeClaimSpec `json:"spec"`
	// Status says what became of the request.
	// +optional
	Status NodeClaimStatus `json:"status,omitempty"`
}

// NodeClaimList is a list of NodeClaims.
//
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the NodeClaims of the list.
	Items []NodeClaim `json:"items"`
}

// NodeClaimSpec says what node is asked for.
type NodeClaimSpec struct {
	// Taints are put on the node; only pods that tolerate them are placed there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints are on the node when it joins and are taken off by someone else, such as a daemon
	// that prepares the node. Pods need not tolerate them; the node counts as initialized when they
	// are gone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements narrow down which instance types, zones, architectures and so on may be used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Requirements []NodeSelectorRequirementWithMinValues `json:"requirements"`
	// Resources are what the node has to offer at least.
	// +optional
	Resources ResourceRequirements `json:"resources,omitzero"`
	// NodeClassRef points to the object that holds the cloud provider's settings for the node.
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is how long the node may drain before its remaining pods are deleted,
	// whatever protects them: whole numbers with the units s, m, h and d, for example 1h30m. Without
	// it, draining waits as long as it takes.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+[smhd])+$`
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is how long the node lives before it is drained and removed: whole numbers with the
	// units s, m, h and d, for example 720h or 30d, or Never.
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+[smhd])+|Never)$`
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ResourceRequirements says what a node has to offer at least.
type ResourceRequirements struct {
	// Requests are amounts by resource, for example cpu and memory. The node counts as initialized
	// when it offers all of them.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// NodeClaimStatus says what became of a request for a node.
type NodeClaimStatus struct {
	// NodeName is the name of the node, once it has joined.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID is the cloud provider's identifier of the instance, as in the node's spec.providerID.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID is the machine image the instance was started from.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is all the node has, by resource.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is what the node has for pods, by resource.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions are the latest observations about the claim and its node.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// LastPodEventTime is when a pod last came to the node or left it.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitzero"`
}
