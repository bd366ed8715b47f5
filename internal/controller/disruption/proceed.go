package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// proceed continues the removals under way. For each node with an intent the engine decides what to do (engine.Judge),
// by the same table that chose the nodes. It reports whether there was any intent. It records in r.moving the pools of
// those with pods on them.
func (c *Controller) proceed(ctx context.Context, r round) (underway bool, err error) {
	docket := engine.Docket{Paused: r.paused, Unlisted: map[string]bool{}, Counts: map[string]engine.Count{},
		Recovered: map[string]string{}}
	for _, pool := range r.snapshot.Pools {
		docket.Unlisted[pool.Name] = r.pools[pool.Name] == nil
	}
	var failures []error
	counted, gone := map[string]bool{}, c.memory.deletedUnseen(r.snapshot) // by pool; by claim UID
	for _, node := range r.snapshot.Nodes {
		if !node.Disrupting || node.Deleting || node.Claim == "" {
			continue
		}
		i, err := c.intentOf(ctx, r, node)
		if err != nil {
			failures = append(failures, fmt.Errorf("reading the intent of node %s: %w", node.ID(), err))
		}
		underway = underway || i.Marked || err != nil
		if !i.Marked {
			continue
		}
		// The others need to know nothing of a deleted claim but that it uses up the budget, unless its pods need
		// places.
		i.Gone = gone[node.ClaimUID]
		if i.Gone && !engine.Moves(i.Reason) && !engine.TooMany(i.Reason) {
			continue
		}
		if i.Reason == plan.Unhealthy {
			why, err := c.recovered(ctx, node.Claim)
			if err != nil {
				failures = append(failures, fmt.Errorf("asking whether node %s is unhealthy: %w", node.ID(), err))
				continue
			}
			docket.Recovered[node.Claim] = why
		}
		docket.Intents = append(docket.Intents, i)
		if engine.Moves(i.Reason) {
			r.moving[node.Pool] = true
		}
		if engine.TooMany(i.Reason) && !counted[node.Pool] {
			counted[node.Pool] = true
			count, err := c.count(ctx, r, node.Pool)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			docket.Counts[node.Pool] = count
		}
	}
	if !underway {
		return false, nil
	}
	verdicts := engine.Judge(r.snapshot, c.judgedBy(r), docket)
	done := c.together(ctx, r, verdicts)
	for i, v := range verdicts {
		if err := c.carryOut(ctx, r, v, done[i]); err != nil {
			failures = append(failures, fmt.Errorf("removing node %s: %w", v.Intents[0].Node.ID(), err))
		}
	}
	return underway, errors.Join(failures...)
}

// recovered returns why a node marked as unhealthy need not be repaired any more; "" if repair is still due.
func (c *Controller) recovered(ctx context.Context, claim string) (string, error) {
	if c.config.Recovered == nil {
		return "the feature gate NodeRepair is off", nil
	}
	return c.config.Recovered(ctx, claim)
}

// deed is the result of one intent's removal.
type deed struct {
	deleted bool
	err     error
}

// together makes the calls of all verdicts that delete, or complete a mark, concurrently. They only wait for the API
// server, and each is about another node. It returns the deeds of each verdict, in the order of its intents.
func (c *Controller) together(ctx context.Context, r round, verdicts []engine.Verdict) [][]deed {
	type job struct {
		act engine.Act
		of  engine.Intent
		to  *deed
	}
	var jobs []job
	var leave []*cluster.Pod
	done := make([][]deed, len(verdicts))
	for i, v := range verdicts {
		done[i] = make([]deed, len(v.Intents))
		for j, intent := range v.Intents {
			if v.Act == engine.Delete || v.Act == engine.Mark && !intent.Tainted {
				jobs = append(jobs, job{v.Act, intent, &done[i][j]})
			}
			if v.Act == engine.Delete && engine.Moves(intent.Reason) {
				leave = append(leave, leaving(intent.Node)...)
			}
		}
	}
	if len(leave) > 0 {
		c.config.Leave(leave)
	}
	c.config.Each(len(jobs), func(i int) {
		if job := jobs[i]; job.act == engine.Mark {
			_, job.to.err = c.config.Applier.Mark(ctx, removeBy(job.of))
		} else {
			job.to.deleted, job.to.err = c.delete(ctx, r, job.of)
		}
	})
	return done
}

// delete deletes a claim. If its pool has too many, the claim is deleted only if unchanged since it was counted
// (L-42). One that has lost its finalizer is judged again once that is back: its machine would stay (P-40).
func (c *Controller) delete(ctx context.Context, r round, i engine.Intent) (bool, error) {
	if claim := r.claims[i.Node.Claim]; claim != nil &&
		!controllerutil.ContainsFinalizer(claim, karpenterv1.TerminationFinalizer) {
		return false, nil
	}
	if engine.TooMany(i.Reason) {
		return c.config.Applier.DeleteUnchanged(ctx, removeBy(i), r.counted[i.Node.Claim].ResourceVersion)
	}
	return c.config.Applier.Delete(ctx, removeBy(i))
}

