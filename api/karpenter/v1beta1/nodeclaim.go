package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// NodeClaim is a request for one node. Use v1 for new manifests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type",description="Instance type"
// +kubebuilder:printcolumn:name=Zone,type=string,JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone",description="Zone of the instance"
// +kubebuilder:printcolumn:name=Node,type=string,JSONPath=".status.nodeName",description="Name of the node"
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the node is launched, registered and initialized"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the claim was created"
// +kubebuilder:printcolumn:name=Capacity,type=string,JSONPath=".metadata.labels.karpenter\\.sh/capacity-type",priority=1,description="Capacity type: on-demand, spot or reserved"
// +kubebuilder:printcolumn:name=NodePool,type=string,JSONPath=".metadata.labels.karpenter\\.sh/nodepool",priority=1,description="Pool the claim belongs to"
// +kubebuilder:printcolumn:name=NodeClass,type=string,JSONPath=".spec.nodeClassRef.name",priority=1,description="Name of the node class"
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

// NodeClaimSpec says what node is asked for. It is also what a pool may set for its NodeClaims.
type NodeClaimSpec struct {
	// Taints are put on the node; only pods that tolerate them are placed there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints are on the node when it joins and are taken off by someone else, such as a daemon
	// that prepares the node. Pods need not tolerate them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements narrow down which instance types, zones, architectures and so on may be used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Requirements []karpenterv1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	// Resources are what the node has to offer at least. In the template of a NodePool they do nothing,
	// and v1 has no such field there.
	// +optional
	Resources karpenterv1.ResourceRequirements `json:"resources,omitzero"`
	// Kubelet are settings of the kubelet. In v1 they stand in the EC2NodeClass; the block of an object
	// that was written here is kept in an annotation of the v1 object and still obeyed.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// NodeClassRef points to the object that holds the cloud provider's settings.
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
}

// NodeClassReference points to the object that holds the cloud provider's settings.
//
// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) && size(self.apiVersion) > 0 || !has(self.kind) || size(self.kind) == 0 || self.kind in ['EC2NodeClass', 'KWOKNodeClass', 'AKSNodeClass']",messageExpression="'nodeClassRef.apiVersion is missing and the group of the kind ' + self.kind + ' is not known: give apiVersion, for example karpenter.k8s.aws/v1beta1'"
// +kubebuilder:validation:XValidation:rule="has(self.kind) && size(self.kind) > 0 || !has(self.apiVersion) || size(self.apiVersion) == 0 || self.apiVersion.split('/')[0] in ['karpenter.k8s.aws', 'karpenter.kwok.sh', 'karpenter.azure.com']",messageExpression="'nodeClassRef.kind is missing and the kind of the group in ' + self.apiVersion + ' is not known: give kind, for example EC2NodeClass'"
type NodeClassReference struct {
	// Kind is the kind of the node class. Without it, the kind that the group of apiVersion has, or
	// EC2NodeClass.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// Name is the name of the node class.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != ''",message="nodeClassRef.name must not be empty: give the name of the node class"
	Name string `json:"name"`
	// APIVersion is the group and version of the node class, for example karpenter.k8s.aws/v1beta1.
	// Without it, the group that the kind has. In v1 only the group is left.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[^/]+/[^/]+$')",messageExpression="'nodeClassRef.apiVersion is ' + self + ': give group and version, for example karpenter.k8s.aws/v1beta1'"
	APIVersion string `json:"apiVersion,omitempty"`
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
}

// Condition is one observation about an object. v1 has no severity.
type Condition struct {
	// Type names what is observed, for example Ready.
	// +required
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`
	// Status says whether the observation holds: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`
	// Severity says how grave a condition is that does not hold: empty for an error, Warning or Info.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Severity string `json:"severity,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Reason is one word, in CamelCase, for programs to act on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Message explains the status to people.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}
