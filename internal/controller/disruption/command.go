package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file goes on with nodes that are to go although pods run on them (D-09, D-10): drifted and expired ones, and those that are not
// used well enough. Such nodes are marked first, and what replaces them is launched after that; the new claims name the old
// ones, and say how many they are. That is all there is to know, so that any process can go on: a node is deleted once all
// that replaces it is there and its pods still have a place; else everything is taken back.

// moves reports whether a reason is one of this file.
func moves(reason plan.DisruptionReason) bool {
	return reason == plan.Drifted || reason == plan.Expired || reason == plan.Underutilized
}

// intent is a node that is marked.
type intent struct {
	node   *cluster.Node
	remove plan.Remove
}

// command is marked nodes that go together or not at all, and what replaces them.
type command struct {
	intents      []intent
	replacements []*cluster.Node
}

func (c *command) nodes() []*cluster.Node {
	var list []*cluster.Node
	for _, i := range c.intents {
		list = append(list, i.node)
	}
	return list
}

// commandsOf puts together what is replaced together.
func commandsOf(s *cluster.Snapshot, intents []intent) []*command {
	of := map[string]*command{} // by claim
	var list []*command
	for _, i := range intents {
		c := &command{intents: []intent{i}}
		of[i.node.Claim] = c
		list = append(list, c)
	}
	for _, node := range s.Nodes {
		if node.Deleting || node.Disrupting {
			continue // it will not be there: as good as none
		}
		var whole *command
		for _, name := range node.Replaces {
			part := of[name]
			switch {
			case part == nil || part == whole:
			case whole == nil:
				whole = part
				whole.replacements = append(whole.replacements, node)
			default:
				whole.intents = append(whole.intents, part.intents...)
				whole.replacements = append(whole.replacements, part.replacements...)
				list = slices.DeleteFunc(list, func(c *command) bool { return c == part })
				for _, i := range part.intents {
					of[i.node.Claim] = whole
				}
			}
		}
	}
	return list
}

// settleCommands decides about the nodes that are marked for reasons of this file.
func (c *Controller) settleCommands(ctx context.Context, r round, intents []intent, used map[string]int) error {
	var leaving []*cluster.Node
	var failures []error
	for _, cmd := range commandsOf(r.snapshot, intents) {
		gone, err := c.settleCommand(ctx, r, cmd, used, leaving)
		if err != nil {
			failures = append(failures, fmt.Errorf("disrupting node %s: %w", cmd.intents[0].node.ID(), err))
		}
		leaving = append(leaving, gone...)
	}
	return errors.Join(failures...)
}

// settleCommand decides about one command. leaving are nodes that this step has deleted already: their pods need places,
// too. It returns those that it deletes.
func (c *Controller) settleCommand(ctx context.Context, r round, cmd *command, used map[string]int, leaving []*cluster.Node) ([]*cluster.Node, error) {
	no := objectionToCommand(r, cmd, used)
	if r.paused != "" {
		no = refusal{r.paused, rejectedBudget}
	}
	if no.why != "" && no.why == cmd.loss() { // and nothing else speaks against it
		part, known := c.part(r, cmd)
		if len(part) > 0 {
			return nil, c.narrow(ctx, r, cmd, part, used)
		}
		if !known {
			no = refusal{} // it waits
		}
	}
	if no.why == "" && !cmd.waits() {
		no = c.misfit(r, cmd)
	}
	if no.why != "" {
		return nil, c.undoCommand(ctx, r, cmd, no)
	}
	for _, i := range cmd.intents {
		used[i.node.Pool]++
	}
	if tainted, err := c.taintAll(ctx, cmd); !tainted {
		return nil, err
	}
	c.reportWaits(cmd)
	together := append(slices.Clone(leaving), cmd.nodes()...)
	if cmd.waits() || len(leaving) > 0 && !r.snapshot.Pool(cmd.intents[0].node.Pool).Static && !fits(r, cmd, together) {
		return nil, nil // it may go later
	}
	var failures []error
	var gone []*cluster.Node
	for _, i := range cmd.intents {
		deleted, err := c.config.Applier.Delete(ctx, i.remove)
		if failures = append(failures, err); !deleted {
			continue
		}
		gone = append(gone, i.node)
		failures = append(failures, c.succeeded(ctx, r, i.node.Pool))
		c.reportRemoval(r, i.node, i.remove)
	}
	return gone, errors.Join(failures...)
}

