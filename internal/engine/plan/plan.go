// Package plan is what the engine decides, as data: what to launch, which pods go where, what to remove, and why
// some pods stay unplaced. The applier carries plans out, the command line prints them, tests compare them.
//
// A plan is a value: it holds no pointer into a snapshot's objects but names and UIDs, and [Plan.String] is stable
// byte for byte (P-20). Reasons are values with fields (P-12), turned into text, events and metrics at the edge.
//
// The package imports the standard library only.
package plan

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Plan is the outcome of one round of planning.
type Plan struct {
	BasedOn uint64 // version of the snapshot
	Names   resources.Names
	// Launches in the order in which they were planned.
	Launches []Launch
	// Nominations of pods to capacity that exists or is on its way, ordered by node and pod.
	Nominations []Nominate
	// Unplaced pods, ordered by pod.
	Unplaced []Unplaced
	// Buffers is where the room is that CapacityBuffers keep free (K-37), and for which buffer pods there is none.
	// Room on new nodes stands in Launches.
	Buffers Buffers
	// Removes, ordered by claim.
	Removes []Remove
	// Stays lists nodes that are due to go and cannot, ordered by claim: not all of them, but those that the search
	// came upon.
	Stays []Stay
	// Held is, by pool, how many empty nodes a budget keeps for now; nil when none.
	Held map[string]int
	// Order holds the UIDs of all placed pods, nominated or launched for, in the order in which they were placed.
	// Proofs follow it; nothing else needs it.
	Order []string
}

// Buffers is what becomes of the buffer pods of a snapshot. Each is in one list only, here or in a launch.
type Buffers struct {
	// Places are those on capacity that exists or is on its way, ordered by node and pod. No pod is told of them.
	Places []Nominate
	// Unplaced are those without room, ordered by pod.
	Unplaced []Unplaced
}

// PodRef names a pod.
type PodRef struct {
	Namespace, Name, UID string
}

// String returns namespace/name.
func (p PodRef) String() string { return p.Namespace + "/" + p.Name }

// Launch is a NodeClaim to be made (P-24). Launches may share the lists that they hold: nobody changes them.
type Launch struct {
	Pool    string
	PoolUID string
	// Slot is the number of the hard-limited pool's slot that the claim takes, or NoSlot.
	Slot int
	// Requirements are those of the pool and of the pods together, without the instance types.
	Requirements requirement.Set
	// Types are the names of the instance types that fit, cheapest offering first, at most MaxTypes.
	Types []string
	// Relaxed holds, for labels with fewer values left than the pool's minValues demands, how many are left; nil when
	// there are none (P-09).
	Relaxed map[requirement.Key]int
	// Labels are label values that the plan relies on beyond those a node gets from its requirements: a custom label
	// which the pool leaves open and the pods, or nobody, chose.
	Labels map[string]string
	// Requests are those of the pods and daemons together, in base units.
	Requests resources.Vector
	// Reserve is the most capacity that any of Types has, in every component: what counts against limits until the
	// instance is known.
	Reserve resources.Vector
	Pods    []PodRef // ordered by namespace and name; none for a node of a static pool
	// Buffers are the buffer pods that it has room for, ordered as Pods. It is launched for them if Pods is empty.
	Buffers []PodRef
	// For is what Pods ask for (cluster.Shape.Ask), sorted; at most MaxAsks of them.
	For []string
	// Drivers are the CSI drivers, sorted, without which kube-scheduler binds some of Pods to no node (K-58).
	Drivers []string
	// Replaces are the names of the claims that this one is to replace, sorted; nil when it replaces none. They go on
	// the claim, so that nobody takes what comes for an excess (L-31).
	Replaces []string
	// Together is how many launches replace these claims, this one counted. It goes on the claim as well: the claims
	// are kept until all that replace them are there (D-10).
	Together int
	// Cheapest is the offering that comes first by price; the provider may have to take another.
	Cheapest Choice
	// Zones and CapacityTypes that Requirements and Types leave open, sorted.
	Zones, CapacityTypes []string
}

// NoSlot is the Slot of a launch in a pool without a hard limit.
const NoSlot = -1

// MaxTypes bounds the instance types of one claim: enough for any spot strategy, and what Karpenter keeps.
const MaxTypes = 600

// AskReplicas is what a launch of a static pool is for: no pod asks for it.
const AskReplicas = "replicas"

// AskFloor is what a launch is for when its pool has fewer nodes than it always keeps: no pod asks for it either
// (K-54).
const AskFloor = "min-nodes"

// ForItself reports whether a launch with this ask is for the node itself, and for no pod.
func ForItself(ask string) bool { return ask == AskReplicas || ask == AskFloor }

// MaxAsks bounds what is noted of the pods that a claim is for: they are nearly always alike.
const MaxAsks = 30

