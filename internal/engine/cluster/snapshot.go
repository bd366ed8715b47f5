package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Pool is a NodePool as planning sees it.
type Pool struct {
	Name   string
	UID    string
	Weight int32
	// Blocked says why the pool launches nothing (not Ready, being deleted, paused); "" when it may (V-12).
	Blocked string
	// BlockedBy is the code of Blocked; "" stands for that of a pool that is not ready.
	BlockedBy cause.Code
	// Requirements are those of the template, its labels and the pool's own name together.
	Requirements requirement.Set
	Taints       []Taint // of the template, startup taints left out (P-08)
	// Catalog is what the pool's node class offers; nil when there is none.
	Catalog   *catalog.Index
	Limits    limit.Limits
	Used      limit.Usage
	MinValues []MinValues // ordered by key
	// RelaxMinValues launches with fewer values than MinValues demands rather than not at all (P-09, BestEffort).
	RelaxMinValues bool
	// FreeSlots are the numbers of the slots in which a claim may be made, ascending (limit.Usable); nil when the pool
	// has no slots.
	FreeSlots []int
	// SurgeSlots are the slots of a static pool in which a claim may be made that replaces another one.
	SurgeSlots []int
	// Static is set for a pool that keeps Replicas nodes, whatever pods there are (D-12).
	Static   bool
	Replicas int64
	// MinNodes is how many nodes a pool that is not static always keeps, 0 for no such number (K-54).
	MinNodes int64
	// Dormant is set for a static pool whose Replicas nobody acts on: its nodes stay, and none is launched, trimmed or
	// replaced.
	Dormant bool
	// Gentle is set for a pool that goes down to its soft node limit within its budgets, since nobody saw how the
	// excess came about.
	Gentle bool
	// Held is set for a pool whose nodes are to stay: none goes for a limit, nor for fewer replicas (K-52). Its
	// budgets, which are not in the snapshot, are 0 then.
	Held bool
	// Invalid is set when part of the specification cannot be understood; Blocked says what. Nothing is removed for
	// such a pool's limits: they may be that part.
	Invalid bool
	// ExpiresGracefully lets expired nodes be replaced within the budgets (D-07); otherwise they are removed at once,
	// elsewhere.
	ExpiresGracefully bool
	// TerminateFirst lets one node at a time go before its replacement comes, where the hard limit leaves no room for
	// that (K-48).
	TerminateFirst bool
	// NoneFirst keeps each node until its replacement is there, even in a static pool at its limit, or in a
	// reservation that is used up. It does not apply to TerminateFirst (K-48).
	NoneFirst bool
	// Consolidates says which nodes may go to save money (D-03).
	Consolidates Consolidation
	// PriceTolerance is how much more fewer nodes may cost than the cheapest ones, in percent (P-22).
	PriceTolerance int
	// LocalVolumes is set for a pool whose nodes bring volumes of classes for which nothing makes volumes (K-59).
	LocalVolumes bool
	// NodeOverheadPrice is what a node of the pool costs per hour beside its price, 0 or more (B-20). It counts
	// wherever nodes are compared, but prices that people see do not include it.
	NodeOverheadPrice resources.Money
	// OnDemandPercent is the share of the pool's nodes, in percent, that must not be spot. It decides for launches
	// that may be either; 0 allows any mix (K-55).
	OnDemandPercent int
}

// Consolidation is a pool's consolidationPolicy (D-03).
type Consolidation int

// The policies: WhenUnderutilized is also known as WhenEmptyOrUnderutilized.
const (
	WhenUnderutilized Consolidation = iota
	WhenEmpty
	Balanced
)

// Kept returns the Replicas of a static pool, limit.None for another.
func (p *Pool) Kept() int64 {
	if p.Static {
		return p.Replicas
	}
	return limit.None
}

// Slots returns how many slots there are for the pool's claims, limit.None when they need none.
func (p *Pool) Slots() int64 { return p.Limits.Slots(p.Kept()) }

// MinValues demands that a claim keeps at least Count distinct values of a label to choose from (P-09).
type MinValues struct {
	Key   requirement.Key
	Count int
}

