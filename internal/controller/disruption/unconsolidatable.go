package disruption

import (
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// reportUnconsolidatable tells of each node that was looked at and stays because nothing cheaper was found (D-02), rarely: it
// is nothing that a user has to act on. What forbids that a node goes is told elsewhere.
func (c *Controller) reportUnconsolidatable(r round, terms engine.Terms) {
	for _, node := range r.snapshot.Nodes {
		if !node.Consolidatable(r.snapshot.Pool(node.Pool), terms.Now) || !engine.Disruptable(r.snapshot, node) {
			continue
		}
		c.config.Events.Event(claimOf(node), event.Normal, event.Unconsolidatable, unconsolidatable(node, terms))
	}
}

func unconsolidatable(node *cluster.Node, terms engine.Terms) string {
	switch {
	case node.Price == resources.Unpriced:
		return "The node stays: its price is not known, so nothing can be called cheaper"
	case engine.Allowed(terms.Budgets[node.Pool], plan.Underutilized) == 0:
		return "The node stays: the disruption budgets of its NodePool allow no consolidation now"
	case node.Labels[string(catalog.LabelCapacityType)] == catalog.Spot && !terms.SpotToSpot:
		return "The node stays: its pods fit nowhere else, and a spot node is replaced by a cheaper spot node only with the feature gate SpotToSpotConsolidation"
	}
	return "The node stays: its pods fit nowhere else, and nothing was found that costs enough less"
}
