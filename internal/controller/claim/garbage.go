package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const (
	// collectEvery is how often instances and claims are compared. A new leader uses collectFirst for a while: the
	// previous leader may have ended in the middle of a launch (E-55).
	collectEvery = 2 * time.Minute
	collectFirst = 10 * time.Second
	firstWhile   = 3 * time.Minute
	// grace is the minimum age of instances and launches for a comparison: the lists of clouds lag behind.
	grace = 30 * time.Second
)

// Collector is the singleton that compares instances with claims and claims with instances (P-32).
type Collector struct {
	config Config
	began  time.Time // time of the first comparison; a new leader starts again
}

// NewCollector returns the collector.
func NewCollector(config Config) *Collector { return &Collector{config: config} }

// Reconcile compares once. It ignores the request. It never runs concurrently.
func (g *Collector) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var claims karpenterv1.NodeClaimList
	if err := g.config.Client.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing NodeClaims: %w", err)
	}
	now := g.config.Now()
	if g.began.IsZero() {
		g.began = now
	}
	again := collectEvery
	if now.Sub(g.began) < firstWhile {
		again = collectFirst
	}
	var failures []error
	for cloud := range g.config.Fleet.All() {
		instances, err := cloud.List(ctx)
		if err != nil {
			failures = append(failures, fmt.Errorf("listing instances of %s: %w", cloud.Name(), err))
			continue
		}
		failures = append(failures, g.collectInstances(ctx, cloud, instances, claims.Items),
			g.collectClaims(ctx, cloud, instances, claims.Items))
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(failures...)
}

// collectInstances ends instances without a claim.
func (g *Collector) collectInstances(ctx context.Context, cloud provider.Provider, instances []provider.Instance,
	claims []karpenterv1.NodeClaim) error {
	known := map[string]bool{}
	for i := range claims {
		known[string(claims[i].UID)] = true
		known[claims[i].Status.ProviderID] = true
	}
	var failures []error
	var orphans []provider.Instance
	for _, instance := range instances {
		if instance.Terminating || known[instance.ProviderID] || instance.ClaimUID != "" && known[instance.ClaimUID] ||
			g.config.Now().Sub(instance.Launched) < grace {
			continue
		}
		claimed, err := g.claimed(ctx, instance)
		switch {
		case err != nil:
			failures = append(failures, fmt.Errorf("looking for the NodeClaim of instance %s: %w", instance.ProviderID,
				err))
		case !claimed:
			orphans = append(orphans, instance)
		}
	}
	if len(orphans) == 0 {
		return errors.Join(failures...)
	}
	nodes, err := g.adoptedNodes(ctx)
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	for _, orphan := range orphans {
		if err := g.endOrphan(ctx, cloud, orphan, nodes[orphan.ProviderID]); err != nil {
			failures = append(failures, fmt.Errorf("ending instance %s without a NodeClaim: %w", orphan.ProviderID,
				err))
		}
	}
	return errors.Join(failures...)
}

// claimed reports whether the API server has a claim for the instance.
func (g *Collector) claimed(ctx context.Context, instance provider.Instance) (bool, error) {
	if instance.ClaimName == "" {
		return false, nil
	}
	var claim karpenterv1.NodeClaim
	if err := g.config.Live.Get(ctx, types.NamespacedName{Name: instance.ClaimName}, &claim); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return instance.ClaimUID == "" || instance.ClaimUID == string(claim.UID), nil
}

// adoptedNodes returns, by provider ID, the registered nodes, whose pods must be drained. Our finalizer tells them,
// or, if somebody has taken it off, our label. It asks the API server: if the cache lacks a node or shows it before
// its registration, its pods would die with the instance. It lists all nodes, once a round and only if there are
// orphans, since labels may have been changed by hand.
func (g *Collector) adoptedNodes(ctx context.Context) (map[string]*corev1.Node, error) {
	var nodes corev1.NodeList
	if err := g.config.Live.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("looking for the nodes of instances without a NodeClaim: %w", err)
	}
	byID := map[string]*corev1.Node{}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if controllerutil.ContainsFinalizer(node, karpenterv1.TerminationFinalizer) ||
			node.Labels[karpenterv1.NodeRegisteredLabelKey] == "true" && node.DeletionTimestamp == nil {
			byID[node.Spec.ProviderID] = node
		}
	}
	return byID, nil
}

