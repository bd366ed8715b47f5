// Package limit is the one arithmetic of node pool limits, used by the engine when it plans and by the applier
// when it re-checks a plan against the truth (L-01 to L-14). Two arithmetics would sooner or later disagree.
//
// A pool has soft limits on any resource and on the number of nodes, and may have a hard limit on the number of
// nodes. For provisioning both block alike (L-10); they differ in what disruption may do and in how the hard one is
// enforced: by slots, fixed names that the API server's uniqueness keeps single (L-14, [SlotName]).
//
// The package imports the standard library only.
package limit

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// None is the value of a node limit that is not set.
const None int64 = -1

// Limits are the limits of one pool. The zero value is not useful: start from [Unlimited].
type Limits struct {
	// Resources holds the soft limit of each limited component, in base units; Limited says which are.
	Resources resources.Vector
	Limited   []bool
	SoftNodes int64 // None when not set
	HardNodes int64 // None when not set
}

// Unlimited returns limits that block nothing.
func Unlimited() Limits { return Limits{SoftNodes: None, HardNodes: None} }

// With returns the limits with a soft limit for one component.
func (l Limits) With(component int, amount int64) Limits {
	l.Resources = l.Resources.With(component, amount)
	limited := make([]bool, len(l.Resources))
	copy(limited, l.Limited)
	limited[component] = true
	l.Limited = limited
	return l
}

// HasResources reports whether any resource other than the node count is limited.
func (l Limits) HasResources() bool { return len(l.Limited) > 0 }

// Usage is what a pool's NodeClaims hold, every one that exists, launched or not, until its finalizer is gone (L-13).
type Usage struct {
	Nodes    int64
	Capacity resources.Vector // of launched nodes what they have; of others the most that they may get
}

// Plus returns the usage with more nodes of the given total capacity.
func (u Usage) Plus(nodes int64, capacity resources.Vector) Usage {
	return Usage{Nodes: u.Nodes + nodes, Capacity: u.Capacity.Plus(capacity)}
}

// Exceeded is a limit that stands in the way: a value, not an error, because "no" is an answer.
type Exceeded struct {
	Component int   // of the resource; Nodes for the node count
	Limit     int64 // base units
	Used      int64 // base units, before the request
	Request   int64 // base units
	Hard      bool
}

// Nodes is the Component of an exceeded node limit.
const Nodes = -1

// Text says which limit stopped what, for events and tables: "nodes 3 of 3 (hard limit)".
func (e Exceeded) Text(names resources.Names) string {
	kind := Kind(e.Hard)
	if e.Component == Nodes {
		return fmt.Sprintf("nodes %d of %d (%s limit)", e.Used, e.Limit, kind)
	}
	format := func(amount int64) string { return names.FormatOne(e.Component, amount) }
	return fmt.Sprintf("%s %s of %s in use, another node adds %s (%s limit)", names[e.Component], format(e.Used),
		format(e.Limit), format(e.Request), kind)
}

// Kind names a limit in texts: hard or soft.
func Kind(hard bool) string {
	if hard {
		return "hard"
	}
	return "soft"
}

// Check reports whether one more node of the given capacity stays within the limits, and otherwise the first limit
// in the way: the hard node limit, then the soft one, then resources in the order of their components. The hard
// limit wins where both are set on nodes (L-03).
func (l Limits) Check(used Usage, capacity resources.Vector) (Exceeded, bool) {
	if e, ok := l.CheckNodes(used.Nodes); !ok {
		return e, false
	}
	return l.checkResources(used, capacity)
}

// CheckNodes reports whether one more node stays within the node limits, whatever its size (L-11).
func (l Limits) CheckNodes(used int64) (Exceeded, bool) {
	if l.HardNodes != None {
		if used+1 > l.HardNodes {
			return Exceeded{Component: Nodes, Limit: l.HardNodes, Used: used, Request: 1, Hard: true}, false
		}
		return Exceeded{}, true
	}
	if l.SoftNodes != None && used+1 > l.SoftNodes {
		return Exceeded{Component: Nodes, Limit: l.SoftNodes, Used: used, Request: 1}, false
	}
	return Exceeded{}, true
}

// Above reports whether more is used than the limits allow, as it may be while a node is replaced (L-31).
func (l Limits) Above(used Usage) bool {
	if most, _ := l.Nodes(); most != None && used.Nodes > most {
		return true
	}
	_, within := l.checkResources(used, nil)
	return !within
}

// NodesLeft returns how many more nodes the node limits admit, or [None] when they admit any number.
func (l Limits) NodesLeft(used int64) int {
	switch {
	case l.HardNodes != None:
		return int(max(0, l.HardNodes-used))
	case l.SoftNodes != None:
		return int(max(0, l.SoftNodes-used))
	}
	return int(None)
}

func (l Limits) checkResources(used Usage, capacity resources.Vector) (Exceeded, bool) {
	for i, limited := range l.Limited {
		if limited && used.Capacity.At(i)+capacity.At(i) > l.Resources[i] {
			return Exceeded{Component: i, Limit: l.Resources[i], Used: used.Capacity.At(i), Request: capacity.At(i)},
				false
		}
	}
	return Exceeded{}, true
}

// Room reports whether capacity fits in what the resource limits leave over used. It ignores the number of nodes.
func (l Limits) Room(used Usage, capacity resources.Vector) bool {
	_, ok := l.checkResources(used, capacity)
	return ok
}

// Within reports whether capacity is at most held in every limited component.
func (l Limits) Within(capacity, held resources.Vector) bool {
	for i, limited := range l.Limited {
		if limited && capacity.At(i) > held.At(i) {
			return false
		}
	}
	return true
}
