// Package overlay keeps the status of NodeOverlays up to date: whether an overlay is in effect, and if not, why
// (P-11). The verdict comes from the store that planning uses, so the two never disagree.
package overlay

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	// refreshEvery is how often an overlay is checked again: catalogues change.
	refreshEvery = 30 * time.Second
	// seenAfter is the delay for an overlay that the store has not seen yet: its watch event is on its way.
	seenAfter = 200 * time.Millisecond
)

// Verdicts knows the verdict about an overlay, and of which generation.
type Verdicts interface {
	OverlayVerdict(name string) (verdict translate.Verdict, generation int64, known bool)
}

// Config configures the controller; all fields are required.
type Config struct {
	Client   client.Client // reads from a cache
	Verdicts Verdicts
	Events   event.Recorder
	Now      func() time.Time
}

// Controller keeps the status of NodeOverlays.
type Controller struct {
	config Config
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile updates the status of one NodeOverlay, with at most one patch.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var overlay karpenterv1alpha1.NodeOverlay
	if err := c.config.Client.Get(ctx, request.NamespacedName, &overlay); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	verdict, generation, known := c.config.Verdicts.OverlayVerdict(overlay.Name)
	if !known || generation != overlay.Generation {
		return reconcile.Result{RequeueAfter: seenAfter}, nil
	}
	if verdict.Reason == translate.GateDisabled { // once an hour (K-04)
		c.config.Events.Event(&overlay, event.Warning, event.FeatureGateDisabled, "The overlay has no effect: "+
			verdict.Message)
	}
	before := overlay.DeepCopy()
	for _, value := range conditions(verdict) {
		condition.Set(&overlay.Status.Conditions, overlay.Generation, value, c.config.Now())
	}
	if !patch.SameStatus(&before.Status, &overlay.Status) {
		if err := c.config.Client.Status().Patch(ctx, &overlay,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return reconcile.Result{RequeueAfter: refreshEvery}, nil
}

// conditions returns the verdict as Karpenter's conditions. Both have the reason.
func conditions(v translate.Verdict) []condition.Value {
	if v.Reason == "" {
		reason := ""
		if v.Whole {
			reason = translate.OverlayWhole
		}
		return []condition.Value{
			condition.True(karpenterv1.ConditionTypeValidationSucceeded, "", ""),
			condition.True(karpenterv1.ConditionTypeReady, reason, v.Message),
		}
	}
	if v.Reason == translate.GateDisabled { // validity was not checked
		return []condition.Value{
			condition.Unknown(karpenterv1.ConditionTypeValidationSucceeded, v.Reason, v.Message),
			condition.False(karpenterv1.ConditionTypeReady, v.Reason, "the overlay has no effect: "+v.Message),
		}
	}
	return []condition.Value{
		condition.False(karpenterv1.ConditionTypeValidationSucceeded, v.Reason, v.Message),
		condition.False(karpenterv1.ConditionTypeReady, v.Reason, "the overlay has no effect: "+v.Message),
	}
}
