package cluster

import (
	"strconv"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// The labels that planning itself knows.
const (
	LabelHostname = "kubernetes.io/hostname"
	LabelPool     = "karpenter.sh/nodepool"
)

// Node is capacity that exists or is on its way: a node, a NodeClaim that has no node yet, or both joined.
type Node struct {
	Name     string // of the Node object; "" while there is none
	Claim    string // name of the NodeClaim; "" for a node that is not ours
	ClaimUID string
	Pool     string // name of the NodePool; "" for none
	// Labels are those of the Node object or, while there is none, those that the claim already decides.
	Labels map[string]string
	// Open is what a claim without an instance still leaves open beyond Labels: for each key, the values that may
	// come. Empty once launched.
	Open requirement.Set
	// Taints are those that count for planning: on a node that is not yet initialized, startup taints and the passing
	// taints of a new node are left out (P-08).
	Taints      []Taint
	Allocatable resources.Vector
	// Pods are bound to the node and not finished, in any order.
	Pods []*Pod
	// Coming are the pods that kube-scheduler is about to bind to the node, in the order of ComparePods. They are
	// neither among Pods nor pending.
	Coming []*Pod
	// Used is what Pods request together, and what kube-scheduler keeps for others, such as Coming.
	Used resources.Vector
	// Ports are taken by Pods.
	Ports []HostPort

	// Attached are the node's volumes of CSI drivers with limits, sorted (VolumeRef.Name): attached ones, and those of
	// Pods.
	Attached []string
	// Drivers are the CSI drivers on the node that some pods need (Shape.Drivers), sorted.
	Drivers []string
	// Fresh is set for a short while after the node was initialized: what storage it has may not be published yet.
	Fresh bool

	Initialized bool
	// Launched and Registered are the stages of the claim before that.
	Launched, Registered bool
	// RegisteredAt is when the node joined, in Unix seconds; 0 before.
	RegisteredAt int64
	// Foreign is set for a claim that was not made from its pool but by hand (L-15).
	Foreign bool
	// Drifted is set while the claim's condition says that it no longer is what its pool would make.
	Drifted bool
	// Expired is set while the claim's condition says that it is older than its pool allows.
	Expired bool
	// For holds the asks (Shape.Ask) of the pods for which this claim's node was launched; nil when it was launched
	// otherwise.
	For []string
	// Replaces are the names of the claims that this one is to replace (D-10).
	Replaces []string
	// Replaced is set on a node that was launched to replace others which have gone.
	Replaced bool
	// Together is how many claims were made to replace those, this one counted; 0 for a claim that replaces none.
	Together int
	// Deleting is set when the node or its claim is being removed: nothing may be placed on it, and its pods are
	// planned for elsewhere (P-01).
	Deleting bool
	// Disrupting is set from the moment that the intent to remove the node stands on the API object.
	Disrupting bool
	// Rebooting is set beside Disrupting on a node that is closed only because it reboots, and stays (K-49).
	Rebooting bool
	NotReady  bool
	// DoNotDisrupt is set while an annotation on the node or the claim forbids voluntary disruption (V-15).
	DoNotDisrupt bool
	// Held says which pod, PDB or the like forbids that the node is disrupted now; "" when nothing does (D-02).
	Held string
	// DrainEnds is set while the claim has a terminationGracePeriod: its pods are gone by then, whatever they ask for.
	DrainEnds bool
	// ConsolidatableAt is when the node's quiet time (consolidateAfter) ends, in Unix seconds; Never when it does not.
	ConsolidatableAt int64
	Created          int64 // Unix seconds
	InstanceType     string
	Price            resources.Money // per hour; resources.Unpriced when unknown
}

// Consolidatable reports whether the pool and the node's quiet time let the node go at now (Unix seconds) to save
// money (D-03).
func (n *Node) Consolidatable(pool *Pool, now int64) bool {
	return pool != nil && !pool.Static && pool.Consolidates != WhenEmpty && n.ConsolidatableAt <= now
}

// ReplacementRest is for how many seconds a node that was launched to replace others is not replaced itself to save
// money (D-15). kube-scheduler seldom puts pods where a plan expects them, so a new node may look too large again.
// Chasing that costs more than it saves: a machine is paid for a minute at least, and pulls its images anew.
const ReplacementRest = 5 * 60

// ReplaceableAt is when the node may be replaced to save money, in Unix seconds; 0 for one that was launched for pods.
// It may be removed earlier, if its pods fit elsewhere.
func (n *Node) ReplaceableAt() int64 {
	if len(n.Replaces) == 0 && !n.Replaced {
		return 0
	}
	return n.Created + ReplacementRest
}

// Never is the ConsolidatableAt of a node that may not be consolidated.
const Never int64 = 1<<63 - 1

// Leaves reports whether the node is removed, or chosen for that. One that only reboots stays.
func (n *Node) Leaves() bool { return n.Deleting || n.Disrupting && !n.Rebooting }

// ID returns the name of the Node object or, while there is none, of the claim.
func (n *Node) ID() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Claim
}