// intentOf reads the intent from a claim and its node. If it is not Marked, it could not be read or does not exist:
// the node is being rebooted.
func (c *Controller) intentOf(ctx context.Context, r round, node *cluster.Node) (engine.Intent, error) {
	tainted, err := c.tainted(ctx, node.Name)
	if err != nil {
		return engine.Intent{}, err
	}
	mark, err := c.markOf(ctx, r, node.Claim, tainted)
	if err != nil || mark.Reason == "" && !tainted {
		return engine.Intent{}, err
	}
	return engine.Intent{Node: node, Reason: plan.DisruptionReason(mark.Reason), Marked: true, Tainted: tainted,
		Since: max(0, mark.LastTransitionTime.Unix())}, nil
}

// judgedBy returns the terms for judging. Pauses of pools do not apply: commands under way continue.
func (c *Controller) judgedBy(r round) engine.Terms {
	return engine.Terms{Now: r.now.Unix(), Budgets: r.budgets, MinSaving: c.config.MinSaving,
		MinSavingPercent: c.config.MinSavingPercent, SpotToSpot: c.config.SpotToSpot}
}

// carryOut carries out a verdict, as far as that is not done yet, and reports it.
func (c *Controller) carryOut(ctx context.Context, r round, v engine.Verdict, done []deed) error {
	switch v.Act {
	case engine.Mark: // a process ended between the intent's two writes, or the cache lacks the second
		return failuresOf(done)
	case engine.Wait:
		c.reportWaits(v)
	case engine.Narrow:
		return c.narrow(ctx, r, v)
	case engine.Undo:
		return c.undoAll(ctx, r, v, v.Intents)
	case engine.Delete:
		return c.removed(ctx, r, v, done)
	}
	return nil
}

func failuresOf(done []deed) error {
	failures := make([]error, len(done))
	for i, d := range done {
		failures[i] = d.err
	}
	return errors.Join(failures...)
}

// removed reports claims that were deleted.
func (c *Controller) removed(ctx context.Context, r round, v engine.Verdict, done []deed) error {
	failures := []error{failuresOf(done)}
	if v.Failed && slices.ContainsFunc(done, func(d deed) bool { return d.deleted }) {
		c.countFailed(v)
	}
	for j, i := range v.Intents {
		if !done[j].deleted {
			continue
		}
		c.memory.noteDeleted(i.Node.ClaimUID)
		if engine.Moves(i.Reason) {
			failures = append(failures, c.succeeded(ctx, r, i.Node.Pool))
		}
		c.reportRemoval(r, i.Node, removeBy(i))
	}
	return errors.Join(failures...)
}

// undoAll takes back intents of a verdict. A later step handles their replacements, see replacement.go. Pools whose
// nodes were to move are left alone for a while.
func (c *Controller) undoAll(ctx context.Context, r round, v engine.Verdict, intents []engine.Intent) error {
	var failures []error
	reason, first := v.Intents[0].Reason, passingPause
	if v.Failed {
		first = failurePause
	}
	c.countUndo(v)
	c.reportRejected(v, intents)
	for _, i := range intents {
		if engine.Moves(reason) && r.paused == "" {
			failures = append(failures, c.backOff(ctx, r, i.Node.Pool, first))
		}
		failures = append(failures, c.undo(ctx, removeBy(i), v.Why))
	}
	return errors.Join(failures...)
}

// countUndo counts a verdict that takes intents back, except for surplus nodes: nothing was validated there.
func (c *Controller) countUndo(v engine.Verdict) {
	reason := v.Intents[0].Reason
	switch {
	case v.Failed:
		c.countFailed(v)
	case !engine.TooMany(reason):
		kind := metrics.ConsolidationType(string(reason), len(v.Intents))
		c.config.Metrics.Disruption.FailedValidations.WithLabelValues(kind).Inc()
	}
}

// countFailed counts a command with a failed replacement, whatever happens to its nodes.
func (c *Controller) countFailed(v engine.Verdict) {
	reason := string(v.Intents[0].Reason)
	c.config.Metrics.Disruption.Failures.WithLabelValues(metrics.Replace, metrics.Reason(reason),
		metrics.ConsolidationType(reason, len(v.Intents))).Inc()
}

