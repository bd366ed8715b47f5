package readmodel

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Node is a node, or a NodeClaim without one.
type Node struct {
	// ID is the name of the node or, while there is none, of the claim.
	ID           string         `json:"id"`
	Claim        string         `json:"claim,omitempty"`
	Pool         string         `json:"pool,omitempty"`
	State        view.NodeState `json:"state"`
	Type         string         `json:"type,omitempty"`
	Zone         string         `json:"zone,omitempty"`
	CapacityType string         `json:"capacityType,omitempty"`
	// PricePerHour is in dollars; nil when it is not known, or there is no machine (U-21).
	PricePerHour *float64 `json:"pricePerHour"`
	// CPU (milli-cores), Memory (bytes) and Pods are what is requested and what is allocatable.
	CPU    [2]int64 `json:"cpu"`
	Memory [2]int64 `json:"memory"`
	Pods   [2]int64 `json:"pods"`
	// Created is in Unix seconds.
	Created int64 `json:"created"`
	// Stays is what keeps a node that should go, or that is between two states; nil for a node that nothing wants
	// gone. Goes is the reason for which it would be removed now.
	Stays *Stays `json:"stays,omitempty"`
	Goes  string `json:"goes,omitempty"`
}

// Stays is the reason for a node's standing.
type Stays struct {
	Code  cause.Code `json:"code"`
	State view.State `json:"state"`
	Text  string     `json:"text"`
	// Wanted is the reason for which it would go if nothing kept it.
	Wanted string `json:"wanted,omitempty"`
}

// Resources that are shown of every node.
const (
	cpu    = "cpu"
	memory = "memory"
	pods   = "pods"
)

// nodes adds the nodes, in the order of their names.
func (b *builder) nodes() {
	s := b.in.Snapshot
	at := shown(s)
	for _, node := range s.Nodes {
		n := nodeOf(node, at)
		b.standing(&n, node)
		b.count(&n, node)
		b.m.Nodes = append(b.m.Nodes, n)
	}
	slices.SortStableFunc(b.m.Nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	b.m.Totals.Nodes, b.m.Totals.PricePerHour = len(s.Nodes), b.price.Dollars()
}

// shown returns the indexes of the resources that are shown of every node.
func shown(s *cluster.Snapshot) [3]int {
	return [3]int{slices.Index(s.Names, cpu), slices.Index(s.Names, memory), slices.Index(s.Names, pods)}
}

func nodeOf(node *cluster.Node, at [3]int) Node {
	n := Node{ID: node.ID(), Claim: node.Claim, Pool: node.Pool, State: view.StateOf(node), Type: node.InstanceType,
		Zone: node.Labels[string(catalog.LabelZone)], CapacityType: node.Labels[string(catalog.LabelCapacityType)],
		Created: node.Created}
	if machine(node) && node.Price != resources.Unpriced {
		n.PricePerHour = new(node.Price.Dollars())
	}
	for i, into := range []*[2]int64{&n.CPU, &n.Memory, &n.Pods} {
		if at[i] >= 0 {
			*into = [2]int64{node.Used.At(at[i]), node.Allocatable.At(at[i])}
		}
	}
	n.Pods[0] = int64(len(node.Pods))
	return n
}

// machine reports whether a node has a machine with a price: we know no prices of machines that are not ours.
func machine(node *cluster.Node) bool { return node.Claim != "" && (node.Launched || node.Initialized) }

// count adds a node to the totals and to its pool.
func (b *builder) count(n *Node, node *cluster.Node) {
	t := &b.m.Totals
	t.States[n.State]++
	t.Running += len(node.Pods)
	for i := range 2 {
		t.CPU[i], t.Memory[i] = resources.Sum(t.CPU[i], n.CPU[i]), resources.Sum(t.Memory[i], n.Memory[i])
	}
	if n.Goes != "" {
		t.Going++
	} else if n.Stays != nil && n.Stays.Wanted != "" && n.Stays.State == view.Held {
		t.Staying++
	}
	pool := b.pools[node.Pool]
	if pool == nil {
		pool = &tally{}
	}
	pool.nodes++
	switch {
	case node.Leaves():
		pool.leaving++
	case !node.Initialized:
		pool.onTheWay++
	}
	switch {
	case !machine(node):
	case node.Price == resources.Unpriced:
		t.Unpriced++
		pool.unpriced++
	default:
		b.price += node.Price
		pool.price += node.Price
	}
}

// standing adds a node's standing. For a Ready node it uses what was asked before, since that is expensive. For others
// the engine knows at once.
func (b *builder) standing(n *Node, node *cluster.Node) {
	stands, known := b.in.Stays[n.ID]
	if n.State != view.NodeReady || b.in.Snapshot.Pool(node.Pool) == nil {
		stands, known = engine.Why(b.in.Snapshot, b.in.Terms, node), true
	}
	if !known {
		return
	}
	stands = view.Remembered(node.Pool, []engine.Standing{stands}, b.remembered(node.Pool))[0]
	if stands.Goes != "" {
		n.Goes = string(stands.Goes)
		return
	}
	e := view.Standing(stands, node.Pool)
	n.Stays = &Stays{Code: e.Cause.Code, State: e.State, Text: e.Cause.Text, Wanted: e.Wanted}
}

func (b *builder) remembered(pool string) view.Memory {
	if b.in.Remembered == nil {
		return view.Memory{}
	}
	return b.in.Remembered(pool)
}

// StaysOf returns the standing of the nodes that should go, by ID. It is expensive when nearly all nodes should go and
// may not.
func StaysOf(s *cluster.Snapshot, terms engine.Terms) map[string]engine.Standing {
	stays := map[string]engine.Standing{}
	kept, going := engine.Kept(s, terms)
	for _, list := range [][]engine.KeptNode{kept, going} {
		for _, k := range list {
			stays[k.Node.ID()] = k.Standing
		}
	}
	return stays
}
