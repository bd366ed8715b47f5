package world

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Config configures a Store.
type Config struct {
	// Now tells the time; it must not block. Nil means time.Now.
	Now func() time.Time
	// PromiseTTL is how long a created claim counts before a watch shows it, and how long a pod's nomination counts.
	// Zero means DefaultPromiseTTL.
	PromiseTTL time.Duration
	// RelaxMinValues lets pools launch with fewer values than their minValues demand (P-09).
	RelaxMinValues bool
	// IgnorePreferences leaves preferences of pods out of snapshots (P-05).
	IgnorePreferences bool
	// Off is what snapshots leave out although there are objects for it.
	Off Off
	// Devices makes the Store read ResourceClaims and what drivers publish, for pods that ask for devices (K-42).
	// Otherwise such pods are left alone.
	Devices bool
	// VolumeMemory is how long the Store remembers how many volumes a node could attach after the node is gone. Zero
	// means DefaultVolumeMemory, a negative value means not at all.
	VolumeMemory time.Duration
	// Fleet says whose pools, claims and nodes are. Nil means that all are ours, which is for tests.
	Fleet Owners
	// DefaultSpread are the cluster's default spread constraints, for pods that have none (P-03).
	DefaultSpread []corev1.TopologySpreadConstraint
	// PriceTolerance is how much more, in percent, fewer nodes may cost than the cheapest nodes (P-22).
	PriceTolerance int
	// NodeOverheadPrice is what a node costs per hour beside its price, unless its pool says otherwise (B-20).
	NodeOverheadPrice resources.Money
	// MaxNodes is the most nodes and NodeClaims that the whole cluster should have, 0 for no limit (K-53).
	MaxNodes int64
	// MaxClaims is the most NodeClaims that the whole cluster may have, 0 for no limit (K-53).
	MaxClaims int64
	// Commitments are capacity that is paid for whether nodes use it or not, in order of use (K-55).
	Commitments []cluster.Commitment
}

// Owners reports whether objects are ours; package fleet implements it. Snapshots leave out pools and claims of other
// programs. They do have the nodes of these, as capacity that nobody here may remove.
type Owners interface {
	OwnsPool(pool *karpenterv1.NodePool) bool
	OwnsClaim(claim *karpenterv1.NodeClaim) bool
	OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool
}

// everything owns all there is.
type everything struct{}

func (everything) OwnsPool(*karpenterv1.NodePool) bool   { return true }
func (everything) OwnsClaim(*karpenterv1.NodeClaim) bool { return true }
func (everything) OwnsNode(*corev1.Node, *karpenterv1.NodeClaim, *karpenterv1.NodePool) bool {
	return true
}

// Off is what feature gates switch off.
type Off struct {
	Overlays bool // NodeOverlays have no effect (P-11)
	Static   bool // nobody acts on spec.replicas (D-12)
	Reserved bool // nothing is launched in reservations (P-11)
	Buffers  bool // no room is kept for CapacityBuffers (K-35)
	First    bool // no node goes before what replaces it, unless its pool's annotation asks for that (K-48)
}

// DefaultPromiseTTL is longer than any healthy watch delay, and short enough that a broken promise does not hold up
// its pods for long.
const DefaultPromiseTTL = time.Minute

// ClassRef identifies a node class object.
type ClassRef struct {
	Group, Kind, Name string
}

