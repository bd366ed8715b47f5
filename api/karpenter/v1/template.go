package v1

import corev1 "k8s.io/api/core/v1"

// NodeClaimTemplate is what the NodeClaims of a pool are made from.
type NodeClaimTemplate struct {
	// ObjectMeta holds labels and annotations for the NodeClaims and nodes of the pool.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitzero"`
	// Spec holds the fields that NodeClaims of the pool get.
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// ObjectMeta is the part of an object's metadata that a template may set.
type ObjectMeta struct {
	// Labels are put on every NodeClaim and node of the pool. Labels of the domain karpenter.sh are
	// set by the controller; only karpenter.sh/capacity-type may be given here.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",messageExpression="'label \"' + self.filter(k, !k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))[0] + '\" is no label name: use letters, digits, \"-\", \"_\" and \".\", beginning and ending with a letter or digit, with an optional lower-case DNS prefix and a slash before it'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 63 || (k.contains('/') && k.indexOf('/') <= 253 && k.size() - k.indexOf('/') <= 64))",message="a label is too long: at most 63 characters, and 253 for the prefix before the slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !k.contains('/') || !k.split('/')[0].endsWith('karpenter.sh'))",messageExpression="'label ' + self.filter(k, !(k in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool']) && k.contains('/') && k.split('/')[0].endsWith('karpenter.sh'))[0] + ' is restricted: of the domain karpenter.sh only karpenter.sh/capacity-type may be set'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['karpenter.kwok.sh/instance-size', 'karpenter.kwok.sh/instance-family', 'karpenter.kwok.sh/instance-cpu', 'karpenter.kwok.sh/instance-memory'] || !k.contains('/') || !k.split('/')[0].endsWith('karpenter.kwok.sh'))",message="a label is restricted: of the domain karpenter.kwok.sh only instance-size, instance-family, instance-cpu and instance-memory may be set"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^karpenter[.]k8s[.]aws/(ec2nodeclass|instance-(category|family|generation|size|cpu|cpu-manufacturer|cpu-sustained-clock-speed-mhz|memory|hypervisor|encryption-in-transit-supported|local-nvme|ebs-bandwidth|network-bandwidth|gpu-name|gpu-manufacturer|gpu-count|gpu-memory|accelerator-name|accelerator-manufacturer|accelerator-count|capability-flex|tenancy)|capacity-reservation-(id|type|interruptible)|placement-group-(id|partition))$') || !k.contains('/') || !k.split('/')[0].endsWith('karpenter.k8s.aws'))",message="a label is restricted: of the domain karpenter.k8s.aws only the labels that describe an instance may be set, such as instance-family"
	// +kubebuilder:validation:XValidation:rule="!('karpenter.sh/nodepool' in self)",message="label karpenter.sh/nodepool is restricted: the controller sets it to the name of the pool"
	// +kubebuilder:validation:XValidation:rule="!('kubernetes.io/hostname' in self)",message="label kubernetes.io/hostname is restricted: the name of a node is not known before it exists"
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are put on every NodeClaim and node of the pool.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// NodeClaimTemplateSpec holds the fields of a NodeClaim that a pool may set.
type NodeClaimTemplateSpec struct {
	// Taints are put on every node of the pool; only pods that tolerate them are placed there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints are on every node of the pool when it joins and are taken off by someone else,
	// such as a daemon that prepares the node. Pods need not tolerate them; the node counts as
	// initialized when they are gone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements narrow down which instance types, zones, architectures and so on the pool may use.
	// They are combined with what the pods ask for. An empty list allows everything.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.key != 'karpenter.sh/nodepool')",message="requirement key karpenter.sh/nodepool is restricted: the controller sets it to the name of the pool"
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.key != 'karpenter.kwok.sh/kwoknodeclass')",message="requirement key karpenter.kwok.sh/kwoknodeclass is restricted: of the domain karpenter.kwok.sh only instance-size, instance-family, instance-cpu and instance-memory may be required"
	Requirements []NodeSelectorRequirementWithMinValues `json:"requirements"`
	// NodeClassRef points to the object that holds the cloud provider's settings for the nodes of this
	// pool. Its group and kind cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",messageExpression="'nodeClassRef.group cannot be changed from ' + oldSelf.group + ' to ' + self.group + ': create another NodePool'"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",messageExpression="'nodeClassRef.kind cannot be changed from ' + oldSelf.kind + ' to ' + self.kind + ': create another NodePool'"
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is how long a node of the pool may drain before its remaining pods are
	// deleted, whatever protects them: whole numbers with the units s, m, h and d, for example 1h30m.
	// Without it, draining waits as long as it takes.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+[smhd])+$`
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is how long a node of the pool lives before it is drained and removed: whole numbers
	// with the units s, m, h and d, for example 720h or 30d, or Never.
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+[smhd])+|Never)$`
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}