// Snapshot is the picture of a cluster at one version. It is immutable; use [New] to make one.
type Snapshot struct {
	Version uint64
	// Names are the resource names behind every vector of the snapshot.
	Names resources.Names
	// Pools in the order in which they are tried: weight, highest first, then name (P-10).
	Pools []*Pool
	// Nodes: initialized ones first, then those on their way; each by name.
	Nodes []*Node
	// Pending pods need a node: provisionable ones, and those whose node is being removed (P-01). Ordered by
	// namespace, name and UID.
	Pending []*Pod
	// Buffers are pods that nobody has made: they stand for the room that CapacityBuffers keep free (K-37). They come
	// after all pending pods, and no node has them. Ordered as Pending; see [Shape.Buffer].
	Buffers []*Pod
	// Repelling are the running pods with required anti-affinity, which binds pending pods too (P-04), in the order of
	// Pending.
	Repelling []*Pod
	// Daemons ordered by name.
	Daemons []Daemon
	// Namespaces maps a namespace's name to its labels.
	Namespaces map[string]map[string]string
	// Guards are the PodDisruptionBudgets, ordered by namespace and name: they decide how many pods leave at a time.
	Guards []Guard
	// Leaving are nodes that a what-if leaves out of Nodes and whose pods run until they are evicted, in any order.
	Leaving []*Node
	// Closed are nodes on which a what-if places nothing, though what runs there counts, in any order.
	Closed []*Node
	// MaxNodes is the most nodes that the whole cluster should have, 0 for no limit (K-53); see [Snapshot.Ceiling].
	MaxNodes int64
	// Unseen is how many NodeClaims count for MaxNodes and are not among Nodes: another program's, on their way.
	Unseen int64
	// MaxClaims is the most NodeClaims that the whole cluster may have, 0 for no limit (K-53); Claims how many there
	// are, counted with a limit only.
	MaxClaims, Claims int64
	// ClaimsUnknown says why MaxClaims is not known at present: nothing is launched then. "" when it is.
	ClaimsUnknown string
	// Devices says which nodes have the devices that pods ask for by ResourceClaims (K-42); nil when nobody can tell.
	Devices Devices
	// Capacities are what drivers have left for volumes, FreeVolumes the volumes that no claim has; both by name. They
	// hold only classes for which it matters (K-58, K-59).
	Capacities  []StorageCapacity
	FreeVolumes []FreeVolume
	// Held says, for pools and what pods ask for, why no node is launched for such pods at present (P-35).
	Held map[Hold]string
	// Commitments are paid for whether nodes use them or not (K-55). Offers of a pool's Catalog name them by number,
	// from 1.
	Commitments []Commitment
	// Drawing are further nodes that count for Commitments and for [Snapshot.Mix]. Undrawn are nodes of the snapshot
	// that do not count, since they go.
	Drawing, Undrawn []*Node
	// Reserving are nodes that a what-if leaves out, and that hold their reservations until they are gone, in any
	// order.
	Reserving []*Node
	// Vacant are nodes that a what-if has taken out of Reserving. A provider that says that a reservation is used up
	// still counts them.
	Vacant []*Node

	change Change
}

// Guard is a PodDisruptionBudget.
type Guard struct {
	Namespace, Name string
	Pods            Selector
	// AtOnce is how many of its pods may leave before others are healthy. Pods that are not healthy now count as gone.
	AtOnce int
}

// Hold is a pool, and an ask of pods (Shape.Ask) for which it launches no node at present.
type Hold struct {
	Pool, Ask string
}

// CountClaims returns how many of these nodes have a NodeClaim.
func CountClaims(nodes []*Node) (n int64) {
	for _, node := range nodes {
		if node.Claim != "" {
			n++
		}
	}
	return n
}

// New returns a snapshot of these parts in canonical order. The lists are copied, what they point to is shared.
func New(parts Snapshot) *Snapshot {
	s := parts
	s.Pools = sorted(parts.Pools, func(a, b *Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	s.Nodes = sorted(parts.Nodes, compareNodes)
	s.change = Change{}
	s.Pending, s.Repelling = sorted(parts.Pending, ComparePods), sorted(parts.Repelling, ComparePods)
	s.Buffers = sorted(parts.Buffers, ComparePods)
	s.Guards = slices.Clone(parts.Guards)
	slices.SortFunc(s.Guards, func(a, b Guard) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	s.Daemons = sorted(parts.Daemons, func(a, b Daemon) int { return strings.Compare(a.Name, b.Name) })
	return &s
}

func compareNodes(a, b *Node) int {
	return cmp.Or(rank(a)-rank(b), strings.Compare(a.ID(), b.ID()), strings.Compare(a.Claim, b.Claim))
}

// ComparePods is the order of pods in a snapshot: by namespace, name and UID.
func ComparePods(a, b *Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.UID, b.UID))
}

func rank(n *Node) int {
	if n.Initialized {
		return 0
	}
	return 1
}

func sorted[T any](list []T, compare func(a, b T) int) []T {
	own := slices.Clone(list)
	slices.SortFunc(own, compare)
	return own
}

// Cost is what these nodes cost per hour in all: their prices, and for each what its pool adds
// (Pool.NodeOverheadPrice). It is [resources.Unpriced] when the price of one is not known. With Commitments it is what
// would be saved without these nodes: what others do not use of a commitment is paid for all the same.
func (s *Snapshot) Cost(nodes ...*Node) resources.Money { return s.cost(s.Ledger(), nodes) }

// Costs returns [Snapshot.Cost] for callers that ask often: the ledger is made once.
func (s *Snapshot) Costs() func(nodes ...*Node) resources.Money {
	ledger := s.Ledger()
	return func(nodes ...*Node) resources.Money { return s.cost(ledger, nodes) }
}

func (s *Snapshot) cost(ledger *Ledger, nodes []*Node) resources.Money {
	sum := resources.Money(0)
	for _, node := range nodes {
		if node.Price == resources.Unpriced {
			return resources.Unpriced
		}
		sum += node.Price + s.Overhead(node.Pool)
	}
	return sum - ledger.Freed(nodes...)
}

// Overhead is what a node of the pool of that name costs per hour beside its price; 0 when there is no such pool.
func (s *Snapshot) Overhead(name string) resources.Money {
	if pool := s.Pool(name); pool != nil {
		return pool.NodeOverheadPrice
	}
	return 0
}

// Ceiling returns the limits on the nodes of the whole cluster, with the nodes that there are (K-53).
func (s *Snapshot) Ceiling() limit.Ceiling {
	return limit.Ceiling{Most: s.MaxNodes, Used: int64(len(s.Nodes)+len(s.Closed)) + s.Unseen,
		HardMost: s.MaxClaims, Claims: s.Claims, Unknown: s.ClaimsUnknown}
}

// Pool returns the pool of that name, or nil.
func (s *Snapshot) Pool(name string) *Pool {
	for _, pool := range s.Pools {
		if pool.Name == name {
			return pool
		}
	}
	return nil
}
