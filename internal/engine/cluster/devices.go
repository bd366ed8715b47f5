package cluster

import (
	"iter"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// DeviceClaim is a ResourceClaim by which a pod asks for devices (K-42).
type DeviceClaim struct {
	// Name is what the pod calls it (spec.resourceClaims).
	Name string
	// Object is the name of the ResourceClaim, in the pod's namespace; "" while it is not made yet.
	Object string
	// Template is the ResourceClaimTemplate that it is made from; "" for a claim that pods name themselves.
	Template string
	// Owner is the UID of the pod that a claim from a template must belong to; "" for other claims, which pods may
	// share.
	Owner string
}

// Devices says on which nodes pods get the devices that they ask for by ResourceClaims (K-42). It is immutable:
// placing a pod makes a new value, so each plan and each what-if counts for itself what it has given away. Only the
// implementation knows what a device is, and which devices go together; the real one asks the allocator of
// kube-scheduler. It is safe for concurrent use.
type Devices interface {
	// Place returns what is left once a pod of the shape has its devices on an existing node. It returns nil when the
	// pod cannot have them there, and may then say why, for people.
	Place(shape *Shape, node *Node) (left Devices, why string)
	// Problem says what keeps pods of the shape from their devices on whatever node; "" for nothing. Place then
	// returns nil.
	Problem(shape *Shape) (code cause.Code, text string)
	// Breaks says why kube-scheduler gives up on pods of the shape because its allocator fails on one of these nodes,
	// whatever others have; "" for nothing. nodes are those on which only devices could be missing. It looks at none
	// where no node can make the allocator fail.
	Breaks(shape *Shape, nodes iter.Seq[*Node]) string
	// Wanted names what the shape asks for: the claims with their requests and classes.
	Wanted(shape *Shape) string
}

// Holding returns the shape of a pod that has got its devices: no other node is right for it, since nobody moves them
// (K-41). The result is not interned.
func (s *Shape) Holding() *Shape {
	own := *s
	own.key, own.ask = "", ""
	own.Claims = nil
	own.Blocked, own.BlockedBy = HoldsDevices(s.Claims), cause.DevicesUnknown
	own.Narrow([]Alternative{{Labels: requirement.NewSet(requirement.Nothing(LabelHostname))}})
	return &own
}

// HoldsDevices says of a pod that runs that it stays where its devices are.
func HoldsDevices(claims []DeviceClaim) string {
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	return "it has devices by ResourceClaims (spec.resourceClaims " + strings.Join(names, ", ") +
		"), and pods with devices are not moved"
}

// WithoutDevices returns the snapshot as if nobody could tell which nodes have devices, for records that leave them
// out: pods with claims wait.
func (s *Snapshot) WithoutDevices() *Snapshot {
	asks := func(pod *Pod) bool { return len(pod.Shape.Claims) > 0 }
	if s.Devices == nil && !slices.ContainsFunc(s.Pending, asks) {
		return s
	}
	own := *s
	own.Devices, own.Pending = nil, slices.Clone(s.Pending)
	for i, pod := range own.Pending {
		if asks(pod) {
			waits := *pod
			waits.Shape = pod.Shape.Holding()
			waits.Shape.Blocked = "it asks for devices by ResourceClaims, which are not part of this picture"
			own.Pending[i] = &waits
		}
	}
	return &own
}

// Unblocked returns the shape without what blocks it. The result is not interned.
func (s *Shape) Unblocked() *Shape {
	own := *s
	own.key, own.ask, own.own = "", "", nil
	own.Blocked, own.BlockedBy, own.Alternatives = "", "", s.Selecting().Alternatives
	return &own
}
