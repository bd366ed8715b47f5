package cause

// Why a pool launches nothing (U, 3.3): what makes every other question idle, and what its objects say.
const (
	// ControllerSilent: nobody has the lease of the leader.
	ControllerSilent Code = "ControllerSilent"
	// OtherController: the leader is Karpenter. What would keep Joiner from launching comes first: it may keep
	// Karpenter too.
	OtherController Code = "OtherController"
	// BeingDeleted: the pool goes.
	BeingDeleted Code = "BeingDeleted"
	// KindNotServed: nobody here plans for node classes of that kind.
	KindNotServed Code = "KindNotServed"
	// NodeClassMissing: there is no node class of that name.
	NodeClassMissing Code = "NodeClassMissing"
	// NodeClassNotReady: the node class is not fit to launch anything.
	NodeClassNotReady Code = "NodeClassNotReady"
	// InvalidPool: a field of the pool cannot be understood.
	InvalidPool Code = "InvalidPool"
	// NoInstanceTypes: its requirements leave no instance type.
	NoInstanceTypes Code = "NoInstanceTypes"
	// MinValuesUnmet: it demands more different values of a label than there are.
	MinValuesUnmet Code = "MinValuesUnmet"
	// LaunchesFail: the provider refuses what it launches.
	LaunchesFail Code = "LaunchesFail"
	// NodesNeverJoin: machines are launched and do not join.
	NodesNeverJoin Code = "NodesNeverJoin"
)

// Why a pool launches nothing: what planning says of it.
const (
	// LimitReached: pods would come, and a limit of the pool refuses them.
	LimitReached Code = "LimitReached"
	// ClusterLimitReached: pods would come, and the limit of the whole cluster refuses them (K-53).
	ClusterLimitReached Code = "ClusterLimitReached"
	// ReplicasBelow: a static pool has fewer nodes than its replicas, and launches none.
	ReplicasBelow Code = "ReplicasBelow"
	// MinNodesBelow: a pool has fewer nodes than it always keeps, and launches none (K-54).
	MinNodesBelow Code = "MinNodesBelow"
	// StaticFull: a static pool has as many nodes as it wants.
	StaticFull Code = "StaticFull"
	// Outweighed: other pools take the pods that it could take.
	Outweighed Code = "Outweighed"
	// NoDemand: no waiting pod is for it.
	NoDemand Code = "NoDemand"
)

// PoolCodes are the codes that a pool may have, beside those that it shares with waiting pods, in the order of the
// catalogue: the first of several is told first.
func PoolCodes() []Code {
	return []Code{
		ControllerSilent, BeingDeleted, KindNotServed, NodeClassMissing, NodeClassNotReady, InvalidPool,
		NoInstanceTypes, MinValuesUnmet, LaunchesFail, NodesNeverJoin, LimitReached, ClusterLimitReached,
		ReplicasBelow, MinNodesBelow, StaticFull, Outweighed, NoDemand, OtherController,
	}
}
