package v1

import autonodev1beta1 "github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"

// Condition types of a NodePool. ConditionTypeReady exists on every kind.
const (
	// ConditionTypeReady sums up the conditions an object needs before it can be used.
	ConditionTypeReady = "Ready"
	// ConditionTypeValidationSucceeded is False when the spec holds something the CRD cannot check.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
	// ConditionTypeNodeClassReady repeats the Ready condition of the referenced node class.
	ConditionTypeNodeClassReady = "NodeClassReady"
	// ConditionTypeNodeRegistrationHealthy is False when the pool's last nodes failed to join. It is no
	// part of Ready.
	ConditionTypeNodeRegistrationHealthy = "NodeRegistrationHealthy"
	// ConditionTypeInstanceTypesCompatible is False when no instance type is left after all requirements
	// are intersected; its message names the keys in conflict (V-11).
	ConditionTypeInstanceTypesCompatible = "InstanceTypesCompatible"
	// ConditionTypeReplicasWithinLimits is False on a static pool that runs fewer nodes than spec.replicas
	// asks for, because a limit is lower; its message names both (L-17). It is no part of Ready.
	ConditionTypeReplicasWithinLimits = "ReplicasWithinLimits"
	// ConditionTypeNodesWithinLimits is False on a pool that was above its soft node limit when Joiner first saw it,
	// until it is brought down within its disruption budgets (L-40), and on one that another program's nodes keep
	// above its limit. It is no part of Ready; other pools do not have it.
	ConditionTypeNodesWithinLimits = "NodesWithinLimits"
	// ConditionTypePaused is True while PausedAnnotationKey pauses the pool; its message says what it stops. It is no
	// part of Ready; other pools do not have it.
	ConditionTypePaused = "Paused"
	// ConditionTypeTerminateFirst says what TerminateFirstAnnotationKey does: it is False where the value is none that
	// is allowed. It is no part of Ready; other pools do not have it. It is ours.
	ConditionTypeTerminateFirst = "TerminateFirst"
	// ConditionTypeRollBlocked is True while nodes of the pool are drifted or expired and none is replaced, since the
	// hard limit leaves no room; its message says how many, and what to do. It is no part of Ready; other pools do not
	// have it. It is ours.
	ConditionTypeRollBlocked = "RollBlocked"
	// ConditionTypeHeadroom says of a pool with HeadroomAnnotationKey whether there is the room that it keeps free,
	// and why not. It is no part of Ready; other pools do not have it. It is ours.
	ConditionTypeHeadroom = "Headroom"
	// ConditionTypeMinNodes says of a pool with MinNodesAnnotationKey whether it has as many nodes as it always keeps,
	// and why not. It is no part of Ready; other pools do not have it. It is ours.
	ConditionTypeMinNodes = "MinNodes"
	// ConditionTypeLaunchesInVain is True while the pool launches less for some pods than they ask for, since nodes
	// that were launched for such pods did not help them; its message says which and what became of the nodes (P-35).
	// It is no part of Ready.
	ConditionTypeLaunchesInVain = "LaunchesInVain"
	// ConditionTypeClusterLimitReached is True while the whole cluster has as many nodes as --max-nodes allows, so
	// that the pool launches nothing for pods or replicas (K-53). It is no part of Ready; at other times no pool has
	// it. It is ours.
	ConditionTypeClusterLimitReached = "ClusterLimitReached"
	// ConditionTypeHardLimitEnforced is True once a pool with hardLimits.nodes can no longer have more instances
	// than that, and says otherwise why not yet (L-14). It is no part of Ready. It is ours.
	ConditionTypeHardLimitEnforced = "HardLimitEnforced"
)

// Condition types of a NodeClaim.
const (
	// ConditionTypeLaunched is True when the cloud has created the instance.
	ConditionTypeLaunched = "Launched"
	// ConditionTypeRegistered is True when the node has joined and was matched.
	ConditionTypeRegistered = "Registered"
	// ConditionTypeInitialized is True when the node is ready and startup taints are gone.
	ConditionTypeInitialized = "Initialized"
	// ConditionTypeDrifted is True when the node no longer matches its pool; its reason names the cause.
	ConditionTypeDrifted = "Drifted"
	// ConditionTypeExpired is True when expireAfter has passed.
	ConditionTypeExpired = "Expired"
	// ConditionTypeEmpty is True when only pods of daemon sets run on the node.
	ConditionTypeEmpty = "Empty"
	// ConditionTypeConsolidatable is True when consolidateAfter has passed since the last pod event.
	ConditionTypeConsolidatable = "Consolidatable"
	// ConditionTypeDrained is True when the pods of a terminating node are gone.
	ConditionTypeDrained = "Drained"
	// ConditionTypeVolumesDetached is True when the volumes of a terminating node are detached.
	ConditionTypeVolumesDetached = "VolumesDetached"
	// ConditionTypeInstanceTerminating is True when the cloud was told to end the instance.
	ConditionTypeInstanceTerminating = "InstanceTerminating"
	// ConditionTypeRebooting is True while the node is rebooted, with the reason RebootRequested until the provider
	// has taken that on and RebootIssued from then; False when that has ended, with RebootSucceeded, RebootFailed or
	// RebootWithdrawn.
	ConditionTypeRebooting = "Rebooting"
	// ConditionTypeDisruptionReason is True on a node that a disruption has chosen; its reason names the
	// method.
	ConditionTypeDisruptionReason = "DisruptionReason"
	// ConditionTypeConsistentStateFound is False when node and NodeClaim contradict each other.
	ConditionTypeConsistentStateFound = "ConsistentStateFound"
)

// Condition is one observation about an object. It is the condition of Kubernetes with fewer
// required fields: only type, status and lastTransitionTime.
type Condition = autonodev1beta1.Condition

// Reasons of ConditionTypeRebooting. RebootWithdrawn is ours: a reboot that was decided, and not asked for after all.
const (
	ReasonRebootRequested = "RebootRequested"
	ReasonRebootIssued    = "RebootIssued"
	ReasonRebootSucceeded = "RebootSucceeded"
	ReasonRebootFailed    = "RebootFailed"
	ReasonRebootWithdrawn = "RebootWithdrawn"
)