// Store is the state of the cluster as far as the watches have shown it. It is safe for concurrent use; the package
// documentation says who owns what. Use [New].
type Store struct {
	config    Config
	published atomic.Pointer[published]
	version   atomic.Uint64 // written under mu
	buffered  atomic.Int64  // CapacityBuffers and NodePools that ask for room; written under mu

	mu     sync.Mutex // guards everything below
	space  *resources.Space
	shapes *cluster.Shapes
	graves graveyard

	pods      map[podKey]*podEntry
	nodes     map[string]*nodeEntry
	claims    map[string]*claimEntry
	pools     map[string]*poolEntry
	others    map[string]otherPool    // by name: pools of other programs
	daemons   map[string]*daemonEntry // by namespace/name
	offers    map[ClassRef]*offer
	links     links
	volumes   volumes
	storage   storage
	overlays  overlays
	workloads workloads
	admission admission
	pdbs      pdbs
	buffers   buffers
	headrooms map[string]*headroom // by name of the pool
	devices   deviceObjects
	loads     map[string]*load // by name of the node
	running   running
	usage     map[string]usage // by name of the pool

	untried     untried
	namespaces  map[string]*sighting
	nominations nominations
	onBinding   func(expected bool)
	promised    map[string]struct{}             // claims that no watch has shown yet
	protected   map[podKey]struct{}             // pods whose do-not-disrupt ends
	ending      map[podKey]struct{}             // pods that are ending and do not count as stuck yet
	passing     map[*podEntry]struct{}          // pods that were passed over
	chosen      map[string]map[podKey]*podEntry // by node: pods for which kube-scheduler has chosen it
	lastBound   time.Time                       // when kube-scheduler was last seen to bind a pod
	// claimsUnknown is why the hard limit of the whole cluster is unknown; "" when it is known.
	claimsUnknown string
	wake          time.Time // when the next snapshot differs by time alone; zero for never

	// What goes into the next snapshot.
	machines        *ordered[cluster.Node]
	pending         *ordered[cluster.Pod]
	repelling       *ordered[cluster.Pod]
	poolValues      *ordered[cluster.Pool]
	stalePools      map[string]struct{}
	daemonValues    []cluster.Daemon
	daemonsStale    bool
	namespaceLabels map[string]map[string]string
}

// published is a snapshot, and until when it holds if no event comes.
type published struct {
	snapshot *cluster.Snapshot
	until    time.Time // zero for ever
}

// New returns an empty Store.
func New(config Config) *Store {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.PromiseTTL <= 0 {
		config.PromiseTTL = DefaultPromiseTTL
	}
	if config.VolumeMemory == 0 {
		config.VolumeMemory = DefaultVolumeMemory
	}
	if config.Fleet == nil {
		config.Fleet = everything{}
	}
	s := &Store{
		config: config, space: resources.NewSpace(), shapes: cluster.NewShapes(),
		pods: map[podKey]*podEntry{}, nodes: map[string]*nodeEntry{}, claims: map[string]*claimEntry{},
		pools: map[string]*poolEntry{}, others: map[string]otherPool{},
		daemons: map[string]*daemonEntry{}, offers: map[ClassRef]*offer{},
		links:   links{nodesByProvider: index{}, claimsByProvider: index{}, claimsByNode: index{}},
		volumes: newVolumes(), storage: newStorage(), overlays: overlays{known: map[string]*overlayEntry{}},
		workloads: newWorkloads(),
		admission: newAdmission(), pdbs: newPDBs(), buffers: newBuffers(), headrooms: map[string]*headroom{},
		devices: newDeviceObjects(config.Devices),
		loads:   map[string]*load{}, running: newRunning(), usage: map[string]usage{},
		untried: newUntried(), namespaces: map[string]*sighting{}, nominations: newNominations(),
		promised: map[string]struct{}{}, protected: map[podKey]struct{}{}, ending: map[podKey]struct{}{},
		chosen:   map[string]map[podKey]*podEntry{},
		passing:  map[*podEntry]struct{}{},
		machines: newOrdered(compareNodes), poolValues: newOrdered(comparePools),
		pending: newOrdered(comparePods), repelling: newOrdered(comparePods),
		stalePools: map[string]struct{}{}, namespaceLabels: map[string]map[string]string{},
	}
	s.volumes.known.Others, s.volumes.known.Elsewhere = s.shared, s.elsewhere
	return s
}

