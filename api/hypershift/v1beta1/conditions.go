package v1beta1

// Condition types of AutoNodePolicy, OpenshiftNodePool and OpenshiftEC2NodeClass (G6, G9, G16).
const (
	// ConditionTypeReady of a policy is True when it is applied to all NodePools and node classes, and of the
	// two other kinds when what was made from them may be used.
	ConditionTypeReady = "Ready"
	// ConditionTypeConforming of a policy is True when every NodePool, node class, NodeClaim and node of the hosted
	// cluster is as the policy wants it, as an independent look found. Its reasons are those of package conformance
	//
	ConditionTypeConforming = "Conforming"
	// ConditionTypeProtected of a policy is True while all admission policies of the hosted cluster are in force.
	ConditionTypeProtected = "Protected"
	// ConditionTypeProtectedOnce of a policy becomes True when they are so for the first time, and stays as it is from
	// then on: what has no wrapper and is younger was made past them.
	ConditionTypeProtectedOnce = "ProtectedOnce"
	// ConditionTypePolicyApplied of an OpenshiftNodePool or OpenshiftEC2NodeClass is True when the state of the
	// policy in status.observedPolicy stands in what was made from it, or when there is no policy to apply.
	ConditionTypePolicyApplied = "PolicyApplied"
	// ConditionTypeRequirementsCompatible of an OpenshiftNodePool is False when the policy's and the user's
	// requirements together leave no instance type.
	ConditionTypeRequirementsCompatible = "RequirementsCompatible"
	// ConditionTypeRootVolumeOverridden of an OpenshiftEC2NodeClass is True when it has settings for the root
	// volume, which have no effect.
	ConditionTypeRootVolumeOverridden = "RootVolumeOverridden"
	// ConditionTypeVersionResolved of an OpenshiftEC2NodeClass is False while nodes do not start with the release of
	// its spec.version.
	ConditionTypeVersionResolved = "VersionResolved"
	// ConditionTypeNodeClassManaged of an OpenshiftNodePool is True when the node class that it names is made by the
	// operator and in line with the policy. While it is False the pool launches nothing.
	ConditionTypeNodeClassManaged = "NodeClassManaged"
	// ConditionTypeSpecAltered of an OpenshiftNodePool is True while settings of the user's own, which the policy says
	// nothing about, are not stored in the NodePool as they were written; the message names them. Otherwise it is not
	// there.
	ConditionTypeSpecAltered = "SpecAltered"
)

// Reasons of ConditionTypeRequirementsCompatible.
const (
	// ReasonCompatible: something is left.
	ReasonCompatible = "Compatible"
	// ReasonNoCompatibleInstanceTypes: no value is left for a key; the message names it (G9).
	ReasonNoCompatibleInstanceTypes = "NoCompatibleInstanceTypes"
	// ReasonMinValuesUnsatisfiable: fewer values are left for a key than minValues asks for (G11).
	ReasonMinValuesUnsatisfiable = "MinValuesUnsatisfiable"
)

