package policy

// Labels that the rules name. Those of Karpenter and of AWS are names of their APIs.
const (
	instanceTypeLabel = "node.kubernetes.io/instance-type"
	zoneLabel         = "topology.kubernetes.io/zone"
	archLabel         = "kubernetes.io/arch"
	osLabel           = "kubernetes.io/os"
	hostnameLabel     = "kubernetes.io/hostname"
	karpenterGroup    = "karpenter.sh"
	nodePoolLabel     = karpenterGroup + "/nodepool"
	capacityTypeLabel = karpenterGroup + "/capacity-type"
	ec2Group          = "karpenter.k8s.aws"
	ec2Kind           = "EC2NodeClass"
	ec2NodeClassLabel = ec2Group + "/ec2nodeclass"
	wrapperGroup      = "karpenter.hypershift.openshift.io"
	wrapperKind       = "OpenshiftEC2NodeClass"
	defaultName       = "default"
)

// Reasons of a [Problem] and of a [Condition].
const (
	// ReasonInvalidRequirements: an entry cannot be parsed or is not allowed (R44, G13).
	ReasonInvalidRequirements = "InvalidRequirements"
	// ReasonConflictingRequirements: the policy contradicts itself (R44).
	ReasonConflictingRequirements = "ConflictingRequirements"
	// ReasonTooManyRequirements: there are more entries than a NodePool may have (G12).
	ReasonTooManyRequirements = "TooManyRequirements"
	// ReasonMinValuesUnsatisfiable: fewer values are left for a label than minValues asks for (G11).
	ReasonMinValuesUnsatisfiable = "MinValuesUnsatisfiable"
	// ReasonInvalidRootVolume: EC2 does not offer such a root volume (G8).
	ReasonInvalidRootVolume = "InvalidRootVolume"
	// ReasonInvalidNodeClassRef: the pool refers to a kind of node class that is not allowed (G20).
	ReasonInvalidNodeClassRef = "InvalidNodeClassRef"
	// ReasonNoCompatibleInstanceTypes: policy and pool together leave nothing for a label (G9).
	ReasonNoCompatibleInstanceTypes = "NoCompatibleInstanceTypes"
	// ReasonCompatible: values are left for every label, and enough for minValues.
	ReasonCompatible = "Compatible"
)

// Status is the status of a [Condition], spelled as Kubernetes spells it.
type Status string

// The values of a [Status].
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Condition is a status condition without its type, generation and times.
type Condition struct {
	Status  Status
	Reason  string
	Message string
}
