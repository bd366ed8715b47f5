package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// launchAgainAfter is when a launch is tried again after it failed for a reason of its own. The launch timeout ends
// the tries.
const launchAgainAfter = 10 * time.Second

// Reasons of launches that were given up because the provider refused them: no instance exists then.
const (
	reasonNoCapacity    = "InsufficientCapacity"
	reasonClassNotReady = "NodeClassNotReady"
)

// launch requests the instance from the provider, once, and reports whether it exists. It writes what it learns onto
// the claim: labels at once, the rest with the status. Launching is idempotent by the claim's UID. So if the answer or
// a later patch is lost, the next step asks again and gets the same instance (P-32).
func (c *Controller) launch(ctx context.Context, w *work) (bool, error) {
	if w.is(karpenterv1.ConditionTypeLaunched) {
		return true, nil
	}
	// the last process ended before it deleted the claim, and a launch might succeed now
	if why, given := givenUp(w.claim); given {
		return false, c.remove(ctx, w, why.Reason, why.Message)
	}
	if why, refused := c.attempts.refusal(w.claim.UID); refused { // not in the cache yet
		return false, c.giveUpLaunch(ctx, w, why)
	}
	admitted, notAfter, err := c.admit(ctx, w)
	if !admitted {
		return false, err
	}
	// An earlier patch may have returned a label that was changed by hand, and the machine gets the claim's labels.
	if err := c.keepPool(ctx, w); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	instance, err := w.cloud.Launch(ctx, w.claim, notAfter)
	c.attempts.note(w.claim.UID, c.config.Now(), err)
	if err != nil {
		return false, c.launchFailed(ctx, w, err)
	}
	w.young = true
	before := w.claim.DeepCopy()
	if mergeMissing(&w.claim.Labels, instance.Labels) || !instance.Fence.Open(w.claim) {
		// For this claim only: another may have the name by now, since slots are reused. Behind the fence: the status
		// write below tests the version that this patch returns.
		change := patch.MetaAdding(before, w.claim)
		if fence := instance.Fence; fence.Annotation != "" {
			change = patch.MetaWhere(before, w.claim, fence.Annotation, fence.Value)
		}
		if err := c.config.Client.Patch(ctx, w.claim, change); err != nil {
			if client.IgnoreNotFound(err) == nil && instance.Fence.Annotation == "" {
				w.claim.Status.ProviderID = instance.ProviderID
				return false, c.abandon(ctx, w)
			}
			return false, fmt.Errorf("labelling NodeClaim %s: %w", w.claim.Name, err)
		}
	}
	// another process was faster, and there are two machines
	if named := w.claim.Status.ProviderID; named != "" && named != instance.ProviderID {
		return false, fmt.Errorf("NodeClaim %s has got machine %s, and names %s by now, which stays", w.claim.Name,
			instance.ProviderID, named)
	}
	w.claim.Status.ProviderID, w.claim.Status.ImageID = instance.ProviderID, instance.ImageID
	w.claim.Status.Capacity, w.claim.Status.Allocatable = instance.Capacity, instance.Allocatable
	c.set(w, condition.True(karpenterv1.ConditionTypeLaunched, "Launched", ""))
	w.saved = append(w.saved, func() {
		c.reached(w, metrics.StageLaunched)
		c.config.Log.Info("launched", "event", "Launched", "claim", w.claim.Name, "pool", translate.PoolOf(w.claim),
			"type", instance.Type, "zone", instance.Zone, "capacityType", instance.CapacityType, "pricePerHour",
			instance.Price.String(), "providerID", instance.ProviderID)
	})
	return true, nil
}

// launchFailed gives the claim up if no further try can help, so that its pods are planned again at once (P-30, P-31).
// Otherwise it reports the failure and asks to be called again.
func (c *Controller) launchFailed(ctx context.Context, w *work, failure error) error {
	var capacity *provider.InsufficientCapacityError
	var notReady *provider.NodeClassNotReadyError
	var refused *provider.LaunchError
	switch {
	case errors.As(failure, &capacity):
		c.refreshCatalog(ctx, w)
		return c.giveUpLaunch(ctx, w, refusal{reasonNoCapacity, event.InsufficientCapacity, capacity.Error()})
	case errors.As(failure, &notReady), errors.Is(failure, provider.ErrNodeClassNotFound):
		c.refreshCatalog(ctx, w)
		return c.giveUpLaunch(ctx, w, refusal{reasonClassNotReady, event.NodeClassNotReady, failure.Error()})
	}
	if gone, err := c.checkAge(ctx, w); err != nil || gone {
		return err
	}
	if errors.Is(failure, provider.ErrExpired) {
		w.askAgain(sightAgain)
		return nil
	}
	if !errors.As(failure, &refused) {
		return fmt.Errorf("launching the instance of NodeClaim %s: %w", w.claim.Name, failure)
	}
	before := w.claim.DeepCopy()
	c.set(w, condition.False(karpenterv1.ConditionTypeLaunched, refused.ConditionReason, refused.Message))
	c.config.Events.Event(w.claim, event.Warning, event.LaunchFailed, refused.Message)
	w.askAgain(launchAgainAfter)
	return client.IgnoreNotFound(c.saveStatus(ctx, before, w.claim))
}