// refusal is why a command does not hold any more, and which of the causes of ConsolidationRejected that is; the zero value
// when it holds.
type refusal struct{ why, cause string }

// objectionToCommand says why a command does not hold any more, whatever room there is.
func objectionToCommand(r round, cmd *command, used map[string]int) refusal {
	count := map[string]int{}
	for _, i := range cmd.intents {
		if why := objectionToMove(r, i.node, i.remove.Reason); why != "" {
			return refusal{"node " + i.node.ID() + ": " + why, rejectedChurn}
		}
		count[i.node.Pool]++
		if used[i.node.Pool]+count[i.node.Pool] > engine.Allowed(r.budgets[i.node.Pool], i.remove.Reason) {
			return refusal{"the disruption budget of its NodePool does not allow it any more", rejectedBudget}
		}
	}
	if why := cmd.loss(); why != "" {
		return refusal{why, rejectedChurn}
	}
	if late := cmd.late(r.now); late != "" {
		return refusal{fmt.Sprintf("its replacement %s joined and is not initialized after %s", late, settlesWithin), rejectedChurn}
	}
	return refusal{}
}

// settlesWithin is how long a replacement that has joined may take to be initialized before its command is given up. The node that
// it replaces is of use meanwhile; the claim itself is given up by the initialization timeout, which is longer.
const settlesWithin = 10 * time.Minute

// late names a replacement that has joined and is not initialized for too long, "" when there is none.
func (c *command) late(now time.Time) string {
	for _, n := range c.replacements {
		if n.Registered && !n.Initialized && n.RegisteredAt != 0 && now.Sub(time.Unix(n.RegisteredAt, 0)) > settlesWithin {
			return n.ID()
		}
	}
	return ""
}

// lost returns how many of the replacements that were launched together are gone, and how many they were.
func (c *command) lost() (lost, of int) {
	for _, replacement := range c.replacements {
		of = max(of, replacement.Together)
	}
	return max(0, of-len(c.replacements)), of
}

// loss says that replacements are gone, "" when all are there.
func (c *command) loss() string {
	if lost, of := c.lost(); lost > 0 {
		return fmt.Sprintf("%d of %d replacements failed", lost, of)
	}
	return ""
}

// objectionToMove says why one node stays, "" when nothing speaks against its going.
func objectionToMove(r round, node *cluster.Node, reason plan.DisruptionReason) string {
	pool := r.snapshot.Pool(node.Pool)
	switch {
	case pool == nil || r.pools[node.Pool] == nil:
		return "its NodePool is gone"
	case pool.Dormant:
		return "the feature gate StaticCapacity is off"
	case engine.ForbiddenFor(node, reason) != "":
		return engine.ForbiddenFor(node, reason)
	case reason == plan.Drifted && !node.Drifted:
		return "it is not drifted any more"
	case reason == plan.Expired && !(node.Expired && pool.ExpiresGracefully):
		return "it is not to be replaced for its age any more"
	case reason == plan.Underutilized && (pool.Consolidates == cluster.WhenEmpty || pool.Static):
		return "its NodePool does not consolidate nodes in use any more"
	case slices.ContainsFunc(r.snapshot.Pending, promisedTo(node)):
		return "a pending pod was promised a place on it"
	}
	return ""
}

// waits reports whether something that replaces the nodes is still on its way.
func (c *command) waits() bool {
	return slices.ContainsFunc(c.replacements, func(n *cluster.Node) bool { return !n.Initialized || n.NotReady })
}

