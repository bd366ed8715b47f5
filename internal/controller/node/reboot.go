package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	removals "github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file carries out decided reboots (K-49). It fences the node off and drains it, for as long as its claim says,
// and then asks the provider. Each step is recorded on node or claim before the next, so that another process can
// continue:
//
//	condition Rebooting=True, RebootRequested     decided by the repair controller
//	taint karpenter.sh/rebooting                  no more pods come; those on the node are evicted
//	annotations with boot ID and time             the provider is being asked
//	RebootIssued, Initialized=Unknown             accepted; the claim controller checks how the node comes back

const (
	// drainWithin bounds the drain of a reboot that gives no grace period, such as one of Karpenter's.
	drainWithin = 5 * time.Minute
	// askWithin is how long after its drain the provider may take to accept a reboot.
	askWithin = 5 * time.Minute
	// askAgainAfter is how long to wait for an answer before the provider is asked again. By then a rebooted machine
	// has another boot ID, so no second reboot is requested.
	askAgainAfter = 4 * time.Minute
	// bootAgainAfter is how often to check for another boot ID meanwhile.
	bootAgainAfter = 5 * time.Second
)

// Rebooter reboots machines; see package fleet.
type Rebooter interface {
	CanReboot(providerID string) bool
	Reboot(ctx context.Context, providerID, operation string) error
}

// RebootDecided reports whether a reboot of the claim's node was decided but not accepted by its provider yet.
func RebootDecided(claim *karpenterv1.NodeClaim) bool {
	c, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	return condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting) &&
		c.Reason == karpenterv1.ReasonRebootRequested
}

// reboot does the next step of a decided reboot of the node. If nobody can reboot its machine, the controller of
// claims takes the decision back.
func (c *Controller) reboot(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	if c.config.Rebooter == nil || !c.config.Rebooter.CanReboot(node.Spec.ProviderID) {
		return reconcile.Result{}, nil
	}
	claim, err := c.claimOf(ctx, node)
	if err != nil || claim == nil || claim.DeletionTimestamp != nil || !RebootDecided(claim) ||
		!c.config.Fleet.OwnsNode(node, claim, nil) {
		return reconcile.Result{}, err
	}
	grace, err := graceOfReboot(claim)
	if err != nil {
		return reconcile.Result{}, c.failReboot(ctx, node, claim, metrics.RebootInvalid, err.Error())
	}
	if err := c.fence(ctx, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	begun, _ := condition.Since(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	due, now := begun.Add(grace), c.config.Now()
	if old, asked := claim.Annotations[karpenterv1.RebootPreBootIDAnnotationKey]; asked {
		when, err := time.Parse(time.RFC3339, claim.Annotations[karpenterv1.RebootAskedAnnotationKey])
		switch {
		case node.Status.NodeInfo.BootID != old, writtenInPart(node, claim):
			return reconcile.Result{}, c.issued(ctx, node, claim)
		case !now.Before(due.Add(askWithin)):
			return reconcile.Result{}, c.failReboot(ctx, node, claim, metrics.RebootProviderError,
				fmt.Sprintf("the provider has not taken the reboot of node %s on within %s", node.Name, askWithin))
		case err == nil && now.Before(when.Add(askAgainAfter)):
			return reconcile.Result{RequeueAfter: bootAgainAfter}, nil
		}
		if err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil { // the cache may be late
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if node.Status.NodeInfo.BootID != old {
			return reconcile.Result{}, c.issued(ctx, node, claim)
		}
	} else if now.Before(due) {
		if left, again, err := c.drainForReboot(ctx, node, due); err != nil || left {
			return reconcile.Result{RequeueAfter: again}, err
		}
	}
	return c.askForReboot(ctx, node, claim)
}

// graceOfReboot returns how long the drain before a reboot may take.
func graceOfReboot(claim *karpenterv1.NodeClaim) (time.Duration, error) {
	const key = karpenterv1.RebootTerminationGracePeriodAnnotationKey
	text, found := claim.Annotations[key]
	if !found {
		if own := claim.Spec.TerminationGracePeriod; own != nil {
			return min(own.Duration, drainWithin), nil
		}
		return drainWithin, nil
	}
	grace, err := time.ParseDuration(text)
	if err != nil || grace < 0 {
		return 0, fmt.Errorf("annotation %s of NodeClaim %s is %q; want a duration of 0s or more, such as 1m30s", key,
			claim.Name, text)
	}
	return grace, nil
}

// fence keeps new pods away from the node.
func (c *Controller) fence(ctx context.Context, node *corev1.Node) error {
	if hasTaint(node, karpenterv1.RebootingTaintKey, corev1.TaintEffectNoSchedule) {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: karpenterv1.RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule})
	return c.config.Client.Patch(ctx, node, patch.Node(before, node))
}

// drainForReboot requests the evictions that are due, and reports whether pods are left that may still go before due.
// Pods of DaemonSets stay, and so do those that the eviction API refuses. They run again after the reboot.
func (c *Controller) drainForReboot(ctx context.Context, node *corev1.Node,
	due time.Time) (left bool, again time.Duration, err error) {
	var pods corev1.PodList
	if err := c.config.Client.List(ctx, &pods, client.MatchingFields{IndexPodNode: node.Name}); err != nil {
		return false, 0, fmt.Errorf("listing the pods of node %s: %w", node.Name, err)
	}
	movable := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pod.OwnerReferences, ownedByDaemonSet)
	})
	now := c.config.Now()
	drain := planDrain(movable, now, time.Time{}, false)
	if len(drain.left) == 0 {
		return false, 0, nil
	}
	drain.reason, drain.why = string(removals.Unhealthy), "rebooted"
	obstacles, failure := c.carryOut(ctx, drain)
	if failure != nil {
		return true, 0, fmt.Errorf("draining node %s before its reboot: %w", node.Name, failure)
	}
	if len(obstacles) > 0 {
		c.config.Events.Event(node, event.Warning, event.FailedDraining,
			fmt.Sprintf("Cannot drain before the reboot at %s: %s",
				due.UTC().Format(time.RFC3339), listSome(obstacles)))
	}
	return true, min(drainAgainAfter, due.Sub(now)), nil
}

