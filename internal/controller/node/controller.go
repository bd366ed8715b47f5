// Package node ends nodes (P-40 to P-42). It taints a Node of ours that is being deleted, drains it by the eviction
// API tier by tier, and waits for its volumes. The node goes when the provider has proved that its instance is gone.
// What delays it is shown on its NodeClaim and in an event on the node. It also carries out reboots (reboot.go).
//
// drain.go decides which pods go when, and is pure; evict.go asks the API server; blocked.go says what blocks the
// drain. Start with [Controller.Reconcile]: one step from the current objects, which can be repeated at any point.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// Index fields of the cache. The API server knows the first one itself.
const (
	IndexPodNode         = "spec.nodeName"
	IndexClaimProviderID = "status.providerID"
)

// Delays while waiting for something that may come without an event.
const (
	claimAgainAfter     = 100 * time.Millisecond // the claim was just deleted and gets its deadline
	drainAgainAfter     = 2 * time.Second        // an eviction that a PDB refused is asked for again
	detachAgainAfter    = 2 * time.Second
	terminateAgainAfter = 2 * time.Second
	// taintSettles is how long after its deletion a node without pods is kept, as in Karpenter.
	taintSettles = 5 * time.Second
	// stuckAfter is how long after its deletion a node says which answer of its cloud keeps it.
	stuckAfter = time.Minute
)

// draining is the reason of the condition Drained while nothing is in the way.
const draining = "Draining"

// Fleet answers questions about nodes and their machines; see package fleet.
type Fleet interface {
	OwnsClaim(claim *karpenterv1.NodeClaim) bool
	OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool
	Find(ctx context.Context, providerID string) (fleet.Fate, error)
	Terminate(ctx context.Context, providerID string, inUse func() bool) (fleet.Fate, error)
}

// Config configures the controller; all fields except Rebooter are required.
type Config struct {
	Client client.Client // reads from a cache with the index fields above
	Live   client.Reader // reads from the API server
	Fleet  Fleet
	// Rebooter reboots machines; nil where nobody repairs nodes.
	Rebooter Rebooter
	Events   event.Recorder
	Metrics  *metrics.Set
	Unseen   *unseen.Objects // this process's writes; nil never waits
	Now      func() time.Time
	Log      logr.Logger
}

