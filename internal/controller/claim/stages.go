package claim

import (
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// reached measures how long the claim took for the stage that it has just reached. The times on the claim are in whole
// seconds; if one is missing, nothing is measured. It reports a node that is ready for pods once.
func (c *Controller) reached(w *work, stage string) {
	since := func(kind string) time.Time {
		at, _ := condition.Since(w.claim.Status.Conditions, kind)
		return at
	}
	begin := w.claim.CreationTimestamp.Time
	if stage == metrics.StageInitialized && c.config.Joined != nil {
		c.config.Joined(w.claim, max(0, c.config.Now().Sub(begin)))
	}
	switch stage {
	case metrics.StageRegistered:
		begin = since(karpenterv1.ConditionTypeLaunched)
	case metrics.StageInitialized:
		begin = since(karpenterv1.ConditionTypeRegistered)
	}
	if begin.IsZero() {
		return
	}
	took := max(0, c.config.Now().Sub(begin).Seconds())
	c.config.Metrics.Own.Stages.WithLabelValues(translate.PoolOf(w.claim), stage).Observe(took)
}