// askForReboot records which boot is to end, and asks the provider. Withdrawing the reboot writes the claim too, so
// one of the two fails.
func (c *Controller) askForReboot(ctx context.Context, node *corev1.Node,
	claim *karpenterv1.NodeClaim) (reconcile.Result, error) {
	begun, _ := condition.Since(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	asking := map[string]string{karpenterv1.RebootPreBootIDAnnotationKey: node.Status.NodeInfo.BootID,
		karpenterv1.RebootAskedAnnotationKey: c.config.Now().UTC().Format(time.RFC3339)}
	if err := c.annotate(ctx, claim, asking); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing down that node %s is rebooted: %w", node.Name, err)
	}
	operation := fmt.Sprintf("%s-%d", claim.UID, begun.Unix())
	err := c.config.Rebooter.Reboot(ctx, node.Spec.ProviderID, operation)
	var refused *provider.RebootError
	switch {
	case err == nil:
		return reconcile.Result{}, c.issued(ctx, node, claim)
	case errors.As(err, &refused), errors.Is(err, provider.ErrNotFound):
		return reconcile.Result{}, c.failReboot(ctx, node, claim, metrics.RebootProviderError, err.Error())
	case errors.Is(err, provider.ErrThrottled): // not accepted; may be requested again soon
		again := c.annotate(ctx, claim, map[string]string{karpenterv1.RebootAskedAnnotationKey: ""})
		return reconcile.Result{}, errors.Join(err, again)
	}
	return reconcile.Result{}, err
}

// annotate writes annotations of a claim. It fails if anybody has written the claim since it was read.
func (c *Controller) annotate(ctx context.Context, claim *karpenterv1.NodeClaim, values map[string]string) error {
	bare, status := claim.DeepCopy(), claim.Status.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	for key, value := range values {
		claim.Annotations[key] = value
	}
	if err := c.config.Client.Patch(ctx, claim,
		client.MergeFromWithOptions(bare, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	claim.Status = *status
	return nil
}

// writtenInPart reports whether an accepted reboot is recorded on the node only: its label is removed first.
func writtenInPart(node *corev1.Node, claim *karpenterv1.NodeClaim) bool {
	_, labelled := node.Labels[karpenterv1.NodeInitializedLabelKey]
	return !labelled && condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
}

// issued records that the provider has accepted the reboot. Until the node is ready again, it is not initialized.
func (c *Controller) issued(ctx context.Context, node *corev1.Node, claim *karpenterv1.NodeClaim) error {
	if _, labelled := node.Labels[karpenterv1.NodeInitializedLabelKey]; labelled {
		if err := c.config.Client.Patch(ctx, node,
			patch.WithoutLabel(node, karpenterv1.NodeInitializedLabelKey)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	known, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	return c.setConditions(ctx, claim,
		condition.True(karpenterv1.ConditionTypeRebooting, karpenterv1.ReasonRebootIssued, known.Message),
		condition.Unknown(karpenterv1.ConditionTypeInitialized, "Rebooting", "node "+node.Name+" is being rebooted"),
		condition.Unknown(karpenterv1.ConditionTypeReady, "NotInitialized", ""))
}

// failReboot ends a reboot that did not begin. The controller of claims removes the taint. The repair controller
// replaces the node if it is still unhealthy.
func (c *Controller) failReboot(ctx context.Context, node *corev1.Node, claim *karpenterv1.NodeClaim,
	result, message string) error {
	begun, _ := condition.Since(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
	value := condition.False(karpenterv1.ConditionTypeRebooting, karpenterv1.ReasonRebootFailed, message)
	if err := c.setConditions(ctx, claim, value); err != nil {
		return fmt.Errorf("writing that the reboot of node %s has failed: %w", node.Name, err)
	}
	c.config.Events.Event(claim, event.Warning, event.RebootFailed, "The node is not rebooted: "+message)
	c.config.Metrics.Nodes.Rebooted(result, c.config.Now().Sub(begun).Seconds())
	c.config.Log.Info("reboot failed", "claim", claim.Name, "node", node.Name, "pool", translate.PoolOf(claim),
		"result", result, "message", message)
	return nil
}
