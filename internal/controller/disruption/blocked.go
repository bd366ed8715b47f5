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

// reportBlocked reports nodes that are to go but stay, and why (D-02): an annotation or a budget protects them. p is
// the plan for empty nodes. Each round reports all of them. The recorder drops what is not new, and repeats the rest
// rarely: see event.Deduplicated.
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
			continue // removed nodes do not count against it any more
		}
		c.config.Events.Event(r.pools[name], event.Normal, event.DisruptionBlocked,
			fmt.Sprintf("%s Empty nodes that stay: %d.", view.Standing(standing, name).Event(), count))
	}
}

// ReportHardLimit reports that a pool's hard node limit, and not a budget, keeps nodes from being replaced for a
// reason (L-34). It is for methods that launch before they remove. They ask limit.Limits.Replacements how many they
// may replace, and call this if the answer says ByLimit. The recorder drops repetitions.
func (c *Controller) ReportHardLimit(pool *karpenterv1.NodePool, reason plan.DisruptionReason) {
	c.reportLimit(pool, reason, "node hard limit")
}

// reportLimit is ReportHardLimit for any limit on nodes.
func (c *Controller) reportLimit(pool *karpenterv1.NodePool, reason plan.DisruptionReason, what string) {
	c.config.Metrics.Pools.BlockedByLimit.Add(1, metrics.Reason(string(reason)), pool.Name)
	c.config.Events.Event(pool, event.Normal, event.DisruptionBlocked,
		fmt.Sprintf("No allowed disruptions for disruption reason %s due to %s", reason, what))
}

// removeOf returns as much of a node's removal as an event needs.
func removeOf(node *cluster.Node) plan.Remove {
	return plan.Remove{Claim: node.Claim, ClaimUID: node.ClaimUID, Node: node.Name}
}
