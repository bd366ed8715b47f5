package disruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
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

// switchAge is for how long a round that has nothing to carry out takes the word of an earlier one that the switch is off: most
// rounds begin nothing, and each that does asks before.
const switchAge = 10 * time.Second

// LastPaused is Paused as the last round has found it.
func (c *Controller) LastPaused() string { return c.memory.pausedBy() }

// Paused says why voluntary disruption is paused, "" when it is not, also to other controllers that keep to the switch.
// It asks the API server itself: once the switch is written, no later round begins anything, or carries anything out. A value
// that is neither true nor false counts as true, because whoever wrote it wanted something held up. So does one whose end
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

// glance sets what the switch says, for a round that knows its picture. It asks the API server if there is something to carry out,
// or if nobody has for a while.
func (c *Controller) glance(ctx context.Context, r *round) error {
	if !goesOn(r.snapshot) && c.memory.switchIsOff(r.now) {
		return nil
	}
	var err error
	r.asked = true
	r.paused, r.pausedUntil, err = c.readSwitch(ctx)
	c.memory.foundSwitch(err == nil && r.paused == "", r.now)
	return err
}

// goesOn reports whether there is an intent to carry out or to take back, or something that was launched to replace others.
func goesOn(s *cluster.Snapshot) bool {
	return slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
		return n.Disrupting && !n.Deleting || len(n.Replaces) > 0
	})
}

// begin writes the intents of a plan down. A round that went by what an earlier one had read asks the switch before, and if that
// is on it begins nothing: the next round asks for itself, and tells why.
func (c *Controller) begin(ctx context.Context, r round, p plan.Plan) (apply.Outcome, error) {
	if len(p.Removes) > 0 && !r.asked {
		if why, _, err := c.readSwitch(ctx); err != nil || why != "" {
			c.memory.foundSwitch(false, r.now)
			return apply.Outcome{}, err
		}
	}
	return c.config.Applier.Apply(ctx, p)
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