// misfit says why the nodes' pods have no place any more. At a limit, pods that it keeps waiting may
// have taken the place that was launched. Then the pool is above its limit and one node has to go all the same (L-40): it
// is the one that was to be replaced, or the roll would begin anew for ever (L-31).
func (c *Controller) misfit(r round, cmd *command) refusal {
	pool := r.snapshot.Pool(cmd.intents[0].node.Pool)
	switch {
	case pool.Static:
		return misfitStatic(r, pool, cmd)
	case fits(r, cmd, cmd.nodes()):
		return refusal{}
	case cmd.intents[0].remove.Reason != plan.Underutilized && cmd.aboveLimits(r):
		return refusal{}
	case len(cmd.replacements) == 0:
		return refusal{"its pods have no place elsewhere, and nothing was launched that replaces it", rejectedScheduling}
	}
	return refusal{"its pods have no place elsewhere any more", rejectedScheduling}
}

// misfitStatic is misfit for a static pool, which replaces nodes one for one, whatever pods there are, if only their drains end.
func misfitStatic(r round, pool *cluster.Pool, cmd *command) refusal {
	for _, i := range cmd.intents {
		if stuck := engine.Stuck(r.snapshot, i.node); stuck != "" {
			return refusal{stuck, rejectedChurn}
		}
	}
	switch {
	case len(cmd.replacements) > 0:
		return refusal{}
	case !engine.TerminatesFirst(pool):
		return refusal{"nothing was launched that replaces it", rejectedChurn}
	case engine.Lacking(r.snapshot, pool) > engine.Allowed(r.budgets[pool.Name], cmd.intents[0].remove.Reason):
		return refusal{"its NodePool lacks other nodes, and the disruption budget allows no more", rejectedBudget}
	}
	return refusal{}
}

// aboveLimits reports whether what replaces the nodes has brought a pool above its limits.
func (c *command) aboveLimits(r round) bool {
	return slices.ContainsFunc(c.replacements, func(n *cluster.Node) bool {
		pool := r.snapshot.Pool(n.Pool)
		return pool != nil && pool.Limits.Above(pool.Used)
	})
}

// fits reports whether what is on nodes has a place. What was not replaced at all must find it on nodes that are there: a
// process may have ended before it launched anything.
func fits(r round, cmd *command, nodes []*cluster.Node) bool {
	if len(cmd.replacements) == 0 {
		return engine.Room(r.snapshot, nodes...)
	}
	return engine.Holds(r.snapshot, cmd.intents[0].remove.Reason, nodes...)
}

// taintAll completes the marks of a command, and reports whether they were complete already.
func (c *Controller) taintAll(ctx context.Context, cmd *command) (bool, error) {
	complete := true
	for _, i := range cmd.intents {
		tainted, err := c.tainted(ctx, i.node.Name)
		if err != nil {
			return false, err
		}
		if tainted {
			continue
		}
		complete = false
		if _, err := c.config.Applier.Mark(ctx, i.remove); err != nil {
			return false, err
		}
	}
	return complete, nil
}

// undoCommand takes all intents of a command back; what was launched for it is let go in a later step, see replacement.go.
func (c *Controller) undoCommand(ctx context.Context, r round, cmd *command, no refusal) error {
	var failures []error
	first := passingPause
	reason := string(cmd.intents[0].remove.Reason)
	kind := metrics.ConsolidationType(reason, len(cmd.intents))
	if lost, _ := cmd.lost(); lost > 0 || cmd.late(r.now) != "" {
		first = failurePause
		c.config.Metrics.Disruption.Failures.WithLabelValues(metrics.Replace, metrics.Reason(reason), kind).Inc()
	} else {
		c.config.Metrics.Disruption.FailedValidations.WithLabelValues(kind).Inc()
	}
	c.reportRejected(cmd, no)
	for _, i := range cmd.intents {
		if r.paused == "" {
			failures = append(failures, c.backOff(ctx, r, i.node.Pool, first))
		}
		failures = append(failures, c.undo(ctx, i.remove, no.why))
	}
	return errors.Join(failures...)
}
