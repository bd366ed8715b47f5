package pool

import (
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// roll reports the effect of the annotation that lets a node go first, and what blocks a roll (K-48). If there is
// nothing to report, the pool has neither condition.
func (c *Controller) roll(pool *karpenterv1.NodePool) (values []condition.Value) {
	const first, blocked = karpenterv1.ConditionTypeTerminateFirst, karpenterv1.ConditionTypeRollBlocked
	switch asked := translate.TerminateFirstOf(pool); {
	case asked.Fault != "":
		c.config.Events.Event(pool, event.Warning, event.IgnoredField, asked.Fault)
		values = append(values, condition.False(first, "ValueUnknown", asked.Fault))
	case asked.On:
		values = append(values, condition.True(first, "AllowedByAnnotation", asked.Does(pool)))
	case asked.Set:
		values = append(values, condition.False(first, "ForbiddenByAnnotation", asked.Does(pool)))
	default:
		condition.Clear(&pool.Status.Conditions, first)
	}
	if found, is := c.blockedRoll(pool); is {
		return append(values, condition.True(blocked, string(found.By), found.Text()))
	}
	condition.Clear(&pool.Status.Conditions, blocked)
	return values
}

// blockedRoll returns why the pool replaces no node that is due, if there is no room for a replacement; otherwise
// false. An unreadable budget counts as 0, as everywhere.
func (c *Controller) blockedRoll(pool *karpenterv1.NodePool) (engine.BlockedRoll, bool) {
	s, now := c.config.Picture.Snapshot(), c.config.Now()
	if !slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
		return n.Pool == pool.Name && (n.Drifted || n.Expired)
	}) {
		return engine.BlockedRoll{}, false
	}
	budgets, _ := translate.ActiveBudgets(pool, now, engine.Sizes(s)[pool.Name])
	terms := engine.Terms{Now: now.Unix(), Budgets: map[string][]engine.Budget{}}
	for _, other := range s.Pools { // not asked about, and planning for them takes time
		terms.Budgets[other.Name] = []engine.Budget{{Max: 0}}
	}
	terms.Budgets[pool.Name] = budgets
	return engine.WhyRollBlocked(s, terms, pool.Name)
}
