package cause

// What holds a NodeClaim at its stage. Other stages have a code of a node or of a pool.
const (
	// LaunchPending: the machine is asked for, and there is no answer yet.
	LaunchPending Code = "LaunchPending"
	// NotRegistered: the machine is launched, and has not joined.
	NotRegistered Code = "NotRegistered"
	// NodeGone: the node had joined and is gone, and the machine runs.
	NodeGone Code = "NodeGone"
	// GivenUp: the claim failed, and goes.
	GivenUp Code = "GivenUp"
	// VolumesAttached: the pods have gone, and their volumes are still attached.
	VolumesAttached Code = "VolumesAttached"
	// MachineEnds: the cloud was told to end the machine.
	MachineEnds Code = "MachineEnds"
	// ForeignFinalizer: somebody else's finalizer keeps the deleted claim.
	ForeignFinalizer Code = "ForeignFinalizer"
)

// ClaimCodes are the codes that a NodeClaim may have, beside those that it shares with nodes and pools, in the order
// of the catalogue.
func ClaimCodes() []Code {
	return []Code{LaunchPending, NotRegistered, NodeGone, GivenUp, VolumesAttached, MachineEnds, ForeignFinalizer}
}