// Reasons of ConditionTypePolicyApplied, and of the Ready that follows from it.
const (
	// ReasonApplied: the policy stands in what was made from the object.
	ReasonApplied = "Applied"
	// ReasonNoPolicy: there is no policy, and what was made has the user's settings and those built in.
	ReasonNoPolicy = "NoPolicy"
	// ReasonTooManyRequirements: the policy's and the user's requirements together are more than a NodePool may
	// have (G12).
	ReasonTooManyRequirements = "TooManyRequirements"
	// ReasonInvalidRequirements: the API server of the hosted cluster refuses the NodePool (G13).
	ReasonInvalidRequirements = "InvalidRequirements"
	// ReasonConflictingRequirements: the policy contradicts itself (R44).
	ReasonConflictingRequirements = "ConflictingRequirements"
	// ReasonInvalidRootVolume: the policy's root volume cannot be had from EC2 (G8).
	ReasonInvalidRootVolume = "InvalidRootVolume"
	// ReasonPolicyUnreadable: the policy may not be read, and so none is applied (G15).
	ReasonPolicyUnreadable = "PolicyUnreadable"
	// ReasonInForce: of ConditionTypeProtected and ConditionTypeProtectedOnce.
	ReasonInForce = "InForce"
	// ReasonProtectionMissing: of ConditionTypeProtected; the message names what is missing.
	ReasonProtectionMissing = "ProtectionMissing"
	// ReasonOpenByFlag: of ConditionTypeProtected; the operator was told to leave NodeClaims open.
	ReasonOpenByFlag = "OpenByFlag"
	// ReasonRuleTooLarge: of ConditionTypeProtected; the rule for NodeClaims lacks labels of the policy, which the
	// message names.
	ReasonRuleTooLarge = "RuleTooLarge"
	// ReasonVersionResolved: of ConditionTypeVersionResolved.
	ReasonVersionResolved = "VersionResolved"
	// ReasonVersionNotResolved: status.version is not spec.version yet; nodes start as before.
	ReasonVersionNotResolved = "VersionNotResolved"
	// ReasonVersionNotSupported: nodes can start with one release only, which is another.
	ReasonVersionNotSupported = "VersionNotSupported"
	// ReasonManaged: of ConditionTypeNodeClassManaged.
	ReasonManaged = "Managed"
	// ReasonNodeClassUnmanaged: no OpenshiftEC2NodeClass stands behind the node class that the object names.
	ReasonNodeClassUnmanaged = "NodeClassUnmanaged"
	// ReasonNodeClassNotApplied: the OpenshiftEC2NodeClass that the object names could not be applied.
	ReasonNodeClassNotApplied = "NodeClassNotApplied"
	// ReasonAlteredOnWrite: the API server of the hosted cluster stores something else than was written; the message
	// names the fields.
	ReasonAlteredOnWrite = "AlteredOnWrite"
	// ReasonReconcileFailed: writing failed for another reason; the message says which.
	ReasonReconcileFailed = "ReconcileFailed"
)

// What an AutoNodePolicy says of the HostedControlPlane, where the operator's settings come from it. While it
// is False with another reason than Paused and Deleting, what the last one said holds.
const (
	ConditionTypeHostedControlPlane = "HostedControlPlane"
	ReasonHostedFound               = "Found"         // True
	ReasonHostedLeavesClasses       = "LeavesClasses" // True: node classes are not touched
	ReasonHostedPaused              = "Paused"        // False: nothing is written in the hosted cluster
	ReasonHostedDeleting            = "Deleting"      // False: NodePools are being deleted
	ReasonHostedMissing             = "Missing"       // False
	ReasonHostedAmbiguous           = "Ambiguous"     // False: there are several
	ReasonHostedDiffers             = "Differs"       // False: a flag says something else
	ReasonHostedUnreadable          = "Unreadable"    // False
)

// Further reasons of the Ready of an AutoNodePolicy (G16).
const (
	// ReasonNoTargets: there is nothing yet that the policy could apply to. Ready is True.
	ReasonNoTargets = "NoTargets"
	// ReasonProgressing: not all objects have seen this generation of the policy. Ready is Unknown.
	ReasonProgressing = "Progressing"
	// ReasonReleased: of all conditions of a policy; the hosted cluster was handed over to another operator.
	// They are Unknown.
	ReasonReleased = "Released"
	// ReasonRootVolumeNotOwned: it has a root volume, and another operator writes the node classes. Ready is
	// False.
	ReasonRootVolumeNotOwned = "RootVolumeNotOwned"
	// ReasonRequirementsNotOwned: it has requirements, and another operator writes the NodePools. Ready is
	// False.
	ReasonRequirementsNotOwned = "RequirementsNotOwned"
)

// Reasons of ConditionTypeRootVolumeOverridden.
const (
	// ReasonRootVolumeFromProvider: the object has a mapping for the root volume, and the provider's is used.
	ReasonRootVolumeFromProvider = "RootVolumeFromProvider"
	// ReasonNoRootVolumeMapping: the object says nothing about the root volume.
	ReasonNoRootVolumeMapping = "NoRootVolumeMapping"
)
