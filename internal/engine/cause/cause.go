// Package cause names why something waits, stays or is not done. A cause is a stable code: events, conditions, the
// command line and documents say the same word for the same thing (U-16). Package view has the sentence and the remedy
// of each.
//
// Codes are added, never renamed. The package imports nothing.
package cause

// Code is a cause, in CamelCase; "" for none.
type Code string

// Why a pod waits: what the pod itself says (U, 3.1).
const (
	// PodMalformed: a field of the pod cannot be understood.
	PodMalformed Code = "PodMalformed"
	// ContradictsItself: what the pod demands of one label excludes itself.
	ContradictsItself Code = "ContradictsItself"
	// OnlyOneNode: the pod wants one particular node, by name or hostname. No new node is that one.
	OnlyOneNode Code = "OnlyOneNode"
	// VolumeMissing: a claim or its storage class does not exist, or is going.
	VolumeMissing Code = "VolumeMissing"
	// VolumeUnbindable: nothing makes the volume, or something must happen to its claim first.
	VolumeUnbindable Code = "VolumeUnbindable"
	// VolumeElsewhere: the volume can be used in places where the pod cannot run.
	VolumeElsewhere Code = "VolumeElsewhere"
	// VolumeLimit: no node attaches as many volumes as the pod has, or as it needs beside others.
	VolumeLimit Code = "VolumeLimit"
	// VolumeInUse: another pod has a claim that only one pod at a time may use.
	VolumeInUse Code = "VolumeInUse"
	// VolumeNotFree: nothing makes volumes of the class, and no free one fits where the pod can run (K-59).
	VolumeNotFree Code = "VolumeNotFree"
	// StorageCapacity: the driver has less left than it would have to make (K-58).
	StorageCapacity Code = "StorageCapacity"
	// DevicesUnknown: the pod asks for devices by ResourceClaims, and nobody can tell which nodes have them (K-41).
	DevicesUnknown Code = "DevicesUnknown"
	// DeviceClaimMissing: a ResourceClaim of the pod does not exist, is not made yet, is going, or is another pod's
	// (K-42).
	DeviceClaimMissing Code = "DeviceClaimMissing"
	// DeviceClassMissing: a request names a DeviceClass that does not exist.
	DeviceClassMissing Code = "DeviceClassMissing"
	// DeviceClaimInvalid: a selector of a ResourceClaim or DeviceClass, or a request, cannot be understood or fails.
	DeviceClaimInvalid Code = "DeviceClaimInvalid"
	// DevicesNotFound: no driver publishes a device that a request wants.
	DevicesNotFound Code = "DevicesNotFound"
	// DevicesInUse: there are such devices, and no existing node has enough of them left for the pod.
	DevicesInUse Code = "DevicesInUse"
	// DevicesOutOfReach: an existing node has the devices, and the pod cannot run there for another reason.
	DevicesOutOfReach Code = "DevicesOutOfReach"
)

// Why a pod waits: what the pools and their limits say.
const (
	// NoNodePool: there is none.
	NoNodePool Code = "NoNodePool"
	// PoolPaused: an annotation pauses what the pool launches (K-52).
	PoolPaused Code = "PoolPaused"
	// PoolNotReady: the pool or its node class is not fit to launch anything.
	PoolNotReady Code = "PoolNotReady"
	// StaticPool: replicas decide on the pool's nodes, not pods.
	StaticPool Code = "StaticPool"
	// PoolContradictsItself: the pool's requirements leave no instance type.
	PoolContradictsItself Code = "PoolContradictsItself"
	// TaintNotTolerated: the pod does not tolerate a taint of the pool.
	TaintNotTolerated Code = "TaintNotTolerated"
	// LabelMismatch: the pod wants other values of a label than the pool allows, or than are left.
	LabelMismatch Code = "LabelMismatch"
	// LabelUnknown: the pod wants a label that the pool does not define.
	LabelUnknown Code = "LabelUnknown"
	// HardLimitNodes and SoftLimitNodes: the pool has as many nodes as it may have.
	HardLimitNodes Code = "HardLimitNodes"
	SoftLimitNodes Code = "SoftLimitNodes"
	// ClusterLimitNodes: the cluster has as many nodes as it may have, whatever the pool says (K-53).
	ClusterLimitNodes Code = "ClusterLimitNodes"
	// ClusterLimitUnknown: the table of the hard limit of the whole cluster cannot be read, so nothing is launched
	// (K-53).
	ClusterLimitUnknown Code = "ClusterLimitUnknown"
	// ResourceLimit: another node would exceed a limit of the pool's resources.
	ResourceLimit Code = "ResourceLimit"
	// MinValues: the pool demands more different values of a label than are left for the pod.
	MinValues Code = "MinValues"
	// LaunchesInVain: nodes were launched for such pods and the pods did not come onto them (P-35).
	LaunchesInVain Code = "LaunchesInVain"
)