// Controller ends nodes.
type Controller struct {
	config Config
	begun  begun
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile does the next step of ending the node of that name.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := c.config.Client.Get(ctx, request.NamespacedName, &node); err != nil {
		c.config.Unseen.Gone(&node, request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := c.config.Unseen.Behind(&node); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if node.DeletionTimestamp == nil {
		return c.reboot(ctx, &node)
	}
	if !controllerutil.ContainsFinalizer(&node, karpenterv1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	claim, err := c.claimOf(ctx, &node)
	if err != nil {
		return reconcile.Result{}, err
	}
	if ours, err := c.owns(ctx, &node, claim); err != nil || !ours {
		return reconcile.Result{}, err
	}
	if claim != nil && claim.DeletionTimestamp == nil {
		if err := removal.Delete(ctx, c.config.Client, claim); err != nil {
			return reconcile.Result{}, fmt.Errorf("ending deleted node %s: %w", node.Name, err)
		}
		c.config.Log.Info("deleted NodeClaim, its node was deleted", "event", "NodeClaimDeleting", "claim", claim.Name,
			"node", node.Name)
		return reconcile.Result{RequeueAfter: claimAgainAfter}, nil
	}
	gone, err := c.instanceGone(ctx, &node)
	if err != nil {
		return reconcile.Result{}, err
	}
	if gone {
		return reconcile.Result{}, c.finish(ctx, &node, "instance was gone")
	}
	fresh, err := c.cordon(ctx, &node)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return c.end(ctx, &node, claim, fresh)
}

// owns reports whether we may end the node. If the cache shows no claim, there may still be one, and the node may be
// another program's. So the API server is asked for the claim that owns it.
func (c *Controller) owns(ctx context.Context, node *corev1.Node, claim *karpenterv1.NodeClaim) (bool, error) {
	if claim != nil {
		return c.config.Fleet.OwnsNode(node, claim, nil), nil
	}
	if !c.config.Fleet.OwnsNode(node, nil, nil) {
		return false, nil
	}
	for _, owner := range node.OwnerReferences {
		if owner.Kind != "NodeClaim" {
			continue
		}
		var live karpenterv1.NodeClaim
		err := c.config.Live.Get(ctx, client.ObjectKey{Name: owner.Name}, &live)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("looking for the NodeClaim of node %s: %w", node.Name, err)
		}
		if err == nil && live.UID == owner.UID {
			return c.config.Fleet.OwnsNode(node, &live, nil), nil
		}
	}
	name := node.Labels[karpenterv1.NodePoolLabelKey]
	if name == "" {
		return true, nil
	}
	var pool karpenterv1.NodePool
	if err := c.config.Live.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return c.config.Fleet.OwnsNode(node, nil, &pool), nil
}

// claimOf returns the NodeClaim of the node, nil if there is none. If several name its machine, it prefers one of
// ours.
func (c *Controller) claimOf(ctx context.Context, node *corev1.Node) (*karpenterv1.NodeClaim, error) {
	if node.Spec.ProviderID == "" {
		return nil, nil
	}
	var claims karpenterv1.NodeClaimList
	if err := c.config.Client.List(ctx, &claims,
		client.MatchingFields{IndexClaimProviderID: node.Spec.ProviderID}); err != nil {
		return nil, fmt.Errorf("looking for the NodeClaim of node %s: %w", node.Name, err)
	}
	for i := range claims.Items {
		if c.config.Fleet.OwnsClaim(&claims.Items[i]) || i == len(claims.Items)-1 {
			return &claims.Items[i], nil
		}
	}
	return nil, nil
}

// instanceGone reports whether a node that is not ready has lost its instance, so that its pods cannot be drained.
func (c *Controller) instanceGone(ctx context.Context, node *corev1.Node) (bool, error) {
	if isReady(node) {
		return false, nil
	}
	fate, err := c.config.Fleet.Find(ctx, node.Spec.ProviderID)
	if err != nil {
		return false, c.tellStuck(node, fmt.Errorf("looking for the instance of node %s: %w", node.Name, err))
	}
	return fate == fleet.Gone, nil
}

// cordon keeps new pods and load balancers away from the node. It reports whether the taint was missing until now.
func (c *Controller) cordon(ctx context.Context, node *corev1.Node) (fresh bool, err error) {
	tainted := hasTaint(node, karpenterv1.DisruptedTaintKey, corev1.TaintEffectNoSchedule)
	excluded := node.Labels[karpenterv1.ExcludeBalancersLabelKey] == karpenterv1.ExcludeBalancersLabelValue
	if tainted && excluded {
		return false, nil
	}
	before := node.DeepCopy()
	if !tainted {
		node.Spec.Taints = append(node.Spec.Taints, disruptedTaint())
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[karpenterv1.ExcludeBalancersLabelKey] = karpenterv1.ExcludeBalancersLabelValue
	return !tainted, c.config.Client.Patch(ctx, node, patch.Node(before, node))
}

// end drains the node, waits for its volumes and ends its instance, as far as one step can. fresh says that this step
// has tainted the node.
func (c *Controller) end(ctx context.Context, node *corev1.Node, claim *karpenterv1.NodeClaim,
	fresh bool) (reconcile.Result, error) {
	now := c.config.Now()
	due, limited := deadline(claim)
	var pods corev1.PodList
	if err := c.config.Client.List(ctx, &pods, client.MatchingFields{IndexPodNode: node.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the pods of node %s: %w", node.Name, err)
	}
	drain := planDrain(pods.Items, now, due, limited)
	if limited && len(drain.left) > 0 {
		text := "All pods will be deleted by " + due.UTC().Format(time.RFC3339)
		c.config.Events.Event(node, event.Warning, event.TerminationGracePeriodExpiring, text)
		c.config.Events.Event(claim, event.Warning, event.TerminationGracePeriodExpiring, text)
	}
	if len(drain.left) > 0 && (!limited || now.Before(due)) {
		return c.drain(ctx, node, claim, drain)
	}
	attached, err := c.attachedVolumes(ctx, node, pods.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	drained := condition.True(karpenterv1.ConditionTypeDrained, "Drained", "")
	if len(drain.left) > 0 {
		drained = condition.False(karpenterv1.ConditionTypeDrained, "TerminationGracePeriodElapsed",
			fmt.Sprintf("%d pods were left at the end of the termination grace period", len(drain.left)))
	}
	if len(attached) > 0 && (!limited || now.Before(due)) {
		text := fmt.Sprintf("%d volumes are still attached: %s", len(attached), listSome(attached))
		c.config.Events.Event(node, event.Normal, event.AwaitingVolumeDetachment, text)
		err := c.setConditions(ctx, claim, drained, condition.False(karpenterv1.ConditionTypeVolumesDetached,
			"AwaitingVolumeDetachment", text))
		return reconcile.Result{RequeueAfter: detachAgainAfter}, err
	}
	left := settles(node, claim, now)
	if fresh {
		left = taintSettles
	}
	if left > 0 && (!limited || now.Before(due)) {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return c.terminate(ctx, node, claim, drained, func() bool {
		return c.inUse(context.WithoutCancel(ctx), node.Name, due, limited)
	})
}

// settles returns how long pods may still come to a tainted node: a scheduler may not know of the taint yet. The taint
// is about as old as the node's deletion, unless the API server has another time than this process. A marked claim's
// node had it before that, and was judged again since (D-09).
func settles(node *corev1.Node, claim *karpenterv1.NodeClaim, now time.Time) time.Duration {
	if claim != nil && condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason) {
		return 0
	}
	if left := node.DeletionTimestamp.Add(taintSettles).Sub(now); left <= taintSettles {
		return left
	}
	return 0
}

// inUse reports whether the node's deadline is still to come and it has pods that a drain waits for.
func (c *Controller) inUse(ctx context.Context, node string, due time.Time, limited bool) bool {
	now := c.config.Now()
	if limited && !now.Before(due) {
		return false
	}
	var pods corev1.PodList
	if err := c.config.Client.List(ctx, &pods, client.MatchingFields{IndexPodNode: node}); err != nil {
		return true // the next step asks again
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return mustLeave(&pod, now) })
}

// drain requests the evictions that are due, and reports what blocks them.
func (c *Controller) drain(ctx context.Context, node *corev1.Node, claim *karpenterv1.NodeClaim,
	drain drainPlan) (reconcile.Result, error) {
	drain.reason, drain.why = reasonOf(claim), "removed"
	drain.inSteps(node, &c.begun, c.config.Now())
	obstacles, failure := c.carryOut(ctx, drain)
	if failure != nil && len(obstacles) == 0 { // the condition may still be right
		return reconcile.Result{}, fmt.Errorf("draining node %s: %w", node.Name, failure)
	}
	value := condition.False(karpenterv1.ConditionTypeDrained, draining,
		fmt.Sprintf("the drain began with %d pods", len(drain.left)))
	if claim != nil { // a write for every pod that leaves would add no information
		if known, _ := condition.Get(claim.Status.Conditions, value.Type); known.Reason == draining {
			value.Message = known.Message
		}
	}
	if len(obstacles) > 0 {
		text := listSome(obstacles)
		c.config.Events.Event(node, event.Warning, event.FailedDraining, "Cannot drain: "+text)
		value = condition.False(karpenterv1.ConditionTypeDrained, "Blocked", text)
	}
	if c.passing(node, claim, obstacles) {
		return reconcile.Result{RequeueAfter: drain.againAfter(c.config.Now(), drainAgainAfter)}, failure
	}
	if err := errors.Join(failure, c.setConditions(ctx, claim, value)); err != nil {
		return reconcile.Result{}, fmt.Errorf("draining node %s: %w", node.Name, err)
	}
	return reconcile.Result{RequeueAfter: drain.againAfter(c.config.Now(), drainAgainAfter)}, nil
}

// passing reports whether an unblocked drain has only just begun and its claim says nothing of it yet. Most drains are
// over before anybody could read it.
func (c *Controller) passing(node *corev1.Node, claim *karpenterv1.NodeClaim, obstacles []string) bool {
	if claim == nil || len(obstacles) > 0 || c.config.Now().Sub(node.DeletionTimestamp.Time) >= drainAgainAfter {
		return false
	}
	_, said := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDrained)
	return !said
}

// terminate ends the instance and, once that is proved, the node.
func (c *Controller) terminate(ctx context.Context, node *corev1.Node, claim *karpenterv1.NodeClaim,
	drained condition.Value, inUse func() bool) (reconcile.Result, error) {
	fate, err := c.config.Fleet.Terminate(ctx, node.Spec.ProviderID, inUse)
	if err != nil {
		return reconcile.Result{}, c.tellStuck(node, fmt.Errorf("ending the instance of node %s: %w", node.Name, err))
	}
	if fate != fleet.Gone {
		err := c.setConditions(ctx, claim, drained,
			condition.True(karpenterv1.ConditionTypeVolumesDetached, "VolumesDetached", ""),
			condition.True(karpenterv1.ConditionTypeInstanceTerminating, "InstanceTerminating", ""))
		return reconcile.Result{RequeueAfter: terminateAgainAfter}, err
	}
	return reconcile.Result{}, c.finish(ctx, node, "drained")
}

// tellStuck returns the error of a cloud that keeps a deleted node. If it has for a while, an event has the text: the
// machine may have another cluster's tag, or the cloud may refuse to end it, and somebody has to correct that.
func (c *Controller) tellStuck(node *corev1.Node, err error) error {
	if c.config.Now().Sub(node.DeletionTimestamp.Time) >= stuckAfter && !errors.Is(err, provider.ErrThrottled) &&
		!errors.Is(err, context.Canceled) {
		c.config.Events.Event(node, event.Warning, event.FailedDraining, "Cannot end: "+err.Error())
	}
	return err
}

// finish removes the finalizer, so the node goes.
func (c *Controller) finish(ctx context.Context, node *corev1.Node, why string) error {
	if err := c.config.Client.Patch(ctx, node,
		patch.RemoveFinalizer(node, karpenterv1.TerminationFinalizer)); err != nil {
		return client.IgnoreNotFound(err)
	}
	pool := node.Labels[karpenterv1.NodePoolLabelKey]
	c.config.Metrics.Nodes.Terminated.WithLabelValues(pool, node.Labels[corev1.LabelTopologyZone]).Inc()
	now := c.config.Now()
	c.config.Metrics.Nodes.Termination.WithLabelValues(pool).Observe(
		max(0, now.Sub(node.DeletionTimestamp.Time).Seconds()))
	c.config.Metrics.Nodes.Lifetime.WithLabelValues(pool).Observe(
		max(0, now.Sub(node.CreationTimestamp.Time).Seconds()))
	if why == "drained" {
		c.config.Metrics.Nodes.Drained.WithLabelValues(pool).Inc()
	}
	c.config.Log.Info("ended node", "event", "NodeDeleted", "node", node.Name, "pool", pool, "reason", why)
	return nil
}

// setConditions writes the changed conditions of the claim in one patch. Without a claim it does nothing.
func (c *Controller) setConditions(ctx context.Context, claim *karpenterv1.NodeClaim,
	values ...condition.Value) error {
	if claim == nil {
		return nil
	}
	before, changed := claim.Status.DeepCopy(), false
	for _, value := range values {
		changed = condition.Set(&claim.Status.Conditions, claim.Generation, value, c.config.Now()) || changed
	}
	if !changed {
		return nil
	}
	return client.IgnoreNotFound(c.config.Client.Status().Patch(ctx, claim,
		patch.Status(claim, before, &claim.Status)))
}
