package disruption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// proceed looks at each node that carries an intent: it is deleted when everything still holds, and otherwise the
// intent is taken back. It reports whether there was any intent, and notes the pools of those with pods on them.
func (c *Controller) proceed(ctx context.Context, r round) (underway bool, err error) {
	used := map[string]int{} // by pool: nodes that use up a budget, whatever becomes of the intents
	for _, node := range r.snapshot.Nodes {
		if node.Claim != "" && (node.Deleting || !node.Disrupting && node.Initialized && node.NotReady) {
			used[node.Pool]++
		}
	}
	var failures []error
	var intents []intent
	for _, node := range r.snapshot.Nodes {
		if !node.Disrupting || node.Deleting || node.Claim == "" {
			continue
		}
		underway = true
		remove := plan.Remove{Claim: node.Claim, ClaimUID: node.ClaimUID, Node: node.Name, Pool: node.Pool, Price: node.Price}
		reason, err := c.reasonOf(ctx, r, remove)
		remove.Reason = plan.DisruptionReason(reason)
		if moves(remove.Reason) {
			intents = append(intents, intent{node, remove})
			r.moving[node.Pool] = true
			continue
		}
		if err == nil {
			err = c.settle(ctx, r, node, remove, used)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("removing node %s: %w", node.ID(), err))
		}
	}
	failures = append(failures, c.settleCommands(ctx, r, intents, used))
	return underway, errors.Join(failures...)
}

// settle decides about one intent.
func (c *Controller) settle(ctx context.Context, r round, node *cluster.Node, remove plan.Remove, used map[string]int) error {
	if trimmed(remove.Reason) {
		used[node.Pool]++
		return c.settleTrim(ctx, r, node, remove, used)
	}
	if why := cmp.Or(r.paused, objection(r, node, remove.Reason, used)); why != "" {
		c.config.Metrics.Disruption.FailedValidations.WithLabelValues(metrics.ConsolidationType(string(remove.Reason), 1)).Inc()
		return c.undo(ctx, remove, why)
	}
	if remove.Reason == plan.ReplacementAbandoned && used[node.Pool] >= engine.Allowed(r.budgets[node.Pool], remove.Reason) {
		return nil // nothing runs on it, so it can wait for the budget
	}
	used[node.Pool]++
	tainted, err := c.tainted(ctx, node.Name)
	if err != nil {
		return err
	}
	if !tainted { // the last process ended between the two parts of the intent, or the watch has not shown the second yet
		_, err := c.config.Applier.Mark(ctx, remove)
		return err
	}
	deleted, err := c.config.Applier.Delete(ctx, remove)
	if !deleted {
		return err
	}
	c.reportRemoval(r, node, remove)
	return nil
}

// undo takes an intent back, and says why.
func (c *Controller) undo(ctx context.Context, remove plan.Remove, why string) error {
	if err := c.config.Applier.Undo(ctx, remove); err != nil {
		return err
	}
	c.config.Events.Event(claimRef(remove), event.Normal, event.DisruptionCancelled, "The node stays: "+why)
	c.config.Log.Info("cancelled a removal", "claim", remove.Claim, "node", remove.Node, "pool", remove.Pool, "reason", why)
	return nil
}

// reportRemoval tells about a claim that was just deleted.
func (c *Controller) reportRemoval(r round, node *cluster.Node, remove plan.Remove) {
	reason := string(remove.Reason)
	c.config.Metrics.Claims.Disrupt(claimFor(r, node), reason, policyOf(r, remove))
	c.tell(remove, event.DisruptionTerminating, "The node is removed: "+reason)
	c.config.Log.Info("removing", "claim", remove.Claim, "node", remove.Node, "pool", remove.Pool, "reason", reason, "savesPerHour", remove.Price.String(), "moves", moved(node))
}

// moved lists the pods that have to leave with a node, as namespace/name (D-01).
func moved(node *cluster.Node) []string {
	list := []string{} // not nil: the log then says [] and not null
	for _, pod := range node.Pods {
		if !pod.Fixed {
			list = append(list, pod.Ref())
		}
	}
	return list
}

// reasonOf reads the reason of an intent from the claim; "" when the claim has none. An intent without a reason is an
// old taint, or one of which the cache has not seen the first part yet, so the API server itself is asked.
func (c *Controller) reasonOf(ctx context.Context, r round, remove plan.Remove) (string, error) {
	for _, reader := range []client.Reader{c.config.Client, c.config.Live} {
		var claim karpenterv1.NodeClaim
		if err := reader.Get(ctx, types.NamespacedName{Name: remove.Claim}, &claim); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		if r.claims != nil {
			r.claims[remove.Claim] = &claim
		}
		if found, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason); found.Status == metav1.ConditionTrue {
			return found.Reason, nil
		}
	}
	return "", nil
}

// objection says why an intent does not hold any more, "" when it does (D-09).
func objection(r round, node *cluster.Node, reason plan.DisruptionReason, used map[string]int) string {
	switch {
	case reason == "":
		return "there is no reason for its removal; whoever wanted it has given up"
	case reason == plan.ReplacementAbandoned:
		return objectionToAbandon(r, node)
	case reason != plan.Empty:
		return fmt.Sprintf("the reason %s is none that this controller acts on", reason)
	case r.snapshot.Pool(node.Pool) == nil:
		return "its NodePool is gone"
	case !engine.IsEmpty(node, r.now.Unix()):
		return "it is not empty any more, or protected"
	case engine.Replacing(r.snapshot, node):
		return "what it replaces is still there, and its pods are to come here"
	case slices.ContainsFunc(r.snapshot.Pending, promisedTo(node)):
		return "a pending pod was promised a place on it"
	case used[node.Pool] >= engine.Allowed(r.budgets[node.Pool], reason):
		return "the disruption budget of its NodePool does not allow it any more"
	}
	return ""
}

// tainted reports whether the watches show the taint on the node; a claim without a node needs none.
func (c *Controller) tainted(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return true, nil
	}
	var node corev1.Node
	if err := c.config.Client.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenterv1.DisruptedTaintKey }), nil
}

// claimRef makes as much of a claim as an event needs.
func claimRef(remove plan.Remove) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: remove.Claim, UID: types.UID(remove.ClaimUID)}}
}

// tell tells of a claim and, where it has one, of its node (K-14).
func (c *Controller) tell(remove plan.Remove, reason, text string) {
	c.config.Events.Event(claimRef(remove), event.Normal, reason, text)
	if remove.Node != "" {
		c.config.Events.Event(event.NodeRef(remove.Node), event.Normal, reason, text)
	}
}

// claimFor returns the claim of a node as this round has read it, or as much of it as the node tells.
func claimFor(r round, node *cluster.Node) *karpenterv1.NodeClaim {
	if claim := r.claims[node.Claim]; claim != nil {
		return claim
	}
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: node.Claim, Labels: node.Labels}}
}

// policyOf returns the consolidation policy by which a node goes; "" where another reason than consolidation has it go.
func policyOf(r round, remove plan.Remove) string {
	consolidates := remove.Reason == plan.Empty || remove.Reason == plan.Underutilized
	if found := r.pools[remove.Pool]; found != nil && consolidates {
		return string(found.Spec.Disruption.ConsolidationPolicy)
	}
	return ""
}
