package v1

// NodeClassReference points to the object that holds the cloud provider's settings.
type NodeClassReference struct {
	// Group is the API group of the node class, without a version, for example karpenter.k8s.aws.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != ''",message="nodeClassRef.group must not be empty: give the API group of the node class, for example karpenter.k8s.aws"
	// +kubebuilder:validation:XValidation:rule="!self.contains('/')",messageExpression="'nodeClassRef.group is ' + self + ': give the API group alone, without a slash and a version, for example karpenter.k8s.aws'"
	Group string `json:"group"`
	// Kind is the kind of the node class, for example EC2NodeClass.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != ''",message="nodeClassRef.kind must not be empty: give the kind of the node class, for example EC2NodeClass"
	Kind string `json:"kind"`
	// Name is the name of the node class.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != ''",message="nodeClassRef.name must not be empty: give the name of the node class"
	Name string `json:"name"`
}
