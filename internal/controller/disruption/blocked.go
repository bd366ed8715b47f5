package disruption

import (
	"fmt"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// reportBlocked tells about empty nodes that stay, and why (D-02): protected by an annotation, or by a budget. p is the plan that
// emptiness made.
func (c *Controller) reportBlocked(r round, p plan.Plan) {
	for _, node := range r.snapshot.Nodes {
		if why := c.blocked(r, node); why != "" && !node.Deleting && !node.Disrupting {
			c.config.Events.Event(claimOf(node), event.Normal, event.DisruptionBlocked, why)
		}
	}
	for name, count := range p.Held {
		if r.pools[name] == nil {
			continue
		}
		allowed := engine.Allowed(r.budgets[name], plan.Empty)
		c.config.Events.Event(r.pools[name], event.Normal, event.DisruptionBlocked,
			fmt.Sprintf("%d empty nodes stay for now: the budget allows %d nodes at a time for the reason %s", count, allowed, plan.Empty))
	}
}

// ReportHardLimit tells that a pool's hard node limit, and not a budget, keeps nodes from being replaced for a reason
// (L-34). It is for methods that launch before they remove: they ask limit.Limits.Replacements how many they may, and call
// this when the answer says ByLimit. The recorder leaves out repetitions.
func (c *Controller) ReportHardLimit(pool *karpenterv1.NodePool, reason plan.DisruptionReason) {
	c.config.Metrics.Pools.BlockedByLimit.WithLabelValues(strings.ToLower(string(reason)), pool.Name).Inc()
	c.config.Events.Event(pool, event.Normal, event.DisruptionBlocked,
		fmt.Sprintf("No allowed disruptions for disruption reason %s due to node hard limit", reason))
}

// blocked says what keeps a node that would be looked at otherwise, "" when nothing does or nobody wants it to go.
func (c *Controller) blocked(r round, node *cluster.Node) string {
	if why := protection(node); why != "" {
		return why
	}
	pool := r.snapshot.Pool(node.Pool)
	if pool == nil && node.Pool != "" && node.Claim != "" && node.Initialized {
		return "The node stays: its NodePool " + node.Pool + " is gone; delete the NodeClaim to remove it"
	}
	wanted := pool != nil && !pool.Static && (node.Drifted || node.Expired && pool.ExpiresGracefully || pool.Consolidates != cluster.WhenEmpty && node.ConsolidatableAt <= r.now.Unix())
	why := engine.Forbidden(node)
	if why == "" || !wanted || node.Claim == "" || node.Name == "" || !node.Initialized {
		return ""
	}
	return "The node stays: " + why
}

// protection says which annotation keeps a node that is empty otherwise, "" when none does.
func protection(node *cluster.Node) string {
	if node.Claim == "" || node.Name == "" || !node.Initialized || slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool { return !p.Fixed }) {
		return ""
	}
	if node.DoNotDisrupt {
		return "The empty node stays: karpenter.sh/do-not-disrupt is set on the node or its NodeClaim"
	}
	for _, pod := range node.Pods {
		if pod.DoNotDisrupt {
			return "The empty node stays: karpenter.sh/do-not-disrupt is set on pod " + pod.Ref()
		}
	}
	return ""
}

// claimOf makes as much of a node's claim as an event needs.
func claimOf(node *cluster.Node) *karpenterv1.NodeClaim {
	return claimRef(plan.Remove{Claim: node.Claim, ClaimUID: node.ClaimUID})
}
