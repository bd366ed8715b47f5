package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// This file records decided reboots on the NodeClaim, and withdraws those that have not been requested yet. The
// controller of nodes drains the node and requests the reboot from the provider. The controller of claims checks how
// the node comes back (K-49).

// history is how long reboots of a node are remembered.
const history = 24 * time.Hour

// reboot is the state of a reboot of a claim's node, from its condition.
type reboot struct {
	on      bool // a reboot is under way
	decided bool // under way, but not requested from the provider yet
	reason  string
	since   time.Time
}

func rebootOf(claim *karpenterv1.NodeClaim) reboot {
	c, found := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	if !found {
		return reboot{}
	}
	on := c.Status == metav1.ConditionTrue
	_, asked := claim.Annotations[karpenterv1.RebootPreBootIDAnnotationKey]
	return reboot{on: on, decided: on && !asked && c.Reason == karpenterv1.ReasonRebootRequested, reason: c.Reason,
		since: c.LastTransitionTime.Time}
}

// ended returns when the last reboot succeeded, in Unix seconds; 0 if there was none recently.
func (r reboot) ended(now time.Time) int64 {
	if r.on || r.reason != karpenterv1.ReasonRebootSucceeded || now.Sub(r.since) > history {
		return 0
	}
	return r.since.Unix()
}

// failed reports whether the last reboot failed recently.
func (r reboot) failed(now time.Time) bool {
	return !r.on && r.reason == karpenterv1.ReasonRebootFailed && now.Sub(r.since) <= history
}

// rebootsSince returns when reboots of a claim's node were decided. An unreadable entry counts as a recent reboot: a
// node with an unknown history is better replaced.
func rebootsSince(claim *karpenterv1.NodeClaim, after time.Time) (list []string) {
	for text := range strings.SplitSeq(claim.Annotations[karpenterv1.RebootsAnnotationKey], ",") {
		if at, err := time.Parse(time.RFC3339, text); text != "" && (err != nil || at.After(after)) {
			list = append(list, text)
		}
	}
	return list
}

// reboot records that a node is to be rebooted and how long its drain may take, unless it has just recovered.
func (c *Controller) reboot(ctx context.Context, x treated) error {
	if still, err := c.still(ctx, x); err != nil || !still {
		return err
	}
	claim, now := x.claim, c.config.Now()
	grace := time.Duration(x.finding.Drain) * time.Second
	if own := claim.Spec.TerminationGracePeriod; own != nil && own.Duration < grace {
		grace = own.Duration
	}
	bare, status := claim.DeepCopy(), claim.Status.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	delete(claim.Annotations, karpenterv1.RebootPreBootIDAnnotationKey)
	delete(claim.Annotations, karpenterv1.RebootAskedAnnotationKey)
	claim.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey] = grace.String()
	times := append(rebootsSince(claim, now.Add(-history)), now.UTC().Format(time.RFC3339))
	claim.Annotations[karpenterv1.RebootsAnnotationKey] = strings.Join(slices.Compact(times), ",")
	unchanged := client.MergeFromWithOptions(bare, client.MergeFromWithOptimisticLock{})
	if err := c.config.Client.Patch(ctx, claim, unchanged); err != nil {
		return client.IgnoreNotFound(err)
	}
	claim.Status = *status
	message := fmt.Sprintf("node %s is rebooted: %s", x.node.Name, says(x))
	value := condition.True(karpenterv1.ConditionTypeRebooting, karpenterv1.ReasonRebootRequested, message)
	if err := c.setRebooting(ctx, claim, value); err != nil {
		return err
	}
	labels := []string{metrics.DecisionReboot, metrics.Reason(string(plan.Unhealthy)), ""}
	c.config.Decisions.Decisions.WithLabelValues(labels...).Inc()
	c.config.Decisions.PoolDecisions.WithLabelValues(append([]string{x.pool}, labels...)...).Inc()
	c.config.Log.Info("rebooting", "claim", claim.Name, "node", x.node.Name, "pool", x.pool, "reason",
		string(plan.Unhealthy), "condition", says(x), "since", sinceOf(x))
	return nil
}

// withdraw takes back a reboot that has not been requested from the provider. Whoever requests it writes that on the
// claim first, so one of the two fails.
func (c *Controller) withdraw(ctx context.Context, x treated) error {
	message := fmt.Sprintf("node %s is not rebooted: %s", x.node.Name, x.why)
	value := condition.False(karpenterv1.ConditionTypeRebooting, karpenterv1.ReasonRebootWithdrawn, message)
	if err := c.setRebooting(ctx, x.claim, value); err != nil {
		return err
	}
	c.config.Log.Info("took back a reboot", "claim", x.claim.Name, "node", x.node.Name, "pool", x.pool, "why", x.why)
	return nil
}

// setRebooting writes the condition, and fails if anybody has written the claim meanwhile.
func (c *Controller) setRebooting(ctx context.Context, claim *karpenterv1.NodeClaim, value condition.Value) error {
	before := claim.Status.DeepCopy()
	condition.Set(&claim.Status.Conditions, claim.Generation, value, c.config.Now())
	if err := c.config.Client.Status().Patch(ctx, claim,
		patch.Status(claim, before, &claim.Status)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing that node %s is rebooted: %w", claim.Status.NodeName, err)
	}
	return nil
}
