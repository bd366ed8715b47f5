package pool

import (
	"cmp"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// allow shows in the pool's status and in metrics what its budgets allow now (D-08). It returns when to check again,
// no later than the next scheduled start or end of a budget.
func (c *Controller) allow(pool *karpenterv1.NodePool) time.Duration {
	s := c.config.Picture.Snapshot()
	nodes, taken := engine.Sizes(s)[pool.Name], engine.Taken(s)[pool.Name]
	status := translate.AllowedDisruptions(pool, c.config.Now(), nodes, taken)
	status.Paused = cmp.Or(c.config.Paused(), translate.PoolPauseOf(pool).Holds(pool.Name))
	c.showBudgets(pool, nodes, taken, status.Paused != "")
	shown := map[string]float64{}
	for i := range status.Allowed {
		allowed := &status.Allowed[i]
		if status.Paused != "" {
			allowed.Nodes, allowed.Budget = new(int64), ""
		}
		if allowed.Nodes != nil {
			shown[metrics.Reason(string(allowed.Reason))] = float64(*allowed.Nodes)
		}
	}
	c.config.Metrics.Remaining.Show(pool.Name, shown)
	pool.Status.Disruption = status
	if status.NextChange == nil {
		return refreshEvery
	}
	return max(time.Second, min(refreshEvery, status.NextChange.Sub(c.config.Now())))
}

// showBudgets exports what a pool's budgets allow in total and how many nodes use them up. Karpenter exports both, and
// dashboards show the difference (K-09).
func (c *Controller) showBudgets(pool *karpenterv1.NodePool, nodes, taken int, paused bool) {
	allowed, consuming := map[string]float64{}, map[string]float64{}
	for _, each := range translate.AllowedDisruptions(pool, c.config.Now(), nodes, 0).Allowed {
		reason := metrics.Reason(string(each.Reason))
		allowed[reason], consuming[reason] = metrics.Unlimited, float64(taken)
		switch {
		case paused:
			allowed[reason] = 0
		case each.Nodes != nil:
			allowed[reason] = float64(*each.Nodes)
		}
	}
	c.config.Metrics.Allowed.Show(pool.Name, allowed)
	c.config.Metrics.Consuming.Show(pool.Name, consuming)
}
