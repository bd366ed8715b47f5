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

// This file is the pause switch (D-14). One ConfigMap stops everything under budgets in the whole cluster, as if each
// NodePool had a budget of 0 nodes for every reason. Marks without a deletion are taken back. Drains continue, because
// a deletion cannot be taken back. What budgets do not bound continues too.

// SwitchName is the name of the ConfigMap, in the system namespace. The others are its keys: whether disruption is
// paused (true or false), why (repeated in events), and until when.
const (
	SwitchName   = translate.SwitchName
	SwitchPaused = translate.SwitchPaused
	SwitchReason = translate.SwitchReason
	SwitchUntil  = translate.SwitchUntil
)

// switchAge is how long a round with nothing to carry out trusts an earlier reading of the switch as off. Most rounds
// begin nothing, and a round that begins something reads it first.
const switchAge = 10 * time.Second

// LastPaused returns the result of Paused as of the last round.
func (c *Controller) LastPaused() string { return c.memory.pausedBy() }

// Paused returns why voluntary disruption is paused, "" if it is not. Other controllers that obey the switch use it
// too. It asks the API server: once the switch is written, no later round begins or carries out anything. A value
// other than true or false counts as true, because whoever wrote it wanted a pause. So does a pause whose end cannot
// be read.
func (c *Controller) Paused(ctx context.Context) (string, error) {
	why, _, err := c.readSwitch(ctx)
	return why, err
}

// readSwitch returns why voluntary disruption is paused, and when that ends by itself; zero if it does not (U-27).
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

// glance reads the switch for a round that has its snapshot. It asks the API server if there is something to carry
// out, or if it was not read recently.
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

// goesOn reports whether there is an intent to carry out or take back, or a replacement to handle.
func goesOn(s *cluster.Snapshot) bool {
	return slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
		return n.Disrupting && !n.Deleting || len(n.Replaces) > 0
	})
}

// begin writes the intents of a plan. If the round used an earlier reading of the switch, it reads the switch first.
// If that is on, it begins nothing; the next round reads it again and reports why.
func (c *Controller) begin(ctx context.Context, r round, p plan.Plan) (apply.Outcome, error) {
	if len(p.Removes) > 0 && !r.asked {
		if why, _, err := c.readSwitch(ctx); err != nil || why != "" {
			c.memory.foundSwitch(false, r.now)
			return apply.Outcome{}, err
		}
	}
	return c.config.Applier.Apply(ctx, p)
}

// pause sets the budgets of a paused round, and reports the pause.
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
