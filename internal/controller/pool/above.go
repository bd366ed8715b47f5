package pool

import (
	"fmt"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// above says of a pool that was above its soft node limit when Joiner first saw it how many nodes it has, and what happens
// (L-40). Package disruption marks such pools. Others do not have the condition.
func above(pool *karpenterv1.NodePool, now time.Time) {
	const kind = karpenterv1.ConditionTypeNodesWithinLimits
	value, err := translate.Pool(resources.NewSpace(), pool)
	most, bound := translate.SoftBound(value)
	nodes := int64(0)
	if pool.Status.Nodes != nil {
		nodes = *pool.Status.Nodes
	}
	if pool.Annotations[karpenterv1.AboveLimitAnnotationKey] != karpenterv1.AboveLimitInherited || err != nil || !bound || nodes <= most {
		condition.Clear(&pool.Status.Conditions, kind)
		return
	}
	condition.Set(&pool.Status.Conditions, pool.Generation, condition.False(kind, karpenterv1.AboveLimitInherited, fmt.Sprintf(
		"%d nodes, limit %d (soft limit): the pool was above the limit when Joiner first saw it; %d nodes are to go, as the disruption budgets allow and not at once; raise spec.limits.nodes to keep them",
		nodes, most, nodes-most)), now)
}
