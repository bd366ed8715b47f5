package pool

import (
	"cmp"
	"strings"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// allow says in the pool's status, and in metrics, what its budgets allow now (D-08), and returns when to look again: no later
// than a budget begins or ends by its schedule.
func (c *Controller) allow(pool *karpenterv1.NodePool) time.Duration {
	s := c.config.Picture.Snapshot()
	status := translate.AllowedDisruptions(pool, c.config.Now(), engine.Sizes(s)[pool.Name], engine.Taken(s)[pool.Name])
	status.Paused = cmp.Or(c.config.Paused(), translate.PoolPauseOf(pool).Holds(pool.Name))
	shown := map[string]float64{}
	for i := range status.Allowed {
		allowed := &status.Allowed[i]
		if status.Paused != "" {
			allowed.Nodes, allowed.Budget = new(int64), ""
		}
		if allowed.Nodes != nil {
			shown[strings.ToLower(string(allowed.Reason))] = float64(*allowed.Nodes)
		}
	}
	c.config.Metrics.Allowed.Show(pool.Name, shown)
	pool.Status.Disruption = status
	if status.NextChange == nil {
		return refreshEvery
	}
	return max(time.Second, min(refreshEvery, status.NextChange.Sub(c.config.Now())))
}
