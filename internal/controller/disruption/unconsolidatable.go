package disruption

import (
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// asked is of how many nodes a search that has found nothing asks why they stay: for each a plan is made.
const asked = 20

// reportUnconsolidatable tells of nodes that were looked at and stay because nothing cheaper was found (D-02), rarely:
// it is nothing that a user has to act on. In a large cluster it tells of some, and of the next ones after the next
// search. Budgets are told of the pool. What forbids that a node goes is told elsewhere, and so is what one that has drifted or
// expired waits for.
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
		if so { // it holds for all nodes of the pool, so nothing is planned for any of them
			held[node.Pool] = true
			if pool := r.pools[node.Pool]; pool != nil {
				c.config.Events.Event(pool, event.Normal, event.DisruptionBlocked, view.Standing(standing, node.Pool).Event())
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
