package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file counts commitments in disruption (K-55). A node costs what would be saved without it, after all that was
// chosen before. So a node that a commitment pays for costs nothing, unless another node would use the commitment in
// its place.

// account brings costs and ledger up to date.
func (d *disruption) account() {
	if d.accounted != d.future {
		d.accounted, d.costs, d.ledger = d.future, d.future.Costs(), d.future.Ledger()
	}
}

// drawing returns the nodes of launches, numbered from number on; nil where neither commitments nor mixes count them.
func drawing(s *cluster.Snapshot, launches []plan.Launch, names naming, number int) []*cluster.Node {
	bounded := func(p *cluster.Pool) bool { return p.OnDemandPercent > 0 }
	if len(s.Commitments) == 0 && !slices.ContainsFunc(s.Pools, bounded) {
		return nil
	}
	var nodes []*cluster.Node
	for i, l := range launches {
		nodes = append(nodes, virtual(s.Pool(l.Pool), l, names.of(number+i)))
	}
	return nodes
}

// saves reports whether something is saved when a node goes beside a group.
func (d *disruption) saves(group []*cluster.Node, node *cluster.Node) bool {
	if len(d.base.Commitments) == 0 {
		return true
	}
	all := append(append([]*cluster.Node(nil), group...), node)
	return d.cost(all...) > d.cost(group...)
}

// open returns the commitments that have something left when these nodes go: bit n for number n+1.
func (d *disruption) open(nodes []*cluster.Node) (open uint64) {
	if len(d.base.Commitments) == 0 {
		return 0
	}
	for i, c := range d.uncommitted(nodes) {
		if c.PerHour > 0 || c.Instances > 0 {
			open |= 1 << i
		}
	}
	return open
}

// uncommitted returns the commitments, reduced by what nodes other than these use.
func (d *disruption) uncommitted(nodes []*cluster.Node) []cluster.Commitment {
	if len(d.base.Commitments) == 0 {
		return nil
	}
	d.account()
	without := map[string]bool{}
	for _, node := range nodes {
		without[node.ID()] = true
	}
	list := append([]cluster.Commitment(nil), d.base.Commitments...)
	for i, used := range d.ledger.Used(without) {
		list[i].PerHour -= used.PerHour
		list[i].Instances -= used.Instances
	}
	return list
}

// saveLess reduces the prices of removals, in their order, by what commitments pay for and no other node would use.
func saveLess(s *cluster.Snapshot, removes []plan.Remove) {
	ledger := s.Ledger()
	if ledger == nil {
		return
	}
	byClaim := map[string]*cluster.Node{}
	for _, node := range s.Nodes {
		byClaim[node.Claim] = node
	}
	var gone []*cluster.Node
	before := resources.Money(0)
	for i := range removes {
		gone = append(gone, byClaim[removes[i].Claim])
		freed := ledger.Freed(gone...)
		if removes[i].Price != resources.Unpriced {
			removes[i].Price = max(0, removes[i].Price-(freed-before))
		}
		before = freed
	}
}
