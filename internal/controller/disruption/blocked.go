package disruption

import (
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// reportBlocked tells about nodes that somebody wants to go and that stay, and why (D-02): protected by an annotation,
// or by a budget. p is the plan that emptiness made.
func (c *Controller) reportBlocked(r round, p plan.Plan) {
	for _, node := range r.snapshot.Nodes {
		if standing, so := engine.WhyBlocked(r.snapshot, r.now.Unix(), node); so {
			c.tell(removeOf(node), event.DisruptionBlocked, view.Standing(standing, node.Pool).Event())
		}
	}
	taken := engine.Taken(r.snapshot)
	for _, remove := range p.Removes {
		taken[remove.Pool]++
	}
	for name, count := range p.Held {
		if r.pools[name] == nil {
			continue
		}
		standing, held := engine.WhyBudget(name, engine.Allowed(r.budgets[name], plan.Empty), taken[name], plan.Empty)
		if !held {
			continue // what was removed does not count against it any more
		}
		c.config.Events.Event(r.pools[name], event.Normal, event.DisruptionBlocked,
			fmt.Sprintf("%s Empty nodes that stay: %d.", view.Standing(standing, name).Event(), count))
	}
}

// ReportHardLimit tells that a pool's hard node limit, and not a budget, keeps nodes from being replaced for a reason
// (L-34). It is for methods that launch before they remove: they ask limit.Limits.Replacements how many they may, and call
// this when the answer says ByLimit. The recorder leaves out repetitions.
func (c *Controller) ReportHardLimit(pool *karpenterv1.NodePool, reason plan.DisruptionReason) {
	c.reportLimit(pool, reason, "node hard limit")
}

// reportLimit is the same of whatever limit on nodes.
func (c *Controller) reportLimit(pool *karpenterv1.NodePool, reason plan.DisruptionReason, what string) {
	c.config.Metrics.Pools.BlockedByLimit.Add(1, metrics.Reason(string(reason)), pool.Name)
	c.config.Events.Event(pool, event.Normal, event.DisruptionBlocked,
		fmt.Sprintf("No allowed disruptions for disruption reason %s due to %s", reason, what))
}

// removeOf makes as much of a node's removal as an event needs.
func removeOf(node *cluster.Node) plan.Remove {
	return plan.Remove{Claim: node.Claim, ClaimUID: node.ClaimUID, Node: node.Name}
}
