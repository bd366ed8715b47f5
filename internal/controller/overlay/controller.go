// Package overlay keeps what a NodeOverlay says about itself true: whether it is in effect, and if not, why (P-11). It
// judges nothing: the store does, which planning works from, and so the two can never disagree.
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
	// refreshEvery is how often an overlay is looked at again: what it is about changes with the catalogues.
	refreshEvery = 30 * time.Second
	// seenAfter is when an overlay is looked at again that the store has not seen yet: its watch is on its way.
	seenAfter = 200 * time.Millisecond
)

// Verdicts knows what is to be said about an overlay of that name, and about which generation of it.
type Verdicts interface {
	OverlayVerdict(name string) (verdict translate.Verdict, generation int64, known bool)
}

// Config is what the controller works with; all fields are required.
type Config struct {
	Client   client.Client // reads from a cache
	Verdicts Verdicts
	Events   event.Recorder
	Now      func() time.Time
}

// Controller keeps NodeOverlays' status.
type Controller struct {
	config Config
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile brings the status of the NodeOverlay of that name up to date, with one patch at most.
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
		c.config.Events.Event(&overlay, event.Warning, event.FeatureGateDisabled, "The overlay has no effect: "+verdict.Message)
	}
	before := overlay.DeepCopy()
	for _, value := range conditions(verdict) {
		condition.Set(&overlay.Status.Conditions, overlay.Generation, value, c.config.Now())
	}
	if !patch.SameStatus(&before.Status, &overlay.Status) {
		if err := c.config.Client.Status().Patch(ctx, &overlay, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return reconcile.Result{RequeueAfter: refreshEvery}, nil
}

// conditions are the verdict in the terms of Karpenter: the reason stands in both.
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
	if v.Reason == translate.GateDisabled { // whether it is valid nobody has looked at
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
