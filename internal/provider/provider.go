// Package provider is the port to whatever makes machines: a cloud, or a simulation of one (P-50).
//
// A provider knows machines and nothing else: it never decides which claims exist, never retries on its own, never
// waits. It must be safe for concurrent use. Every failure that a caller can act on is one of the errors in errors.go;
// anything else means "unknown, ask again": the machine may or may not exist, and calling again with the same claim or
// provider ID is always right.
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

// DriftInstanceTypeNotFound is Karpenter's reason for a machine whose instance type is in no catalogue any more
// (D-06).
const DriftInstanceTypeNotFound = "InstanceTypeNotFound"

// Provider makes and ends machines for NodeClaims.
type Provider interface {
	// Name is the provider's short name for logs and metrics, such as "kwok".
	Name() string
	// NodeClass is the kind of node class that the provider serves.
	NodeClass() schema.GroupKind
	// Owns reports whether a provider ID is of the form that this provider's machines have. It asks nobody and says
	// nothing about whether there is such a machine. Package fleet alone acts upon it.
	Owns(providerID string) bool
	// Catalog returns what the node class of that name offers now, offerings that are not available included. The
	// value is immutable: neither side changes it afterwards. Errors: [ErrNodeClassNotFound],
	// [*NodeClassNotReadyError].
	Catalog(ctx context.Context, className string) (catalog.Catalog, error)
	// Launch makes the machine that the claim asks for, from the cheapest available offering that is compatible with
	// it, reserved ones before all others (P-11). It is idempotent by the claim's UID: a further call for the same
	// claim returns the same instance (P-32). A request that lands after notAfter, by the cloud's clock, makes no
	// machine, whether or not its caller still waits: the cloud has to see to that, as it does with a signature that
	// expires. Zero is never. Errors: [ErrNodeClassNotFound], [*NodeClassNotReadyError], [*InsufficientCapacityError],
	// [*LaunchError], [ErrExpired].
	Launch(ctx context.Context, claim *karpenterv1.NodeClaim, notAfter time.Time) (Instance, error)
	// Terminate ends a machine. nil means taken on and still going on: call again, and hear then what came of it.
	// [ErrNotFound] means proved gone. A provider that does not end it at once, to ask for several together, calls
	// inUse right before it does, in any goroutine: true keeps the machine for now, and whoever wants it to end asks
	// again. nil is never in use.
	Terminate(ctx context.Context, providerID string, inUse func() bool) error
	// Get returns one machine, or [ErrNotFound] when it is proved gone or never was.
	Get(ctx context.Context, providerID string) (Instance, error)
	// List returns every machine that Get would return, and only those of this cluster, ordered by provider ID. It may
	// lag behind by a few seconds: that a machine is missing from it proves nothing until Get says so too.
	List(ctx context.Context) ([]Instance, error)
	// Drifted returns why the claim's machine no longer matches its node class, in one CamelCase word, or "". That its
	// instance type is not offered any more is [DriftInstanceTypeNotFound].
	Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (reason string, err error)
	// RepairPolicies are the node conditions upon which a machine should be replaced, or rebooted: see
	// [CheckRepairPolicies].
	RepairPolicies() []RepairPolicy
	// Notices returns what the cloud has said about machines and nobody has acknowledged yet, ordered by ID (P-43). A
	// notice is repeated until it is acknowledged or its machine is gone, and may be repeated after that.
	Notices(ctx context.Context) (Notices, error)
	// Acknowledge says that all was done about a notice. One that is unknown is no error.
	Acknowledge(ctx context.Context, notice Notice) error
	// MarkUnavailable takes an offering out of the catalogue and of launches for a while, as if a launch had been
	// refused (P-31): machines of it were taken away. One that is unknown changes nothing.
	MarkUnavailable(offering Offering)
}

// Instance is a machine.
type Instance struct {
	ProviderID string // as in the node's spec.providerID
	ImageID    string // "" when the provider has no images
	ClaimName  string
	ClaimUID   string // "" when unknown: an instance that another program launched
	// Type, Zone and CapacityType are the offering that was taken.
	Type, Zone, CapacityType string
	// Labels are all labels that the machine's node has or will have, Type, Zone and CapacityType among them.
	Labels map[string]string
	// Capacity is what the machine has; Allocatable is what pods can use of it.
	Capacity, Allocatable corev1.ResourceList
	Price                 resources.Money // per hour; resources.Unpriced when unknown
	Launched              time.Time
	// Terminating is true once Terminate was accepted and until the machine is gone.
	Terminating bool
	// Fence is what the claim has to bear when it comes to name the machine.
	Fence Fence
}

// Fence is an annotation that a claim has to have, with this value, when a machine is written on it: by then another
// process may have given the machine to another claim, and has changed the annotation first. The zero value asks for
// nothing. With an annotation and no value no claim may name the machine yet.
type Fence struct{ Annotation, Value string }

// Open reports whether the claim, as it was read, may come to name the machine, provided that nobody has written it
// since.
func (f Fence) Open(claim *karpenterv1.NodeClaim) bool {
	return f.Annotation == "" || f.Value != "" && claim.Annotations[f.Annotation] == f.Value
}