// givenUp reports whether the provider refused to launch the claim, which ends it, and why.
func givenUp(claim *karpenterv1.NodeClaim) (karpenterv1.Condition, bool) {
	launched, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeLaunched)
	return launched, launched.Status == "False" &&
		(launched.Reason == reasonNoCapacity || launched.Reason == reasonClassNotReady)
}

// refreshCatalog shows planning what the launch found out, before the claim is deleted and its pods are planned again.
// A failure only lets one more plan fail: the pool's controller refreshes too.
func (c *Controller) refreshCatalog(ctx context.Context, w *work) {
	ref := w.claim.Spec.NodeClassRef
	offered, err := w.cloud.Catalog(ctx, ref.Name)
	if err == nil || errors.Is(err, provider.ErrNodeClassNotFound) {
		err = c.config.Catalogs.SetCatalog(world.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}, offered)
	}
	if err != nil {
		c.config.Log.V(1).Info("could not refresh the catalogue", "class", ref.Name, "reason", err.Error())
	}
}

// giveUpLaunch gives up a claim whose launch the provider has refused. No instance is requested again, so none exists.
func (c *Controller) giveUpLaunch(ctx context.Context, w *work, why refusal) error {
	c.attempts.refuse(w.claim.UID, why)
	if why.event == event.InsufficientCapacity {
		for _, pod := range c.podsOf(w.claim.Name) {
			c.config.Events.Event(pod, event.Warning, why.event, "NodeClaim "+w.claim.Name+
				" that it was to run on is given up: "+why.message)
		}
	}
	return c.giveUp(ctx, w, karpenterv1.ConditionTypeLaunched, why.reason, why.event, why.message)
}

// podsOf returns the known pods that a claim was made for.
func (c *Controller) podsOf(claim string) []*corev1.Pod {
	if c.config.PodsOf == nil {
		return nil
	}
	return c.config.PodsOf(claim)
}

// giveUp writes onto the claim why it failed, and deletes it.
func (c *Controller) giveUp(ctx context.Context, w *work, kind, reason, eventReason, message string) error {
	before := w.claim.DeepCopy()
	c.set(w, condition.False(kind, reason, message))
	c.set(w, condition.False(karpenterv1.ConditionTypeReady, reason, message))
	c.config.Events.Event(w.claim, event.Warning, eventReason, "NodeClaim is given up: "+message)
	if err := c.saveStatus(ctx, before, w.claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.remove(ctx, w, reason, message)
}

// remove deletes the claim; finalization does the rest.
func (c *Controller) remove(ctx context.Context, w *work, reason, message string) error {
	if err := c.config.Client.Delete(ctx, w.claim, client.Preconditions{UID: &w.claim.UID}); err != nil {
		return client.IgnoreNotFound(err)
	}
	pool := translate.PoolOf(w.claim)
	c.config.Metrics.Claims.Disrupt(w.claim, reason, "")
	c.config.Removed.Tell(w.claim, reason, message)
	c.config.Log.Info("deleted NodeClaim", "event", "NodeClaimDeleting", "claim", w.claim.Name, "pool", pool, "reason",
		reason, "why", message)
	return nil
}

// abandon ends the instance of a claim that vanished during its launch: somebody removed its finalizer. If it has
// joined, another leader had launched it before, and pods may run there: the collector drains it.
func (c *Controller) abandon(ctx context.Context, w *work) error {
	if node, err := c.lateNode(ctx, w.claim); err != nil || node != nil {
		return err
	}
	if err := w.cloud.Terminate(ctx, w.claim.Status.ProviderID, nil); err != nil &&
		!errors.Is(err, provider.ErrNotFound) {
		return fmt.Errorf("ending the instance of vanished NodeClaim %s: %w", w.claim.Name, err)
	}
	c.config.Log.Info("ended the instance of a NodeClaim that vanished", "claim", w.claim.Name, "providerID",
		w.claim.Status.ProviderID)
	return nil
}

// mergeMissing adds the entries of more that labels lacks, and reports whether that changed labels. The claim's own
// values stay.
func mergeMissing(labels *map[string]string, more map[string]string) bool {
	changed := false
	for key, value := range more {
		if _, has := (*labels)[key]; has {
			continue
		}
		if *labels == nil {
			*labels = map[string]string{}
		}
		(*labels)[key] = value
		changed = true
	}
	return changed
}