// Why a CapacityBuffer has less room than it should, beside what pods wait for (K-37).
const (
	// PodsFirst: pods are spread over nodes that come, and one more node would change what they are measured by.
	PodsFirst Code = "PodsFirst"
)

// Why a pod waits: what is on offer, and where other pods are.
const (
	// PodTooLarge: no instance type that is left has as much of a resource as the pod requests.
	PodTooLarge Code = "PodTooLarge"
	// DaemonsTakeTheRoom: an instance type has as much, but not beside the pods of DaemonSets.
	DaemonsTakeTheRoom Code = "DaemonsTakeTheRoom"
	// ExtendedResource: no instance type of the pool has the resource at all.
	ExtendedResource Code = "ExtendedResource"
	// NoCapacity: what would fit is sold out.
	NoCapacity Code = "NoCapacity"
	// ReservationsUsedUp: nothing is left in the reservations that would fit.
	ReservationsUsedUp Code = "ReservationsUsedUp"
	// SpreadNoDomain: topology spread allows no domain that a new node could be in.
	SpreadNoDomain Code = "SpreadNoDomain"
	// AffinityNoTarget: the pods that the pod has to be near are nowhere a node could be launched.
	AffinityNoTarget Code = "AffinityNoTarget"
	// AntiAffinityEverywhere: each domain has a pod that the pod keeps apart from, or that keeps apart from it.
	AntiAffinityEverywhere Code = "AntiAffinityEverywhere"
	// DaemonsCount: a constraint counts pods of a DaemonSet, which come first on each new node.
	DaemonsCount Code = "DaemonsCount"
	// HostPortTaken: a port that the pod wants is used by a DaemonSet on each new node.
	HostPortTaken Code = "HostPortTaken"
	// NoPlaceFound: none of the above alone, but all of them together.
	NoPlaceFound Code = "NoPlaceFound"
)

// Why a pod waits: what the cluster says of it. No pool is asked.
const (
	// SchedulingGated: the pod has scheduling gates.
	SchedulingGated Code = "SchedulingGated"
	// NotMarkedUnschedulable: kube-scheduler has not tried the pod yet.
	NotMarkedUnschedulable Code = "NotMarkedUnschedulable"
	// WaitsForVictims: kube-scheduler ends other pods for it.
	WaitsForVictims Code = "WaitsForVictims"
	// NodeOnTheWay: a node that is not there yet is expected to take it.
	NodeOnTheWay Code = "NodeOnTheWay"
	// NodeFits: a node that is there is expected to take it.
	NodeFits Code = "NodeFits"
	// LaunchPlanned: a node would be launched for it.
	LaunchPlanned Code = "LaunchPlanned"
)