// endOrphan ends one instance without a claim. node is its adopted node, or nil. The node is deleted first, so that
// its pods are drained; the node's controller then ends the instance.
func (g *Collector) endOrphan(ctx context.Context, cloud provider.Provider, instance provider.Instance,
	node *corev1.Node) error {
	if node != nil {
		if node.DeletionTimestamp != nil {
			return nil // it is draining
		}
		if held := node.DeepCopy(); controllerutil.AddFinalizer(held, karpenterv1.TerminationFinalizer) {
			if err := g.config.Client.Patch(ctx, held, patch.Node(node, held)); err != nil {
				return client.IgnoreNotFound(err)
			}
			node = held
		}
		// It may have changed since it was read, and lack our finalizer: the next round looks again.
		err := g.config.Client.Delete(ctx, node,
			client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion})
		if apierrors.IsConflict(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	}
	g.config.Log.Info("ending an instance without a NodeClaim", "providerID", instance.ProviderID, "claim",
		instance.ClaimName)
	if err := cloud.Terminate(ctx, instance.ProviderID, nil); err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	return nil
}

// collectClaims deletes claims whose instance has vanished. A claim whose node is Ready stays without a question: a
// kubelet works there, so the cloud's answer is wrong, as with a mistyped cluster name or a tag that was stripped.
func (g *Collector) collectClaims(ctx context.Context, cloud provider.Provider, instances []provider.Instance,
	claims []karpenterv1.NodeClaim) error {
	alive := map[string]bool{}
	for _, instance := range instances {
		alive[instance.ProviderID] = true
	}
	var failures []error
	for i := range claims {
		claim := &claims[i]
		since, _ := condition.Since(claim.Status.Conditions, karpenterv1.ConditionTypeLaunched)
		if !g.serves(cloud, claim) || claim.DeletionTimestamp != nil ||
			!condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeLaunched) ||
			alive[claim.Status.ProviderID] || g.config.Now().Sub(since) < grace {
			continue
		}
		node, err := g.config.nodeOf(ctx, claim)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if node != nil && isReady(node) {
			continue
		}
		_, err = cloud.Get(ctx, claim.Status.ProviderID) // the list may lag; this answer is proof
		if err == nil {
			continue
		}
		if !errors.Is(err, provider.ErrNotFound) {
			failures = append(failures, fmt.Errorf("looking for the instance of NodeClaim %s: %w", claim.Name, err))
			continue
		}
		failures = append(failures, (&Controller{config: g.config}).removeVanished(ctx,
			&work{claim: claim.DeepCopy()}))
	}
	return errors.Join(failures...)
}

// serves reports whether this provider serves the claim's node class.
func (g *Collector) serves(cloud provider.Provider, claim *karpenterv1.NodeClaim) bool {
	serving := g.config.Fleet.For(claim.Spec.NodeClassRef)
	return serving != nil && serving.NodeClass() == cloud.NodeClass()
}

// vanished deletes a claim whose node had joined and is gone, once the provider has proved that its instance is gone
// too. So its pods need not wait for the next comparison.
func (c *Controller) vanished(ctx context.Context, w *work) (bool, error) {
	if w.node != nil || !w.is(karpenterv1.ConditionTypeRegistered) {
		return false, nil
	}
	_, err := w.cloud.Get(ctx, w.claim.Status.ProviderID)
	if err == nil {
		return false, nil // the instance and its node may come back; the comparison keeps checking
	}
	if !errors.Is(err, provider.ErrNotFound) {
		return false, fmt.Errorf("looking for the instance of NodeClaim %s: %w", w.claim.Name, err)
	}
	return true, c.removeVanished(ctx, w)
}

func (c *Controller) removeVanished(ctx context.Context, w *work) error {
	message := "instance " + w.claim.Status.ProviderID + " is gone"
	c.config.Events.Event(w.claim, event.Warning, event.InstanceGone, "NodeClaim is removed: "+message)
	return c.remove(ctx, w, "InstanceGone", message)
}
