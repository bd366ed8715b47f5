package pool

import (
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// replicas says whether a static pool has its replicas. That nobody acts on them is an event too, once an hour (K-04).
func (c *Controller) replicas(pool *karpenterv1.NodePool) condition.Value {
	if !c.config.StaticOff {
		return within(pool)
	}
	const text = "the feature gate StaticCapacity is off (--feature-gates): for spec.replicas nothing is launched, removed or replaced"
	c.config.Events.Event(pool, event.Warning, event.FeatureGateDisabled, "The nodes of the pool are left as they are: "+text)
	return condition.False(karpenterv1.ConditionTypeReplicasWithinLimits, translate.GateDisabled, text)
}
