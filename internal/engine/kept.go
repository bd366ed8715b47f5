package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// KeptNode is a node that something wants gone: one that stays, or one that nothing keeps.
type KeptNode struct {
	Node *cluster.Node
	// Standing is what [Why] says of it. For a node that stays, Wanted is the reason for which it should go.
	Standing
}

// Kept lists the nodes that something wants gone and something else keeps, and those that would be chosen to go now,
// both in the order of the snapshot (U-24). Each has the Standing of Why; the methods are asked once for all of them.
func Kept(s *cluster.Snapshot, terms Terms) (kept, going []KeptNode) {
	plans := map[plan.DisruptionReason]plan.Plan{}
	chosen := map[string]plan.DisruptionReason{}
	for _, method := range Methods() {
		p := method.Plan(s, terms)
		plans[method.Reason] = p
		for _, r := range p.Removes {
			if chosen[r.Claim] == "" {
				chosen[r.Claim] = r.Reason
			}
		}
	}
	blocked := rollBlocks(s, terms)
	future := beginFrom(s, s, terms)
	for _, node := range s.Nodes {
		if _, done := whyGoing(s, terms, node); done {
			continue
		}
		if _, done := whyNotReady(s, terms, node); done {
			continue
		}
		if reason := chosen[node.Claim]; reason != "" {
			going = append(going, KeptNode{Node: node, Standing: Standing{Goes: reason}})
			continue
		}
		found, held := whyForbidden(s, terms, node)
		if !held {
			found, held = whyDueBy(s, terms, node, func(reason plan.DisruptionReason) plan.Plan {
				return plans[reason]
			}, blocked)
		}
		if !held {
			found, held = whyQuiet(s, terms, node)
		}
		if !held {
			continue
		}
		if found.Wanted = wanted(s, terms, node, future); found.Wanted != "" {
			kept = append(kept, KeptNode{Node: node, Standing: found})
		}
	}
	return kept, going
}

// wanted returns the reason for which a node would go if nothing kept it; "" when nothing wants it gone.
func wanted(s *cluster.Snapshot, terms Terms, node *cluster.Node, future *disruption) plan.DisruptionReason {
	pool := s.Pool(node.Pool)
	_, pods := DisruptionCost(node)
	floor := future.heard.floorKeeps(node) != ""
	switch {
	case node.Drifted:
		return plan.Drifted
	case node.Expired:
		return plan.Expired
	case pool.Static || node.ConsolidatableAt > terms.Now:
		return ""
	case pods == 0 && floor:
		return "" // it is wanted for itself
	case pods == 0:
		return plan.Empty
	case !node.Consolidatable(pool, terms.Now) || node.Price == resources.Unpriced:
		return ""
	}
	moved := future.movedFrom(node)
	cost := s.Cost(node)
	saving := cost - moved.Cost(s.Overhead)
	switch {
	case len(moved.Unplaced) > 0:
		return ""
	case len(moved.Launches) == 0 && floor:
		return ""
	case len(s.Commitments) > 0 && cost <= 0:
		return ""
	case len(moved.Launches) == 0:
		if _, fit := future.fitElsewhere([]*cluster.Node{future.now(node)}); !fit {
			return ""
		}
		return plan.Underutilized
	case saving <= 0, saving < terms.least(cost), onlyMore(s, []*cluster.Node{node}, cost, moved.Launches),
		capacityType(node) == "spot" && !terms.SpotToSpot, node.ReplaceableAt() > terms.Now:
		return ""
	}
	return plan.Underutilized
}

// least returns what a replacement of nodes at this price has to save.
func (t Terms) least(price resources.Money) resources.Money {
	return max(t.MinSaving, price*resources.Money(t.MinSavingPercent)/100)
}

// movedFrom plans for the pods of a node as if it went now.
func (d *disruption) movedFrom(node *cluster.Node) plan.Plan {
	without := d.future.Without(d.now(node))
	return pack.Solve(without, without.Pending)
}
