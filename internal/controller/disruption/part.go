package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file keeps what came of a command of consolidation of which some launches failed, when that alone is still a
// saving (D-10). First the claims that came are made to replace only what may still go; then the other nodes stay. A
// process that ends in between leaves a smaller command, and marks that nothing replaces: the next one goes on with
// the first and takes the second back.

// part returns which nodes of a command that lost replacements may still go: none when it is not consolidation's, or
// when no part of it saves enough. known is false while that cannot be told yet.
func (c *Controller) part(r round, cmd *command) (part []*cluster.Node, known bool) {
	if cmd.late(r.now) != "" || len(cmd.replacements) == 0 ||
		slices.ContainsFunc(cmd.intents, func(i intent) bool { return i.remove.Reason != plan.Underutilized }) {
		return nil, true
	}
	return engine.Part(r.snapshot, c.terms(r), cmd.nodes(), cmd.replacements)
}

// narrow makes a command one of these nodes only. The others stay. The pool is left alone for a
// while after a launch that failed, or until the part is done.
func (c *Controller) narrow(ctx context.Context, r round, cmd *command, part []*cluster.Node, used map[string]int) error {
	var names []string
	for _, node := range part {
		names = append(names, node.Claim)
		used[node.Pool]++
	}
	slices.Sort(names)
	var failures []error
	for _, n := range cmd.replacements {
		replacement := plan.Remove{Claim: n.Claim, ClaimUID: n.ClaimUID, Node: n.Name, Pool: n.Pool, Price: n.Price}
		failures = append(failures, c.config.Applier.Narrow(ctx, replacement, names, len(cmd.replacements)))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	staying := &command{}
	for _, i := range cmd.intents {
		if !slices.Contains(part, i.node) {
			staying.intents = append(staying.intents, i)
		}
	}
	kind := metrics.ConsolidationType(string(plan.Underutilized), len(cmd.intents))
	reason := metrics.Reason(string(plan.Underutilized))
	c.config.Metrics.Disruption.Failures.WithLabelValues(metrics.Replace, reason, kind).Inc()
	if len(staying.intents) == 0 {
		return c.backOff(ctx, r, cmd.intents[0].node.Pool, failurePause)
	}
	why := fmt.Sprintf("%s; of the %d nodes of the command %d go, for what came", cmd.loss(), len(cmd.intents), len(part))
	c.reportRejected(staying, refusal{why, rejectedChurn})
	for _, i := range staying.intents {
		failures = append(failures, c.backOff(ctx, r, i.node.Pool, failurePause), c.undo(ctx, i.remove, why))
	}
	return errors.Join(failures...)
}
