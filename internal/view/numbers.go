package view

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Numbers are the state of a cluster in numbers, without names of pods, nodes and claims (U-10).
type Numbers struct {
	// Waiting counts the waiting pods, by cause and by the pool of the cause. The cause is "" for pods that are newer
	// than the plan. The pool is "" for causes without one.
	Waiting map[CauseOfPool]int
	// Limited says for each limit of a pool whether pods of Waiting wait because of it.
	Limited map[PoolLimit]bool
	// Price is the price of the machines with a known price; Unpriced counts the others.
	Price    map[PoolCapacity]resources.Money
	Unpriced int
	// Staying counts the nodes that should go and stay.
	Staying map[CauseOfPool]int
	// Nodes counts nodes, and claims without one, by state. Each pool has all states. Nodes without a claim count as
	// NodeUnmanaged.
	Nodes map[PoolState]int
	// Offers counts the offerings that the requirements of each pool allow.
	Offers map[string]Offers
	// Hard has the pools with a hard limit of nodes.
	Hard map[string]HardLimit
	// Ceiling is the limit of the whole cluster (K-53).
	Ceiling limit.Ceiling
	// Room counts the pods for which CapacityBuffers request room.
	Room map[RoomState]int
	// Commitments are in the order in which they are used (K-55).
	Commitments []Commitment
}

// Commitment is capacity that is paid for anyway, and how much of it nodes use.
type Commitment struct {
	Name string `json:"name"`
	// Unit is UnitDollars or UnitInstances.
	Unit   string  `json:"unit"`
	Amount float64 `json:"amount"`
	Used   float64 `json:"used"`
}

// String says how much of the commitment is used.
func (c Commitment) String() string {
	if c.Unit == UnitInstances {
		return fmt.Sprintf("%s: %.0f of %.0f instances used", c.Name, c.Used, c.Amount)
	}
	return fmt.Sprintf("%s: $%.3f/h of $%.3f/h used", c.Name, c.Used, c.Amount)
}

// Units of commitments: dollars per hour at the on-demand price, or machines.
const (
	UnitDollars   = "dollars_per_hour"
	UnitInstances = "instances"
)

// CommitmentsOf returns how much of each commitment nodes use.
func CommitmentsOf(s *cluster.Snapshot) []Commitment {
	if len(s.Commitments) == 0 {
		return nil
	}
	var list []Commitment
	for i, used := range s.Ledger().Used(nil) {
		c := s.Commitments[i]
		own := Commitment{Name: c.Name, Unit: UnitDollars, Amount: c.PerHour.Dollars(), Used: used.PerHour.Dollars()}
		if c.Instances > 0 {
			own.Unit, own.Amount, own.Used = UnitInstances, float64(c.Instances), float64(used.Instances)
		}
		list = append(list, own)
	}
	return list
}

// CauseOfPool is a cause and the pool that it is about.
type CauseOfPool struct {
	Cause cause.Code
	Pool  string
}

// PoolLimit is a limit of a pool: LimitHardNodes, LimitSoftNodes or a resource.
type PoolLimit struct{ Pool, Limit string }

// Limits of a pool that are not about a resource.
const (
	LimitHardNodes = "hard_nodes"
	LimitSoftNodes = "soft_nodes"
	// LimitClusterNodes is --max-nodes, which each pool has when the cluster has it (K-53).
	LimitClusterNodes = "cluster_nodes"
)

// PoolCapacity is a pool and the capacity type of machines: spot, on-demand or reserved; "" when it is not known.
type PoolCapacity struct{ Pool, CapacityType string }

// PoolState is a state of nodes of a pool.
type PoolState struct {
	Pool  string
	State NodeState
}

// NodeState is a stage in the life of a node.
type NodeState string

// States of a node, in order: its machine was requested; the machine exists and has not joined; it has joined and is
// not initialized; the node is ready, or is not; it was chosen to go; it is being removed. A node without a claim is
// unmanaged.
const (
	NodeLaunching    NodeState = "launching"
	NodeJoining      NodeState = "joining"
	NodeInitializing NodeState = "initializing"
	NodeReady        NodeState = "ready"
	NodeNotReady     NodeState = "not_ready"
	NodeChosen       NodeState = "chosen"
	NodeDraining     NodeState = "draining"
	NodeUnmanaged    NodeState = "unmanaged"
)

// NodeStates returns the states of nodes with a claim.
func NodeStates() []NodeState {
	return []NodeState{NodeLaunching, NodeJoining, NodeInitializing, NodeReady, NodeNotReady, NodeChosen, NodeDraining}
}

// Offers counts offerings, and those that cannot be had at present.
type Offers struct {
	All         int `json:"all"`
	Unavailable int `json:"unavailable"`
}

// HardLimit is a hard limit of nodes, and how many claims count against it. Claims made by hand do not count.
type HardLimit struct{ Most, Used int64 }

