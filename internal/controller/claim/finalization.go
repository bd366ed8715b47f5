package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// terminateAgainAfter is the delay until the provider is asked again whether an instance is gone.
const terminateAgainAfter = 2 * time.Second

// lookAgain is how often the provider's list is checked for the machine of a deleted claim whose launch may still
// land.
const lookAgain = 10 * time.Second

// finalize takes a deleted claim to its end (P-40): first its node, which drains, then the instance, until it is
// proved gone, then the finalizer.
func (c *Controller) finalize(ctx context.Context, w *work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(w.claim, karpenterv1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	if err := c.setDeadline(ctx, w.claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if left, err := c.findInstance(ctx, w); err != nil || left > 0 {
		// NotFound is an error here: a cloud may be an API server, and lack objects of its own.
		return reconcile.Result{RequeueAfter: left}, err
	}
	node, err := c.config.nodeOf(ctx, w.claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	if node != nil {
		c.attempts.sawNode(w.claim.UID)
	}
	gone := false
	if node == nil || letGo(node) {
		gone, err = c.instanceGone(ctx, w)
		if err == nil && !gone {
			if node == nil && !c.attempts.hadNode(w.claim.UID) {
				node, err = c.lateNode(ctx, w.claim)
			}
			w.askAgain(terminateAgainAfter)
		}
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if node != nil && !gone && !letGo(node) {
		// its end wakes this claim again, if the watch shows it
		w.node = node
		if err := c.keepMarks(ctx, w); err != nil { // without our finalizer it would go undrained
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: w.again}, c.deleteNode(ctx, w.node)
	}
	if !gone {
		gone, err = c.endInstance(ctx, w)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if !gone {
		before := w.claim.DeepCopy()
		c.set(w, condition.True(karpenterv1.ConditionTypeInstanceTerminating, "InstanceTerminating", ""))
		err := c.saveStatus(ctx, before, w.claim)
		return reconcile.Result{RequeueAfter: terminateAgainAfter}, client.IgnoreNotFound(err)
	}
	removal := patch.RemoveFinalizer
	if w.claim.Status.ProviderID == "" { // until this write, another leader may still record a machine on it
		removal = patch.RemoveFinalizerOfUnchanged
	}
	if err := c.config.Client.Patch(ctx, w.claim, removal(w.claim, karpenterv1.TerminationFinalizer)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.attempts.forget(w.claim.UID)
	pool, labels := translate.PoolOf(w.claim), w.claim.Labels
	capacityType, zone := labels[karpenterv1.CapacityTypeLabelKey], labels[corev1.LabelTopologyZone]
	c.config.Metrics.Claims.Terminated.WithLabelValues(pool, capacityType, zone).Inc()
	c.measureEnd(w.claim, pool)
	c.config.Log.Info("ended NodeClaim", "event", "NodeClaimDeleted", "claim", w.claim.Name, "pool", pool)
	return reconcile.Result{}, nil
}

// measureEnd measures how long the claim and its machine took to go. The times on the claim are in whole seconds.
func (c *Controller) measureEnd(claim *karpenterv1.NodeClaim, pool string) {
	now, ended := c.config.Now(), c.config.Metrics.Claims
	ended.Termination.WithLabelValues(pool).Observe(max(0, now.Sub(claim.DeletionTimestamp.Time).Seconds()))
	if claim.Status.ProviderID == "" {
		return // there was no machine
	}
	since, _ := condition.Since(claim.Status.Conditions, karpenterv1.ConditionTypeInstanceTerminating)
	if since.IsZero() {
		since = now // it was gone with the first call, or before
	}
	ended.InstanceTermination.WithLabelValues(pool).Observe(max(0, now.Sub(since).Seconds()))
}

// letGo reports whether we are done with a node: it is drained and its instance has ended, or it was never registered
// and so has no pods to drain. Somebody else's finalizer may hold it for long. Meanwhile its claim must not use up the
// pool's budgets (D-08), and nobody but the claim would end the instance.
func letGo(node *corev1.Node) bool {
	return node.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(node, karpenterv1.TerminationFinalizer)
}

// setDeadline records when the drain must be over. The grace period counts from the first deletion, whatever happens
// to the pool meanwhile (P-41).
func (c *Controller) setDeadline(ctx context.Context, claim *karpenterv1.NodeClaim) error {
	grace := claim.Spec.TerminationGracePeriod
	if grace == nil || claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return nil
	}
	// There may be an earlier deadline, such as an interruption's, that the cache does not show yet. It must not be
	// postponed.
	due := claim.DeletionTimestamp.Add(grace.Duration).UTC().Format(time.RFC3339)
	return c.config.Client.Patch(ctx, claim,
		patch.Annotation(claim, karpenterv1.NodeClaimTerminationTimestampAnnotationKey, due))
}

// lateNode looks for the node of a claim when the cache does not show it. The watch may be late, and ending the
// instance now would kill undrained pods. Only the API server knows; it returns nil if that has none. A node that is
// not registered yet has no pods.
func (c *Controller) lateNode(ctx context.Context, claim *karpenterv1.NodeClaim) (*corev1.Node, error) {
	var nodes corev1.NodeList
	switch pool := translate.PoolOf(claim); {
	case claim.Status.NodeName != "":
		var node corev1.Node
		if err := c.config.Live.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, &node); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		nodes.Items = append(nodes.Items, node)
	case pool != "": // perhaps registered by a process that ended before it recorded that
		registered := client.MatchingLabels{karpenterv1.NodeRegisteredLabelKey: "true",
			karpenterv1.NodePoolLabelKey: pool}
		if err := c.config.Live.List(ctx, &nodes, registered); err != nil {
			return nil, fmt.Errorf("looking for the node of NodeClaim %s: %w", claim.Name, err)
		}
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.ProviderID == claim.Status.ProviderID &&
			c.config.Fleet.OwnsNode(&nodes.Items[i], claim, nil) {
			return &nodes.Items[i], nil
		}
	}
	return nil, nil
}

// deleteNode deletes a node that has our finalizer; nil is one that is gone. If it has changed since it was read, the
// finalizer may be off, and the node would go undrained. Then the API server is asked.
func (c *Controller) deleteNode(ctx context.Context, node *corev1.Node) error {
	if node == nil || node.DeletionTimestamp != nil {
		return nil
	}
	err := c.deleteUnchanged(ctx, node)
	if apierrors.IsConflict(err) {
		var now corev1.Node
		if err = c.config.Live.Get(ctx, client.ObjectKeyFromObject(node), &now); err == nil &&
			now.UID == node.UID && now.DeletionTimestamp == nil {
			err = c.deleteHeld(ctx, &now)
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting node %s: %w", node.Name, err)
	}
	return nil
}

// deleteHeld puts our finalizer onto a node, if that is off, and deletes it.
func (c *Controller) deleteHeld(ctx context.Context, node *corev1.Node) error {
	before := node.DeepCopy()
	if controllerutil.AddFinalizer(node, karpenterv1.TerminationFinalizer) {
		if err := c.config.Client.Patch(ctx, node, patch.Node(before, node)); err != nil {
			return err
		}
	}
	return c.deleteUnchanged(ctx, node)
}

func (c *Controller) deleteUnchanged(ctx context.Context, node *corev1.Node) error {
	return c.config.Client.Delete(ctx, node,
		client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion})
}

// findInstance looks by the claim's UID for the instance of a claim that names none: it was deleted during its launch,
// or the answer was lost. It records the instance, which may have joined and run pods by now. It returns how long the
// provider's list may still lack the instance. If the provider has refused each launch, none exists.
func (c *Controller) findInstance(ctx context.Context, w *work) (time.Duration, error) {
	ends, recorded := recordEnds(w.claim)
	if w.claim.Status.ProviderID != "" || c.provedNone(w.claim) {
		return 0, nil
	}
	asked := c.config.Now()
	instances, err := w.cloud.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("looking for the instance of NodeClaim %s: %w", w.claim.Name, err)
	}
	for _, instance := range instances {
		if instance.ClaimUID == string(w.claim.UID) {
			if !instance.Fence.Open(w.claim) { // it may become another claim's
				return lookAgain, nil
			}
			before := w.claim.DeepCopy()
			w.claim.Status.ProviderID = instance.ProviderID
			return 0, client.IgnoreNotFound(c.saveStatus(ctx, before, w.claim))
		}
	}
	if !recorded {
		ends = c.launchEnds(w.claim)
	}
	if left := ends.Sub(asked); left > 0 {
		return min(left, lookAgain), nil
	}
	var fresh karpenterv1.NodeClaim // a slow launch of ours may just have been recorded
	if err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(w.claim), &fresh); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("reading NodeClaim %s: %w", w.claim.Name, err)
	}
	if fresh.UID == w.claim.UID {
		w.claim.Status.ProviderID = fresh.Status.ProviderID
	}
	return 0, nil
}

// mayLand is how long after it was sent a launch may land and still be missing from the provider's list.
const mayLand = provider.LaunchFor + provider.ClockSkew + provider.ListLag

// launchEnds returns when the provider's list certainly shows every launch for a deleted claim without a record. An
// unanswered launch may still be under way. It is this process's or, if the claim is older than this process, an
// earlier one's.
func (c *Controller) launchEnds(claim *karpenterv1.NodeClaim) time.Time {
	ends := claim.DeletionTimestamp.Add(grace)
	later := func(at time.Time) {
		if at.After(ends) {
			ends = at
		}
	}
	if !c.attempts.allAnswered(claim.UID) {
		later(c.attempts.last(claim.UID).Add(mayLand))
	}
	if began := c.began(); !claim.CreationTimestamp.After(began) {
		later(began.Add(mayLand))
	}
	return ends
}

// instanceGone reports whether the claim's instance is proved gone. Usually it is, because its node has ended it.
func (c *Controller) instanceGone(ctx context.Context, w *work) (bool, error) {
	if w.claim.Status.ProviderID == "" {
		return true, nil
	}
	_, err := w.cloud.Get(ctx, w.claim.Status.ProviderID)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return false, c.tellStuck(w, fmt.Errorf("looking for the instance of NodeClaim %s: %w", w.claim.Name, err))
	}
	return err != nil, nil
}

// endInstance ends the claim's instance and reports whether it is proved gone.
func (c *Controller) endInstance(ctx context.Context, w *work) (bool, error) {
	err := w.cloud.Terminate(ctx, w.claim.Status.ProviderID, nil)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return false, c.tellStuck(w, fmt.Errorf("ending instance %s of NodeClaim %s: %w", w.claim.Status.ProviderID,
			w.claim.Name, err))
	}
	return err != nil, nil
}

const (
	// stuckAfter is how long after its deletion a claim says what keeps it. Most failures of a cloud are over by then.
	stuckAfter = time.Minute
	// eventStuck is the reason of that event.
	eventStuck = "InstanceNotEnded"
)

// tellStuck returns the error that keeps a deleted claim. If it has for a while, an event has the text: the instance
// may have another cluster's tag, or the cloud may refuse to end it, and somebody has to correct that.
func (c *Controller) tellStuck(w *work, err error) error {
	if c.config.Now().Sub(w.claim.DeletionTimestamp.Time) >= stuckAfter && !errors.Is(err, provider.ErrThrottled) &&
		!errors.Is(err, context.Canceled) {
		c.config.Events.Event(w.claim, event.Warning, eventStuck, "NodeClaim stays: "+err.Error())
	}
	return err
}