// Why a node stays, or goes slowly (U, 3.2).
const (
	// NotManaged: the node has no NodeClaim.
	NotManaged Code = "NotManaged"
	// NotInitialized: the machine is not launched, has not joined, or is not initialized.
	NotInitialized Code = "NotInitialized"
	// NodeNotReady: the node is not Ready.
	NodeNotReady Code = "NodeNotReady"
	// Rebooting: the machine is rebooted to repair it.
	Rebooting Code = "Rebooting"
	// PoolGone: the NodePool is gone without it.
	PoolGone Code = "PoolGone"
	// DoNotDisruptNode and DoNotDisruptPod: an annotation forbids it.
	DoNotDisruptNode Code = "DoNotDisruptNode"
	DoNotDisruptPod  Code = "DoNotDisruptPod"
	// PodDisruptionBudget: a budget does not let a pod of the node go.
	PodDisruptionBudget Code = "PodDisruptionBudget"
	// IsReplacement: what it replaces is still there.
	IsReplacement Code = "IsReplacement"
	// ReplacementOnTheWay: the node was chosen, and waits for what replaces it.
	ReplacementOnTheWay Code = "ReplacementOnTheWay"
	// Draining: the node is being removed.
	Draining Code = "Draining"
	// PodsComing: pods are planned onto it.
	PodsComing Code = "PodsComing"
	// KeepsRoom: it has room for a CapacityBuffer, and nothing else needs it (K-39).
	KeepsRoom Code = "KeepsRoom"
	// Paused: voluntary disruption is paused in the whole cluster.
	Paused Code = "Paused"
	// PoolHeld: an annotation pauses the disruption of the pool's nodes (K-52).
	PoolHeld Code = "PoolHeld"
	// BackingOff: a command of the pool was taken back, and the pool is left alone for a while.
	BackingOff Code = "BackingOff"
	// BudgetClosed: the pool's budgets allow none; BudgetUsedUp: as many as they allow are going.
	BudgetClosed Code = "BudgetClosed"
	BudgetUsedUp Code = "BudgetUsedUp"
	// StaticPoolNode: the pool keeps a number of nodes.
	StaticPoolNode Code = "StaticPoolNode"
	// MinNodes: the pool always keeps some nodes, and has no more than these (K-54).
	MinNodes Code = "MinNodes"
	// ConsolidationOff: the pool does not remove such nodes to save money.
	ConsolidationOff Code = "ConsolidationOff"
	// QuietTime: pods came or went a moment ago.
	QuietTime Code = "QuietTime"
	// SpotRatio: its NodePool, or another one, would have more spot nodes than it allows.
	SpotRatio Code = "SpotRatio"
	// PriceUnknown: nobody knows what the node costs.
	PriceUnknown Code = "PriceUnknown"
	// PodFitsNowhereElse: a pod of the node would find no place.
	PodFitsNowhereElse Code = "PodFitsNowhereElse"
	// NothingCheaper: what its pods need costs as much elsewhere.
	NothingCheaper Code = "NothingCheaper"
	// SavingTooSmall: it costs less elsewhere, but not enough.
	SavingTooSmall Code = "SavingTooSmall"
	// JustReplaced: the node has replaced others minutes ago.
	JustReplaced Code = "JustReplaced"
	// SpotToSpotOff: only a spot node would be cheaper.
	SpotToSpotOff Code = "SpotToSpotOff"
	// WaitingPodsFirst: pods wait at a limit.
	WaitingPodsFirst Code = "WaitingPodsFirst"
	// NoReplacement: what replaces the node cannot be there before it goes.
	NoReplacement Code = "NoReplacement"
	// OthersFirst: the node may go, and others go before it.
	OthersFirst Code = "OthersFirst"
)

// LimitCodes are those of [WaitingCodes] that say that a limit is reached, of a pool or of the cluster.
func LimitCodes() []Code {
	return []Code{HardLimitNodes, SoftLimitNodes, ClusterLimitNodes, ClusterLimitUnknown, ResourceLimit}
}

// StayingCodes are the codes that a node may have, in the order of the catalogue.
func StayingCodes() []Code {
	return []Code{
		NotManaged, NotInitialized, NodeNotReady, Rebooting, PoolGone, DoNotDisruptNode, DoNotDisruptPod,
		PodDisruptionBudget, IsReplacement, ReplacementOnTheWay, Draining, PodsComing, KeepsRoom, Paused, PoolHeld,
		BackingOff, BudgetClosed, BudgetUsedUp,
		StaticPoolNode, MinNodes, ConsolidationOff, QuietTime, PriceUnknown, PodFitsNowhereElse, NothingCheaper,
		SavingTooSmall, JustReplaced, SpotToSpotOff, SpotRatio, WaitingPodsFirst, NoReplacement, OthersFirst,
	}
}

// WaitingCodes are the codes that a waiting pod may have, in the order of the catalogue.
func WaitingCodes() []Code {
	return []Code{
		SchedulingGated, NotMarkedUnschedulable, WaitsForVictims, NodeOnTheWay, NodeFits, LaunchPlanned,
		PodMalformed, ContradictsItself, OnlyOneNode, VolumeMissing, VolumeUnbindable, VolumeElsewhere, VolumeLimit,
		VolumeInUse, VolumeNotFree, StorageCapacity,
		DevicesUnknown, DeviceClaimMissing, DeviceClassMissing, DeviceClaimInvalid, DevicesNotFound, DevicesInUse,
		DevicesOutOfReach,
		NoNodePool, PoolPaused, PoolNotReady, StaticPool, PoolContradictsItself, TaintNotTolerated, LabelMismatch,
		LabelUnknown,
		HardLimitNodes, SoftLimitNodes, ClusterLimitNodes, ClusterLimitUnknown, ResourceLimit, MinValues,
		LaunchesInVain, PodTooLarge, DaemonsTakeTheRoom, ExtendedResource, NoCapacity, ReservationsUsedUp,
		SpreadNoDomain, AffinityNoTarget, AntiAffinityEverywhere, DaemonsCount, HostPortTaken, NoPlaceFound,
	}
}
