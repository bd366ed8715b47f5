package v1beta1

import corev1 "k8s.io/api/core/v1"

// Requirement is a condition on one node label, with an optional wish for
// variety. The CRD holds its rules (R4, G13, G26, K4).
//
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || (has(self.values) && self.values.size() > 0)",messageExpression="'requirement ' + self.key + ': operator In needs at least one value in values'"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && self.values.size() == 1 && self.values[0].matches('^[0-9]{1,18}$'))",messageExpression="'requirement ' + self.key + ': operator ' + self.operator + ' needs exactly one value, an integer from 0 to 999999999999999999'"
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || !has(self.minValues) || !has(self.values) || self.values.size() >= self.minValues",messageExpression="'requirement ' + self.key + ': operator In lists fewer values than minValues; list more values or lower minValues'"
type Requirement struct {
	// Key is the node label the condition is about. Labels of the domain karpenter.sh are set by the
	// controller; only karpenter.sh/capacity-type may be used here.
	// +required
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",messageExpression="'requirement key \"' + self + '\" is no label name: use letters, digits, \"-\", \"_\" and \".\", beginning and ending with a letter or digit, with an optional lower-case DNS prefix and a slash before it'"
	// +kubebuilder:validation:XValidation:rule="self.split('/').size() == 1 ? self.size() <= 63 : (self.split('/')[0].size() <= 253 && self.split('/')[1].size() <= 63)",messageExpression="'requirement key \"' + self + '\" is too long: at most 63 characters, and 253 for the prefix before the slash'"
	// +kubebuilder:validation:XValidation:rule="self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.contains('/') || !self.split('/')[0].endsWith('karpenter.sh')",messageExpression="'requirement key ' + self + ' is restricted: of the domain karpenter.sh only karpenter.sh/capacity-type may be required'"
	// +kubebuilder:validation:XValidation:rule="self in ['karpenter.kwok.sh/instance-size', 'karpenter.kwok.sh/instance-family', 'karpenter.kwok.sh/instance-cpu', 'karpenter.kwok.sh/instance-memory', 'karpenter.kwok.sh/kwoknodeclass'] || !self.contains('/') || !self.split('/')[0].endsWith('karpenter.kwok.sh')",messageExpression="'requirement key ' + self + ' is restricted: of the domain karpenter.kwok.sh only instance-size, instance-family, instance-cpu and instance-memory may be required'"
	// +kubebuilder:validation:XValidation:rule="self.matches('^karpenter[.]k8s[.]aws/(ec2nodeclass|instance-(category|family|generation|size|cpu|cpu-manufacturer|cpu-sustained-clock-speed-mhz|memory|hypervisor|encryption-in-transit-supported|local-nvme|ebs-bandwidth|network-bandwidth|gpu-name|gpu-manufacturer|gpu-count|gpu-memory|accelerator-name|accelerator-manufacturer|accelerator-count|capability-flex|tenancy)|capacity-reservation-(id|type|interruptible)|placement-group-(id|partition))$') || !self.contains('/') || !self.split('/')[0].endsWith('karpenter.k8s.aws')",messageExpression="'requirement key ' + self + ' is restricted: of the domain karpenter.k8s.aws only the labels that describe an instance may be required, such as instance-family'"
	// +kubebuilder:validation:XValidation:rule="self != 'kubernetes.io/hostname'",message="requirement key kubernetes.io/hostname is restricted: the name of a node is not known before it exists"
	Key string `json:"key"`
	// Operator says how the label is compared with the values. In and NotIn compare with each value,
	// Exists and DoesNotExist look at the label alone, Gt, Lt, Gte and Lte compare integers.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values are the label values to compare with. In needs at least one; Gt, Lt, Gte and Lte need
	// exactly one integer that is not negative.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	Values []string `json:"values,omitempty"`
	// MinValues is how many different values of this label the instance types of a launch must offer
	// at least. More variety makes it likelier that spot capacity is found.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	MinValues *int `json:"minValues,omitempty"`
}
