package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	// driftEvery is how often the provider is asked about a machine without other events.
	driftEvery = 5 * time.Minute
	// driftUntold is the delay after a provider could not answer: after a start it may not have reached its cloud yet.
	driftUntold = 30 * time.Second
)

// noPool marks a claim whose pool is gone or not ours any more: its drift cannot be judged.
const noPool = "NoPool"

// watchDrift updates the condition Drifted (D-06): the claim differs from what its pool and node class would make now.
func (c *Controller) watchDrift(ctx context.Context, w *work) {
	name := translate.PoolOf(w.claim)
	reason, text, err := c.driftOf(ctx, c.config.Client, w, name)
	if reason != "" && reason != noPool && !w.is(karpenterv1.ConditionTypeDrifted) {
		// The claim may come from a newer version of the pool than the cache has.
		reason, text, err = c.driftOf(ctx, c.config.Live, w, name)
	}
	if err != nil {
		c.config.Log.V(1).Info("could not tell whether a claim has drifted", "claim", w.claim.Name, "reason",
			err.Error())
		w.askAgain(untold(err))
		return // the claim's other steps must not wait for this
	}
	if reason == noPool {
		return
	}
	w.askAgain(driftEvery)
	switch reason {
	case "":
		condition.Clear(&w.claim.Status.Conditions, karpenterv1.ConditionTypeDrifted)
	default:
		if known, _ := condition.Get(w.claim.Status.Conditions,
			karpenterv1.ConditionTypeDrifted); known.Reason != reason {
			w.saved = append(w.saved, func() {
				c.config.Events.Event(w.claim, event.Normal, event.Drifted, reason+": "+text)
				c.config.Log.Info("drifted", "claim", w.claim.Name, "pool", name, "reason", reason, "why", text)
			})
		}
		c.set(w, condition.True(karpenterv1.ConditionTypeDrifted, reason, text))
	}
}

// untold returns when to ask again after an error. A node class that is not ready triggers a step itself once it is.
func untold(err error) time.Duration {
	var notReady *provider.NodeClassNotReadyError
	if errors.As(err, &notReady) || errors.Is(err, provider.ErrNodeClassNotFound) {
		return driftEvery
	}
	return driftUntold
}

// driftOf returns why a claim has drifted, as a reason and as text; "" if it has not. reader reads the pool.
func (c *Controller) driftOf(ctx context.Context, reader client.Reader, w *work,
	name string) (reason, text string, err error) {
	pool, err := c.poolOf(ctx, reader, w.claim)
	if err != nil {
		return "", "", err
	}
	if pool == nil {
		return noPool, "", nil
	}
	if reason, text = translate.Drift(pool, w.claim, w.node); reason != "" ||
		pool.Annotations[karpenterv1.ConversionProblemAnnotationKey] != "" {
		// a pool that could not be converted only stands for another, which nobody can read (V-24)
		return reason, text, nil
	}
	drift, err := w.cloud.Drifted(ctx, w.claim)
	if err != nil {
		return "", "", fmt.Errorf("asking %s: %w", w.cloud.Name(), err)
	}
	return drift.Reason, drift.Message, nil
}
