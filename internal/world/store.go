package world

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Config is what a Store needs to know.
type Config struct {
	// Now tells the time; it must not block. Nil means time.Now.
	Now func() time.Time
	// PromiseTTL is how long a claim that was created but never seen, and a pod's nomination, are believed. Zero
	// means DefaultPromiseTTL.
	PromiseTTL time.Duration
}

// DefaultPromiseTTL outlives any healthy watch delay, and is short enough that a promise nobody kept does not hold up
// its pods for long.
const DefaultPromiseTTL = time.Minute

// ClassRef names a node class object.
type ClassRef struct {
	Group, Kind, Name string
}

// Store is the picture of the cluster as the watches have told it so far. It is safe for concurrent use; see the
// package's documentation for who owns what. Use [New].
type Store struct {
	config Config

	mu sync.Mutex
}

// New returns an empty Store.
func New(config Config) *Store {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.PromiseTTL <= 0 {
		config.PromiseTTL = DefaultPromiseTTL
	}
	return &Store{config: config}
}

// Apply takes in the state of an object that a watch has shown: a Pod, Node, NodeClaim, NodePool, DaemonSet or
// Namespace; other kinds are ignored. State that is older than what is known, and objects whose deletion was seen,
// are ignored. The error is for reporting only: it says what of the object cannot be understood, and the Store
// then holds the object in a form that keeps planning safe (a pod that fits no node, a pool that launches nothing).
func (s *Store) Apply(obj client.Object) error { return nil }

// Remove takes in that an object is gone. It is final for the object's UID; one that was never seen may be removed.
func (s *Store) Remove(obj client.Object) {}

// SetCatalog tells what a node class offers now. A catalogue without types takes away what was known: pools of the
// class are then blocked. An equal catalogue costs a comparison, the same one nothing; each distinct one is compiled
// once, whatever the number of classes and pools that use it. An invalid catalogue is an error and counts as none.
func (s *Store) SetCatalog(class ClassRef, c catalog.Catalog) error { return nil }

// Snapshot returns the picture as of now. It is cheap when nothing has changed, and else costs what has changed plus
// a copy of the list of nodes.
func (s *Store) Snapshot() *cluster.Snapshot { return nil }

// Promise tells that claim, as the API server returned it, was just created for pods. Until a watch shows it, it
// counts like one that was seen; if none does within the TTL, or its deletion is seen, it is forgotten. reserve is
// what counts against the pool's limits until the instance is known (plan.Launch.Reserve). The pods are nominated to
// the claim as by Nominate.
func (s *Store) Promise(claim *karpenterv1.NodeClaim, reserve resources.Vector, pods []plan.PodRef) {}

// Nominate tells that pods are expected to run on a node, or on a claim while that has no node. It is forgotten when
// the pod is bound or gone, when the node or claim is gone, and after the TTL.
func (s *Store) Nominate(pods []plan.PodRef, node string) {}

// Usage returns what the NodeClaims of a pool hold, promises included, for the applier's check just before it writes
// (L-13). The vector is in the components of the snapshot's Names.
func (s *Store) Usage(pool string) limit.Usage { return limit.Usage{} }

// Version returns the version of the picture; see the package's documentation.
func (s *Store) Version() uint64 { return 0 }
