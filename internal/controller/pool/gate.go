package pool

import (
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// replicas reports whether a static pool may have its replicas. If the feature gate is off, an event once an hour says
// so too (K-04).
func (c *Controller) replicas(pool *karpenterv1.NodePool) condition.Value {
	if !c.config.StaticOff {
		return within(pool)
	}
	const text = "the feature gate StaticCapacity is off (--feature-gates): for spec.replicas nothing is launched, removed or replaced"
	c.config.Events.Event(pool, event.Warning, event.FeatureGateDisabled,
		"The nodes of the pool are left as they are: "+text)
	return condition.False(karpenterv1.ConditionTypeReplicasWithinLimits, translate.GateDisabled, text)
}