// Apply stores the state of an object from a watch: a Pod, Node, NodeClaim, NodePool, NodeOverlay, DaemonSet,
// Namespace, PersistentVolumeClaim, PersistentVolume, StorageClass, VolumeAttachment, CSINode, CSIDriver,
// CSIStorageCapacity, PodDisruptionBudget, LimitRange or RuntimeClass, and those of [Store.Workloads],
// [Store.BufferKinds] and [Store.DeviceKinds]; other kinds are ignored. State that is older than what is known, and
// objects whose deletion was seen, are ignored. The error is for reporting only and says what cannot be understood.
// The Store then keeps the object in a form that is safe for planning: a pod that fits no node, a pool that launches
// nothing.
func (s *Store) Apply(obj client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tellBuffer(obj, false) || s.tellWorkload(obj, false) || s.tellAdmission(obj, false) ||
		s.tellDevice(obj, false) {
		return nil
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		return s.applyPod(obj)
	case *corev1.Node:
		s.applyNode(obj)
	case *karpenterv1.NodeClaim:
		return s.applyClaim(obj)
	case *karpenterv1.NodePool:
		return s.applyPool(obj)
	case *karpenterv1alpha1.NodeOverlay:
		return s.applyOverlay(obj)
	case *appsv1.DaemonSet:
		return s.applyDaemon(obj)
	case *corev1.Namespace:
		s.applyNamespace(obj)
	case *corev1.PersistentVolumeClaim:
		if s.stored(kindVolumeClaim, obj) {
			s.putVolumeClaim(objectKey(obj), obj)
		}
	case *corev1.PersistentVolume:
		if s.stored(kindVolume, obj) {
			s.putVolume(obj.Name, obj)
		}
	case *storagev1.StorageClass:
		if s.stored(kindClass, obj) {
			s.putClass(obj.Name, obj)
		}
	case *storagev1.VolumeAttachment:
		s.applyAttachment(obj, false)
	case *storagev1.CSINode:
		if s.stored(kindCSINode, obj) {
			s.putCSINode(obj.Name, obj)
		}
	case *storagev1.CSIDriver:
		if s.stored(kindCSIDriver, obj) {
			s.putDriver(obj.Name, obj)
		}
	case *storagev1.CSIStorageCapacity:
		if s.stored(kindCapacity, obj) {
			s.putCapacity(objectKey(obj), obj)
		}
	case *policyv1.PodDisruptionBudget:
		if s.stored(kindPDB, obj) {
			s.putPDB(obj, false)
		}
	}
	return nil
}

// Remove forgets an object that is gone. This is final for its UID. The object need not have been seen before.
func (s *Store) Remove(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tellBuffer(obj, true) || s.tellWorkload(obj, true) || s.tellAdmission(obj, true) || s.tellDevice(obj, true) {
		return
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		s.removePod(obj)
	case *corev1.Node:
		s.removeNode(obj)
	case *karpenterv1.NodeClaim:
		s.removeClaim(obj)
	case *karpenterv1.NodePool:
		s.removePool(obj)
	case *karpenterv1alpha1.NodeOverlay:
		s.removeOverlay(obj)
	case *appsv1.DaemonSet:
		s.removeDaemon(obj)
	case *corev1.Namespace:
		s.removeNamespace(obj)
	case *corev1.PersistentVolumeClaim:
		if s.discarded(kindVolumeClaim, obj) {
			s.putVolumeClaim(objectKey(obj), nil)
		}
	case *corev1.PersistentVolume:
		if s.discarded(kindVolume, obj) {
			s.putVolume(obj.Name, nil)
		}
	case *storagev1.StorageClass:
		if s.discarded(kindClass, obj) {
			s.putClass(obj.Name, nil)
		}
	case *storagev1.VolumeAttachment:
		s.applyAttachment(obj, true)
	case *storagev1.CSINode:
		if s.discarded(kindCSINode, obj) {
			s.putCSINode(obj.Name, nil)
		}
	case *storagev1.CSIDriver:
		if s.discarded(kindCSIDriver, obj) {
			s.putDriver(obj.Name, nil)
		}
	case *storagev1.CSIStorageCapacity:
		if s.discarded(kindCapacity, obj) {
			s.putCapacity(objectKey(obj), nil)
		}
	case *policyv1.PodDisruptionBudget:
		if s.discarded(kindPDB, obj) {
			s.putPDB(obj, true)
		}
	}
}