// Choice is an offering.
type Choice struct {
	Type, Zone, CapacityType string
	Price                    resources.Money // per hour
	// Commitment is what pays for it beside Price (K-55).
	Commitment Commitment
}

// Commitment is what pays the whole price of a node, and how much per hour; "" for none.
type Commitment struct {
	Name string
	Pays resources.Money
}

// Prepaid names what pays for the node whether it runs or not: a commitment (K-55), or reservations of machines (P-11)
// by their type and zone. "" for neither.
func (c Choice) Prepaid() string {
	switch {
	case c.Commitment.Name != "":
		return "commitment " + c.Commitment.Name
	case c.CapacityType == catalog.Reserved:
		return "the reservation of " + c.Type + " in " + c.Zone
	}
	return ""
}

// Listed is the price of the offering on its own, whoever pays it.
func (c Choice) Listed() resources.Money { return c.Price + c.Commitment.Pays }

// Nominate says that a pod is expected to run on capacity that exists or is on its way.
type Nominate struct {
	Pod PodRef
	// Node is the name of the Node, or of the claim while that has no node.
	Node string
}

// First says why a node goes before its replacement comes (K-48), spelled as in the label terminate_first_reason of
// metrics.
type First string

// Why a node goes first.
const (
	FirstAtHardLimit    First = "hard-limit"           // its pool is at its hard limit, and lets one go
	FirstAtStaticLimit  First = "static-at-limit"      // its static pool has no room for one more
	FirstForReservation First = "no-reserved-capacity" // its replacement only fits into the reservation that it holds
)

// Remove is a node to be taken away.
type Remove struct {
	Claim    string
	ClaimUID string
	Node     string // "" when the claim has none
	Pool     string
	Reason   DisruptionReason
	Price    resources.Money // per hour that is saved; resources.Unpriced when unknown
	First    First           // why it goes before its replacement comes; "" when it does not (K-48)
	// Why says in words what the reason leaves open, such as count and limit; "" when there is nothing to add.
	Why string
}

// Stay is a node that is due to go, and why it stays all the same.
type Stay struct {
	Claim    string
	ClaimUID string
	Why      string
	// Lead is the text in Why before the pod that would find no place, and Homeless says why it would find none.
	Lead     string
	Homeless Unplaced
}

// DisruptionReason is why a node goes, spelled as in budgets, events and metrics.
type DisruptionReason string

// The reasons of V-07.
const (
	Empty         DisruptionReason = "Empty"
	Underutilized DisruptionReason = "Underutilized"
	Drifted       DisruptionReason = "Drifted"
	// Expired nodes are removed at once, unless their pool asks for them to be replaced within its budgets (D-07).
	Expired DisruptionReason = "Expired"
)

// The reasons of removals that no budget limits: a node is above a limit of its pool (L-40), or above the replicas of
// a static pool (D-12).
const (
	NodeLimitExceeded DisruptionReason = "NodeLimitExceeded"
	ReplicasExceeded  DisruptionReason = "ReplicasExceeded"
)

// ReplacementAbandoned is why a node goes that was launched to replace others which then stayed (D-10).
const ReplacementAbandoned DisruptionReason = "ReplacementAbandoned"

// Unhealthy is why a node is repaired: a condition of it holds for longer than is tolerated (D-13).
const Unhealthy DisruptionReason = "Unhealthy"

// Price returns the price per hour of all launches at their cheapest.
func (p Plan) Price() resources.Money {
	var sum resources.Money
	for _, launch := range p.Launches {
		sum += launch.Cheapest.Price
	}
	return sum
}

// Cost returns what all launches cost per hour at their cheapest, each with what overhead says for its pool.
func (p Plan) Cost(overhead func(pool string) resources.Money) resources.Money {
	sum := p.Price()
	for _, launch := range p.Launches {
		sum += overhead(launch.Pool)
	}
	return sum
}

// PlacesOf returns the buffer pods that have their room on one node; they stand together.
func (p Plan) PlacesOf(node string) []Nominate {
	return Plan{Nominations: p.Buffers.Places}.NominationsOf(node)
}

// NominationsOf returns the nominations to one node; they stand together.
func (p Plan) NominationsOf(node string) []Nominate { return on(node, p.Nominations) }

// on returns the part of a list, which is ordered by node, that is about one node.
func on(node string, list []Nominate) []Nominate {
	first, found := slices.BinarySearchFunc(list, node, func(n Nominate, node string) int {
		return strings.Compare(n.Node, node)
	})
	if !found {
		return nil
	}
	last := first
	for last < len(list) && list[last].Node == node {
		last++
	}
	return list[first:last]
}

// Empty reports whether there is nothing to do: neither a launch nor a removal.
func (p Plan) Empty() bool { return len(p.Launches) == 0 && len(p.Removes) == 0 }
