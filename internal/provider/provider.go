// Package provider is the port to what launches machines: a cloud, or a simulation of one (P-50).
//
// A provider knows only machines. It never decides which claims exist, never retries on its own, never waits. It must
// be safe for concurrent use. Every failure that a caller can act on is one of the errors in errors.go. Any other
// error means "unknown, ask again": the machine may or may not exist. Calling again with the same claim or provider ID
// is always right.
//
// Every implementation passes the suite in providertest. Start with [Provider].
package provider

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// DriftInstanceTypeNotFound is Karpenter's reason for a machine whose instance type is no longer in the catalogue
// (D-06).
const DriftInstanceTypeNotFound = "InstanceTypeNotFound"

// Drift is why a machine no longer matches its node class. The zero value means that it does.
type Drift struct {
	Reason  string // one CamelCase word, of the condition Drifted
	Message string // what differs, with both values, for people
}

// TypeNotFound returns the drift of a machine whose instance type is no longer in the catalogue.
func TypeNotFound(kind string) Drift {
	return Drift{DriftInstanceTypeNotFound, "the instance type " + kind + " is not in the catalogue any more"}
}

// Provider launches and ends machines for NodeClaims.
type Provider interface {
	// Name is the provider's short name for logs and metrics, such as "kwok".
	Name() string
	// NodeClass is the kind of node class that the provider serves.
	NodeClass() schema.GroupKind
	// Owns reports whether a provider ID has the form of this provider's machines. It makes no call, and does not say
	// whether the machine exists. Only package fleet acts on it.
	Owns(providerID string) bool
	// Catalog returns what the node class of that name offers now, including unavailable offerings. The value is
	// immutable: neither side changes it. Errors: [ErrNodeClassNotFound], [*NodeClassNotReadyError].
	Catalog(ctx context.Context, className string) (catalog.Catalog, error)
	// Launch launches the machine that the claim asks for, from the cheapest available compatible offering, reserved
	// ones first (P-11). It is idempotent by the claim's UID: another call for the same claim returns the same
	// instance (P-32). A request that lands after notAfter, by the cloud's clock, launches no machine, whether or not
	// its caller still waits. The cloud must ensure that, for example by a signature that expires. Zero means no
	// deadline. Errors: [ErrNodeClassNotFound], [*NodeClassNotReadyError], [*InsufficientCapacityError],
	// [*LaunchError], [ErrExpired].
	Launch(ctx context.Context, claim *karpenterv1.NodeClaim, notAfter time.Time) (Instance, error)
	// Terminate ends a machine. A nil error means accepted and not finished: call again to hear the result.
	// [ErrNotFound] means proved gone. A provider that waits, to end several machines in one call, calls inUse right
	// before that call, in any goroutine. If it returns true, the machine stays for now, and the caller must ask
	// again. A nil inUse means never in use.
	Terminate(ctx context.Context, providerID string, inUse func() bool) error
	// Get returns one machine, or [ErrNotFound] when it is proved gone or never existed.
	Get(ctx context.Context, providerID string) (Instance, error)
	// List returns every machine of this cluster that Get would return, ordered by provider ID. It may lag by a few
	// seconds: a missing machine proves nothing until Get confirms it.
	List(ctx context.Context) ([]Instance, error)
	// Drifted returns why the claim's machine no longer matches its node class. It is [TypeNotFound] if the instance
	// type is no longer offered.
	Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (Drift, error)
	// RepairPolicies are the node conditions after which a machine should be replaced or rebooted, see
	// [CheckRepairPolicies].
	RepairPolicies() []RepairPolicy
	// Notices returns the cloud's notices that nobody has acknowledged yet, ordered by ID (P-43). A notice is repeated
	// until it is acknowledged or its machine is gone, and may be repeated after that.
	Notices(ctx context.Context) (Notices, error)
	// Acknowledge tells the provider that a notice has been handled. An unknown one is not an error.
	Acknowledge(ctx context.Context, notice Notice) error
	// MarkUnavailable makes an offering unavailable for a while, in the catalogue and for launches, as after a refused
	// launch (P-31): the cloud has taken machines of it away. An unknown one changes nothing.
	MarkUnavailable(offering Offering)
}

// Instance is a machine.
type Instance struct {
	ProviderID string // as in the node's spec.providerID
	ImageID    string // "" when the provider has no images
	ClaimName  string
	ClaimUID   string // "" when unknown: another program launched the instance
	// Type, Zone and CapacityType are the offering that was used.
	Type, Zone, CapacityType string
	// Labels are all labels that the machine's node has or will have, including Type, Zone and CapacityType.
	Labels map[string]string
	// Capacity is what the machine has; Allocatable is what pods can use of it.
	Capacity, Allocatable corev1.ResourceList
	Price                 resources.Money // per hour; resources.Unpriced when unknown
	Launched              time.Time
	// Terminating is true from the accepted Terminate until the machine is gone.
	Terminating bool
	// Fence is the annotation that the claim must have when the machine is written on it.
	Fence Fence
}

// Fence is an annotation that a claim must have, with this value, when a machine is written on it. Another process may
// have given the machine to another claim by then; it changes the annotation first. The zero value requires nothing.
// With an annotation and no value, no claim may name the machine yet.
type Fence struct{ Annotation, Value string }

// Open reports whether the claim, as read, may name the machine, provided that nobody has written the claim since.
func (f Fence) Open(claim *karpenterv1.NodeClaim) bool {
	return f.Annotation == "" || f.Value != "" && claim.Annotations[f.Annotation] == f.Value
}