// narrow lets the replacements that came replace only a part of the command's nodes (D-10). The others stay. Their
// pools are left alone for a while after a failed launch, or until the part is done. A process that ends in between
// leaves a smaller command, and marks without a replacement. The next one continues the first and takes the second
// back.
func (c *Controller) narrow(ctx context.Context, r round, v engine.Verdict) error {
	var names []string
	for _, node := range v.Part {
		names = append(names, node.Claim)
	}
	slices.Sort(names)
	var failures []error
	for _, n := range v.Replacements {
		replacement := removeBy(engine.Intent{Node: n})
		failures = append(failures, c.config.Applier.Narrow(ctx, replacement, names, len(v.Replacements)))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	staying := slices.DeleteFunc(slices.Clone(v.Intents), func(i engine.Intent) bool {
		return slices.Contains(v.Part, i.Node)
	})
	if len(staying) == 0 {
		c.countUndo(v)
		return c.backOff(ctx, r, v.Intents[0].Node.Pool, failurePause)
	}
	return c.undoAll(ctx, r, v, staying)
}

// removeBy describes the removal of an intent.
func removeBy(i engine.Intent) plan.Remove {
	return plan.Remove{Claim: i.Node.Claim, ClaimUID: i.Node.ClaimUID, Node: i.Node.Name, Pool: i.Node.Pool,
		Price: i.Node.Price, Reason: i.Reason}
}

// undo takes an intent back and reports why.
func (c *Controller) undo(ctx context.Context, remove plan.Remove, why string) error {
	if err := c.config.Applier.Undo(ctx, remove); err != nil {
		return err
	}
	c.config.Events.Event(claimRef(remove), event.Normal, event.DisruptionCancelled, "The node stays: "+why)
	c.config.Log.Info("cancelled a removal", "claim", remove.Claim, "node", remove.Node, "pool", remove.Pool, "reason",
		why)
	return nil
}

// reportRemoval reports a claim that was just deleted.
func (c *Controller) reportRemoval(r round, node *cluster.Node, remove plan.Remove) {
	reason := string(remove.Reason)
	c.config.Metrics.Claims.Disrupt(claimFor(r, node), reason, policyOf(r, remove))
	c.tell(remove, event.DisruptionTerminating, "The node is removed: "+reason)
	c.config.Log.Info("removing", "event", "NodeClaimDeleting", "claim", remove.Claim, "node", remove.Node, "pool",
		remove.Pool, "reason", reason, "savesPerHour", remove.Price.String(), "moves", moved(node))
}

// moved lists the pods that have to leave with a node, as namespace/name (D-01).
func moved(node *cluster.Node) []string {
	list := []string{} // not nil: so the log says [] and not null
	for _, pod := range leaving(node) {
		list = append(list, pod.Ref())
	}
	return list
}

// leaving returns the pods that have to leave with a node.
func leaving(node *cluster.Node) (pods []*cluster.Pod) {
	for _, pod := range node.Pods {
		if !pod.Fixed {
			pods = append(pods, pod)
		}
	}
	return pods
}

// markOf reads the intent from a claim; its Reason is "" if there is none. A taint without an intent is old, or the
// cache lacks the intent's first part. So if there is a taint, it also asks the API server.
func (c *Controller) markOf(ctx context.Context, r round, name string, tainted bool) (karpenterv1.Condition, error) {
	readers := []client.Reader{c.config.Client}
	if tainted {
		readers = append(readers, c.config.Live)
	}
	for _, reader := range readers {
		var claim karpenterv1.NodeClaim
		if err := reader.Get(ctx, types.NamespacedName{Name: name}, &claim); err != nil {
			return karpenterv1.Condition{}, client.IgnoreNotFound(err)
		}
		if r.claims != nil {
			r.claims[name] = &claim
		}
		if found, _ := condition.Get(claim.Status.Conditions,
			karpenterv1.ConditionTypeDisruptionReason); found.Status == metav1.ConditionTrue {
			return found, nil
		}
	}
	return karpenterv1.Condition{}, nil
}

// tainted reports whether the cache shows the taint on the node; a claim without a node needs none.
func (c *Controller) tainted(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return true, nil
	}
	var node corev1.Node
	if err := c.config.Client.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == karpenterv1.DisruptedTaintKey }), nil
}

// claimRef returns as much of a claim as an event needs.
func claimRef(remove plan.Remove) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: remove.Claim, UID: types.UID(remove.ClaimUID)}}
}

// tell reports an event on a claim and, if it has one, its node (K-14).
func (c *Controller) tell(remove plan.Remove, reason, text string) {
	c.config.Events.Event(claimRef(remove), event.Normal, reason, text)
	if remove.Node != "" {
		c.config.Events.Event(event.NodeRef(remove.Node), event.Normal, reason, text)
	}
}

// claimFor returns the claim of a node as read in this round, or as much of it as the node shows.
func claimFor(r round, node *cluster.Node) *karpenterv1.NodeClaim {
	if claim := r.claims[node.Claim]; claim != nil {
		return claim
	}
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: node.Claim, Labels: node.Labels}}
}

// policyOf returns the consolidation policy by which a node goes; "" if the reason is not consolidation.
func policyOf(r round, remove plan.Remove) string {
	consolidates := remove.Reason == plan.Empty || remove.Reason == plan.Underutilized
	if found := r.pools[remove.Pool]; found != nil && consolidates {
		return string(found.Spec.Disruption.ConsolidationPolicy)
	}
	return ""
}