// MayBeReserved reports whether the node runs in a reservation, or may come to.
func (n *Node) MayBeReserved() bool {
	if value, present := n.Labels[string(catalog.LabelCapacityType)]; present {
		return value == catalog.Reserved
	}
	return n.Open.Holds(catalog.LabelCapacityType) && n.Open.Get(catalog.LabelCapacityType).Has(catalog.Reserved)
}

// HasRoom reports whether the node has room for want, if daemons that are still to come take nothing.
func (n *Node) HasRoom(want resources.Vector) bool {
	for component, amount := range want {
		if amount > 0 && resources.Sum(n.Allocatable.At(component), -n.Used.At(component)) < amount {
			return false
		}
	}
	return true
}

// Satisfies reports whether the node, or whatever instance comes for its claim, is sure to satisfy the set. A key of
// which the node knows nothing counts as an absent label.
func (n *Node) Satisfies(set requirement.Set) bool {
	for r := range set.All() {
		value, present := n.Labels[string(r.Key())]
		switch {
		case present:
			if !r.Has(value) {
				return false
			}
		case n.Open.Holds(r.Key()):
			open := n.Open.Get(r.Key())
			if !open.And(r).Equal(open) {
				return false
			}
		case r.Key() == LabelHostname && n.Name == "":
			if !n.named(r) {
				return false
			}
		case !r.AllowsAbsent():
			return false
		}
	}
	return true
}

// Admits reports whether the shape's node selection is sure to accept the node; taints and room are not looked at.
func (n *Node) Admits(s *Shape) bool { return accepts(s, n.Satisfies, n.named) }

// MightAdmit is Admits for callers that must be prepared: what comes for the node's claim may turn out to be accepted.
func (n *Node) MightAdmit(s *Shape) bool { return accepts(s, n.mightSatisfy, n.mightBeNamed) }

func (n *Node) mightSatisfy(set requirement.Set) bool {
	for r := range set.All() {
		_, present := n.Labels[string(r.Key())]
		switch {
		case !present && n.Open.Holds(r.Key()):
			if !n.Open.Get(r.Key()).Intersects(r) {
				return false
			}
		case !present && r.Key() == LabelHostname:
			if !n.mightBeNamed(r) {
				return false
			}
		case !n.Satisfies(requirement.NewSet(r)):
			return false
		}
	}
	return true
}

func accepts(s *Shape, satisfies func(requirement.Set) bool, named func(requirement.Requirement) bool) bool {
	if len(s.Alternatives) == 0 {
		return true
	}
	for _, alternative := range s.Alternatives {
		if satisfies(alternative.Labels) && named(alternative.Names) {
			return true
		}
	}
	return false
}

// named reports whether the node's name is sure to satisfy names. The name of a node to come is not known, so nothing
// can ask for it. Most likely it is the claim's, so names must not exclude that.
func (n *Node) named(names requirement.Requirement) bool {
	if n.Name != "" {
		return names.Has(n.Name)
	}
	_, finite := names.Values()
	return !finite && names.Has(n.Claim)
}

// mightBeNamed reports whether the node may turn out to have a name that satisfies names: its claim's, or one that
// nobody knows yet.
func (n *Node) mightBeNamed(names requirement.Requirement) bool {
	if n.Name != "" {
		return names.Has(n.Name)
	}
	_, finite := names.Values()
	return !finite && names.AllowsPresent() || names.Has(n.Claim)
}

// Untolerated returns the first taint, in the order of taints, that keeps a pod with these tolerations away. Taints
// that only ask (PreferNoSchedule) never do.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if taint.Effect == PreferNoSchedule {
			continue
		}
		if !tolerated(taint, tolerations) {
			return taint, true
		}
	}
	return Taint{}, false
}

// Unwelcome returns how many taints that only ask (PreferNoSchedule) these tolerations do not answer.
func Unwelcome(taints []Taint, tolerations []Toleration) int {
	n := 0
	for _, taint := range taints {
		if taint.Effect == PreferNoSchedule && !tolerated(taint, tolerations) {
			n++
		}
	}
	return n
}

func tolerated(taint Taint, tolerations []Toleration) bool {
	for _, t := range tolerations {
		if t.tolerates(taint) {
			return true
		}
	}
	return false
}

func (t Toleration) tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case TolerationExists:
		return true
	case "", TolerationEqual:
		return t.Key != "" && t.Value == taint.Value
	case TolerationLt, TolerationGt:
		want, err := strconv.ParseInt(t.Value, 10, 64)
		if err != nil {
			return false
		}
		have, err := strconv.ParseInt(taint.Value, 10, 64)
		if err != nil {
			return false
		}
		if t.Operator == TolerationLt {
			return have < want
		}
		return have > want
	}
	return false
}

// String prints the taint as kubectl writes it: key=value:effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