// Snapshot returns the state as of now. It is cheap when nothing has changed. Otherwise it costs the changes plus a
// copy of each changed list.
func (s *Store) Snapshot() *cluster.Snapshot {
	now := s.config.Now()
	if p := s.published.Load(); p.holds(s.version.Load(), now) {
		return p.snapshot
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	version := s.version.Load()
	if p := s.published.Load(); p != nil && p.snapshot.Version == version { // only the time of the next change is new
		s.published.Store(&published{snapshot: p.snapshot, until: s.wake})
		return p.snapshot
	}
	s.rebuildOffers()
	s.rebuildPools()
	s.rebuildDaemons()
	s.rebuildHeadroom(now)
	s.rebuildStorage()
	// The lists already have the order of cluster.New, which would have to sort each of them.
	fresh := &cluster.Snapshot{
		Version: version, Names: s.space.Names(),
		Pools: s.poolValues.list(), Nodes: s.machines.list(), Pending: s.pending.list(), Repelling: s.repelling.list(),
		Daemons: s.daemonValues, Namespaces: s.namespaceLabels, Guards: s.guardList(),
		MaxNodes: s.config.MaxNodes, Unseen: s.unseen(), Buffers: s.bufferPods(),
		MaxClaims: s.config.MaxClaims, Claims: s.claimCount(), ClaimsUnknown: s.claimsUnknown,
		Devices: s.deviceState(), Commitments: s.config.Commitments,
		Capacities: s.storage.left.list(), FreeVolumes: s.storage.free.list(),
	}
	s.published.Store(&published{snapshot: fresh, until: s.wake})
	return fresh
}

func (p *published) holds(version uint64, now time.Time) bool {
	return p != nil && p.snapshot.Version == version && (p.until.IsZero() || now.Before(p.until))
}

// Usage returns what the NodeClaims of a pool use, promises included. The applier checks it just before it writes
// (L-13). The components of the vector are the snapshot's Names.
func (s *Store) Usage(pool string) limit.Usage {
	now := s.config.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if e := s.pools[pool]; e != nil {
		return s.usage[pool].counts(e.base)
	}
	return s.usage[pool].all
}

// unseen counts the NodeClaims that are not in snapshots but count for the limit of the whole cluster.
func (s *Store) unseen() (n int64) {
	if s.config.MaxNodes == 0 { // the usual case, and there are many claims
		return 0
	}
	for _, e := range s.claims {
		if e.value == nil && s.nodeOf(e.object) == "" {
			n++
		}
	}
	return n
}

// LimitClaims sets the hard limit of the whole cluster: the configured one, or a lower one that other processes keep
// (K-53).
func (s *Store) LimitClaims(most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.MaxClaims != most || s.claimsUnknown != "" {
		s.config.MaxClaims, s.claimsUnknown = most, ""
		s.changed()
	}
}

// ClaimsUnknown sets why the hard limit of the whole cluster is unknown, and reports whether that is new. It holds
// until [Store.LimitClaims] is called (K-53).
func (s *Store) ClaimsUnknown(why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimsUnknown == why {
		return false
	}
	s.claimsUnknown = why
	s.changed()
	return true
}

// claimCount counts the NodeClaims for the hard limit of the whole cluster: all that exist, promises included.
func (s *Store) claimCount() int64 {
	if s.config.MaxClaims == 0 {
		return 0
	}
	return int64(len(s.claims))
}

// Ceiling returns the limit of the whole cluster and what counts for it, promises included. The applier checks it just
// before it writes (K-53).
func (s *Store) Ceiling() limit.Ceiling { return s.Snapshot().Ceiling() }

// Version returns the version of the current state; see the package documentation.
func (s *Store) Version() uint64 { return s.version.Load() }

// changed counts a change that a snapshot can show. The caller holds the lock.
func (s *Store) changed() { s.version.Add(1) }

func compareNodes(a, b *cluster.Node) int {
	if a.Initialized != b.Initialized {
		if a.Initialized {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(a.ID(), b.ID()), strings.Compare(a.Claim, b.Claim))
}
