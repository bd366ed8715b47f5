package provider

import (
	"errors"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// A request that its caller gave up may still be on its way, and land at any time. So each launch has a deadline, and
// a request that lands later launches nothing. These are the times that tell others when they can rely on that.
const (
	// LaunchFor is how long a launch may take to land at the cloud.
	LaunchFor = time.Minute
	// ClockSkew is the assumed maximum difference between the clocks of two processes, or of a process and the cloud.
	ClockSkew = time.Minute
	// ListLag is how long after its launch a machine may be missing from List.
	ListLag = 30 * time.Second
)

// ErrExpired means that a launch came too late. This call has launched nothing and will launch nothing.
var ErrExpired = errors.New("the launch came later than it was to land")

// Refused reports whether an error of Launch proves that this very call launched no machine and will launch none.
// After any other error this is unknown.
func Refused(err error) bool {
	var capacity *InsufficientCapacityError
	var class *NodeClassNotReadyError
	var launch *LaunchError
	return errors.Is(err, ErrExpired) || errors.Is(err, ErrThrottled) || errors.Is(err, ErrNodeClassNotFound) ||
		errors.As(err, &capacity) || errors.As(err, &class) || errors.As(err, &launch)
}

// Strays counts the machines of a pool without a claim: a claim whose finalizer was removed leaves one. claims are all
// existing claims; counts reports which of them are the pool's.
func Strays(pool string, instances []Instance, claims []karpenterv1.NodeClaim,
	counts func(*karpenterv1.NodeClaim) bool) int {
	known, names := map[string]bool{}, map[string]bool{}
	for i := range claims {
		if claim := &claims[i]; counts(claim) {
			known[string(claim.UID)], known[claim.Status.ProviderID], names[claim.Name] = true, true, true
		}
	}
	delete(known, "")
	strays := 0
	for _, instance := range instances {
		accounted := known[instance.ProviderID] || known[instance.ClaimUID] ||
			instance.ClaimUID == "" && names[instance.ClaimName]
		if instance.Labels[karpenterv1.NodePoolLabelKey] == pool && !accounted {
			strays++
		}
	}
	return strays
}