// NumbersOf counts what a snapshot and the last plan for its waiting pods show. It leaves Staying to Stay.
func NumbersOf(s *cluster.Snapshot, p plan.Plan) Numbers {
	n := Numbers{Waiting: map[CauseOfPool]int{}, Limited: map[PoolLimit]bool{},
		Price:   map[PoolCapacity]resources.Money{},
		Staying: map[CauseOfPool]int{}, Nodes: map[PoolState]int{}, Offers: map[string]Offers{},
		Hard: map[string]HardLimit{}, Ceiling: s.Ceiling(), Room: roomNumbers(s, p), Commitments: CommitmentsOf(s)}
	for _, pool := range s.Pools {
		n.pool(s, pool)
	}
	for _, node := range s.Nodes {
		n.node(node)
	}
	n.waiting(s, p)
	return n
}

func (n *Numbers) pool(s *cluster.Snapshot, pool *cluster.Pool) {
	for _, state := range NodeStates() {
		n.Nodes[PoolState{pool.Name, state}] = 0
	}
	if pool.Limits.HardNodes != limit.None {
		n.Limited[PoolLimit{pool.Name, LimitHardNodes}] = false
		n.Hard[pool.Name] = HardLimit{Most: pool.Limits.HardNodes}
	}
	if pool.Limits.SoftNodes != limit.None {
		n.Limited[PoolLimit{pool.Name, LimitSoftNodes}] = false
	}
	if n.Ceiling.Set() {
		n.Limited[PoolLimit{pool.Name, LimitClusterNodes}] = false
	}
	for component, limited := range pool.Limits.Limited {
		if limited && component < len(s.Names) {
			n.Limited[PoolLimit{pool.Name, s.Names[component]}] = false
		}
	}
	if pool.Catalog != nil {
		n.Offers[pool.Name] = OffersOf(pool)
	}
}

// OffersOf counts the offerings that the requirements of a pool allow.
func OffersOf(pool *cluster.Pool) Offers {
	if pool.Catalog == nil {
		return Offers{}
	}
	offers := pool.Catalog.AsSold()
	for r := range pool.Requirements.All() {
		if pool.Catalog.Known(r.Key()) {
			pool.Catalog.Compatible(r).AndTo(offers)
		}
	}
	return Offers{All: offers.Count(), Unavailable: offers.Minus(pool.Catalog.Available).Count()}
}

func (n *Numbers) node(node *cluster.Node) {
	n.Nodes[PoolState{node.Pool, StateOf(node)}]++
	if node.Claim == "" {
		return
	}
	if hard, has := n.Hard[node.Pool]; has && !node.Foreign {
		hard.Used++
		n.Hard[node.Pool] = hard
	}
	switch {
	case !node.Launched && !node.Initialized: // there is no machine yet
	case node.Price == resources.Unpriced:
		n.Unpriced++
	default:
		n.Price[PoolCapacity{node.Pool, node.Labels[string(catalog.LabelCapacityType)]}] += node.Price
	}
}

// StateOf returns the state of a node.
func StateOf(node *cluster.Node) NodeState {
	switch {
	case node.Claim == "":
		return NodeUnmanaged
	case node.Deleting:
		return NodeDraining
	case node.Leaves():
		return NodeChosen
	case !node.Launched && !node.Registered && !node.Initialized:
		return NodeLaunching
	case !node.Registered && !node.Initialized:
		return NodeJoining
	case !node.Initialized:
		return NodeInitializing
	case node.NotReady || node.Rebooting:
		return NodeNotReady
	}
	return NodeReady
}

// waiting counts the pods without a node, by what the plan says of each.
func (n *Numbers) waiting(s *cluster.Snapshot, p plan.Plan) {
	holds := map[PoolLimit]bool{}
	said := sayings(s, p, func(u plan.Unplaced, group CauseOfPool) { held(u, group, holds) })
	for _, pod := range s.Pending {
		if pod.Node == "" {
			n.Waiting[said[pod.UID].group]++
		}
	}
	for which := range holds {
		n.Limited[which] = true
	}
}

// held notes the limit for which a group waits. Limits of other pools are not noted: other causes may exist there.
func held(u plan.Unplaced, group CauseOfPool, holds map[PoolLimit]bool) {
	for _, refusal := range u.Pools {
		if refusal.Pool != group.Pool {
			continue
		}
		switch group.Cause {
		case cause.HardLimitNodes:
			holds[PoolLimit{refusal.Pool, LimitHardNodes}] = true
		case cause.SoftLimitNodes:
			holds[PoolLimit{refusal.Pool, LimitSoftNodes}] = true
		case cause.ClusterLimitNodes, cause.ClusterLimitUnknown:
			holds[PoolLimit{refusal.Pool, LimitClusterNodes}] = true
		case cause.ResourceLimit:
			holds[PoolLimit{refusal.Pool, refusal.Last().Key}] = true
		}
	}
}

// Stay counts the nodes that should go and stay, from what the engine says of each and what is remembered of its pool.
// It is expensive when nearly all nodes should go and may not.
func (n *Numbers) Stay(s *cluster.Snapshot, terms engine.Terms, remembered func(pool string) Memory) {
	kept, going := engine.Kept(s, terms)
	for _, list := range [][]engine.KeptNode{kept, going} {
		for _, k := range list {
			stands := Remembered(k.Node.Pool, []engine.Standing{k.Standing}, remembered(k.Node.Pool))[0]
			if stands.Goes == "" && Standing(stands, k.Node.Pool).State == Held {
				n.Staying[CauseOfPool{stands.Cause, k.Node.Pool}]++
			}
		}
	}
}
