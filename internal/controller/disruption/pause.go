package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file is the pause switch (D-14): one ConfigMap stops everything that budgets bound, in the whole cluster, as if each
// NodePool had a budget of 0 nodes for every reason. What is marked and not deleted yet is taken back; what is being drained
// goes on, because a deletion cannot be taken back. What budgets do not bound goes on too.

// SwitchName is the name of the ConfigMap, in the system namespace, and the others are its keys: whether disruption is
// paused, true or false, why, which is repeated in events, and until when.
const (
	SwitchName   = translate.SwitchName
	SwitchPaused = translate.SwitchPaused
	SwitchReason = translate.SwitchReason
	SwitchUntil  = translate.SwitchUntil
)

// LastPaused is Paused as the last round has found it.
func (c *Controller) LastPaused() string { return c.memory.pausedBy() }

// Paused says why voluntary disruption is paused, "" when it is not, also to other controllers that keep to the switch.
// It asks the API server itself, each round: once the switch is written, no later round begins anything. A value that
// is neither true nor false counts as true, because whoever wrote it wanted something held up. So does one whose end
// cannot be read.
func (c *Controller) Paused(ctx context.Context) (string, error) {
	why, _, err := c.readSwitch(ctx)
	return why, err
}

// readSwitch says why voluntary disruption is paused, and when that ends by itself: zero when it does not (U-27).
func (c *Controller) readSwitch(ctx context.Context) (why string, until time.Time, err error) {
	var object corev1.ConfigMap
	key := types.NamespacedName{Namespace: c.config.Namespace, Name: SwitchName}
	if err := c.config.Live.Get(ctx, key, &object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return "", until, fmt.Errorf("reading the switch that pauses disruption, ConfigMap %s: %w", key, err)
		}
		return "", until, nil
	}
	pause := translate.PauseOf(object.Data, c.config.Now())
	for _, fault := range pause.Faults {
		c.config.Events.Event(&object, event.Warning, event.DisruptionPaused, fault)
	}
	if !pause.On {
		return "", until, nil
	}
	return pause.By(key.String()), pause.Until, nil
}

// pause makes the budgets of a paused round, and tells about it.
func (c *Controller) pause(r *round) {
	c.memory.foundPaused(r.paused)
	if r.paused == "" {
		c.config.Metrics.Disruption.ShowPaused(0)
		return
	}
	c.config.Metrics.Disruption.ShowPaused(1)
	for name, pool := range r.pools {
		r.budgets[name] = []engine.Budget{{Max: 0}}
		c.config.Events.Event(pool, event.Normal, event.DisruptionPaused, r.paused)
	}
}
