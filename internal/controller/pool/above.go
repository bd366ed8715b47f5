package pool

import (
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// above reports how many nodes a pool has that was above its soft node limit when Joiner first saw it, and what
// happens (L-40). Package disruption marks such pools. It also reports if another program's nodes keep a pool above
// its limit. Joiner removes neither those nor its own nodes for them. Other pools do not have the condition.
func (c *Controller) above(pool *karpenterv1.NodePool, claims []karpenterv1.NodeClaim) {
	const kind = karpenterv1.ConditionTypeNodesWithinLimits
	value, err := translate.Pool(resources.NewSpace(), pool)
	soft, bound := translate.SoftBound(value)
	most, hard := value.Limits.Nodes()
	own := int64(0)
	for i := range claims {
		if c.config.Fleet.OwnsClaim(&claims[i]) {
			own++
		}
	}
	all := int64(len(claims))
	inherited := pool.Annotations[karpenterv1.AboveLimitAnnotationKey] == karpenterv1.AboveLimitInherited
	say := func(reason, message string) {
		condition.Set(&pool.Status.Conditions, pool.Generation, condition.False(kind, reason, message), c.config.Now())
	}
	switch {
	case err != nil:
		condition.Clear(&pool.Status.Conditions, kind)
	case inherited && bound && own > soft:
		say(karpenterv1.AboveLimitInherited, fmt.Sprintf("%d nodes, limit %d (soft limit): "+
			"the pool was above the limit when Joiner first saw it; %d nodes are to go, as the disruption budgets allow "+
			"and not at once; raise spec.limits.nodes to keep them", own, soft, own-soft))
	case most != limit.None && all > most && all > own:
		say("OtherPrograms", fmt.Sprintf("%d nodes, limit %d (%s limit): "+
			"%d of them another program's, which Joiner does not remove", all, most, limit.Kind(hard), all-own))
	default:
		condition.Clear(&pool.Status.Conditions, kind)
	}
}
