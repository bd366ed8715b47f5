package disruption

import (
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// asked is how many nodes are explained after a search that found nothing: each needs a plan.
const asked = 20

// reportUnconsolidatable reports nodes that stay because nothing cheaper was found (D-02). It does so rarely: a user
// need not act on it. In a large cluster it reports some nodes, and the next ones after the next search. Budgets are
// reported on the pool. Reported elsewhere are what forbids that a node goes, and what a drifted or expired node waits
// for.
func (c *Controller) reportUnconsolidatable(r round, terms engine.Terms) {
	var nodes []*cluster.Node
	held, taken := map[string]bool{}, engine.Taken(r.snapshot)
	for _, node := range r.snapshot.Nodes {
		if !engine.MightSave(r.snapshot, terms.Now, node) || r.moving[node.Pool] || terms.Passing[node.Pool] ||
			c.memory.paused(node.Pool, r.now) || held[node.Pool] {
			continue
		}
		allowed := engine.Allowed(terms.Budgets[node.Pool], plan.Underutilized)
		standing, so := engine.WhyBudget(node.Pool, allowed, taken[node.Pool], plan.Underutilized)
		if so { // it applies to all nodes of the pool, so none needs a plan
			held[node.Pool] = true
			if pool := r.pools[node.Pool]; pool != nil {
				c.config.Events.Event(pool, event.Normal, event.DisruptionBlocked,
					view.Standing(standing, node.Pool).Event())
			}
			continue
		}
		nodes = append(nodes, node)
	}
	first, count := c.memory.next(len(nodes), asked)
	some := make([]*cluster.Node, 0, count)
	for i := range count {
		some = append(some, nodes[(first+i)%len(nodes)])
	}
	for i, standing := range engine.WhyNotCheaper(r.snapshot, terms, some) {
		c.tell(removeOf(some[i]), event.Unconsolidatable, view.Standing(standing, some[i].Pool).Event())
	}
}
