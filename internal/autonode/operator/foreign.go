package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// ForeignRule says what happens to a foreign product: one without a wrapper that was made when the guest was already
// protected, in a gap of the admission policies or past them. Every rule leaves older products alone (G18).
type ForeignRule string

// The rules. Each reports a foreign product by an event and a metric.
const (
	// ForeignQuarantine keeps a NodePool from launching more nodes; its nodes stay. It does nothing to an
	// EC2NodeClass: no pool with a wrapper may use one without a wrapper.
	ForeignQuarantine ForeignRule = "Quarantine"
	// ForeignReport leaves it alone.
	ForeignReport ForeignRule = "Report"
	// ForeignDelete deletes it, together with its nodes.
	ForeignDelete ForeignRule = "Delete"
)

const (
	// LimitsAnnotation keeps the former limits of a NodePool in quarantine, as JSON.
	LimitsAnnotation = hypershiftv1beta1.Group + "/limits-before-quarantine"
	// clocksDiffer is how much the clocks of the two clusters may differ.
	clocksDiffer = 10 * time.Second
	// sinceAgainAfter is when to check again since when the guest has been protected, while that is unknown.
	sinceAgainAfter = time.Second
)

// protectedSince returns since when the guest has been protected. That is remembered in the policy's condition
// ProtectedOnce, on the management cluster, where users of the guest cannot write. Without a policy, it is the start
// of this process. known is false while the policy is unknown, or does not have the condition yet.
func (b *Board) protectedSince() (since time.Time, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.reading.Known() {
		return time.Time{}, false
	}
	if b.reading.Policy == nil {
		return b.began, !b.began.IsZero()
	}
	const kind = hypershiftv1beta1.ConditionTypeProtectedOnce
	since, _ = condition.Since(b.reading.Policy.Status.Conditions, kind)
	return since, condition.IsTrue(b.reading.Policy.Status.Conditions, kind)
}

// foreign reports whether a product without a wrapper was made when the guest was already protected.
func (b *Board) foreign(product client.Object) (foreign, known bool) {
	since, known := b.protectedSince()
	return known && product.GetCreationTimestamp().After(since.Add(clocksDiffer)), known
}

// begin stores when the operator first looked at the admission policies.
func (b *Board) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.began.IsZero() {
		b.began = now
	}
}

// stranger handles a product that has no wrapper and is not the operator's.
func (c *Controller) stranger(ctx context.Context, s scene) (reconcile.Result, error) {
	kind := c.config.Kind
	foreign, known := c.config.Board.foreign(s.product)
	if !foreign {
		c.config.Events.Event(s.product, event.Warning, ReasonUnmanaged, fmt.Sprintf(
			"no %s of this name exists, so the provider's policy does not hold for this %s; create one to bring it "+
				"under the policy, its nodes stay",
			kind.Wrapper, kind.Product))
		if !known {
			return reconcile.Result{RequeueAfter: sinceAgainAfter}, nil
		}
		return reconcile.Result{}, nil
	}
	c.config.Events.Event(s.product, event.Warning, ReasonForeign, fmt.Sprintf(
		"this %s was made past the admission policies and has no %s: create one of this name to bring it under the "+
			"policy (--foreign-objects=%s)",
		kind.Product, kind.Wrapper, c.config.Foreign))
	if c.config.Foreign != ForeignDelete && (c.config.Foreign != ForeignQuarantine || kind.Quarantine == nil) {
		return reconcile.Result{}, nil
	}
	if err := c.reallyGone(ctx, s.name); err != nil {
		return reconcile.Result{}, err
	}
	if c.config.Foreign == ForeignDelete {
		return reconcile.Result{}, c.delete(ctx, s.product)
	}
	changed := s.product.DeepCopyObject().(client.Object)
	if !kind.Quarantine(changed) {
		return reconcile.Result{}, nil
	}
	c.config.Metrics.Writes.WithLabelValues(kind.Product, "update").Inc()
	if err := c.config.Guest.Update(ctx, changed); err != nil {
		return reconcile.Result{}, fmt.Errorf("limiting %s %s, which was made past the admission policies: %w",
			kind.Product, s.name, err)
	}
	return reconcile.Result{}, nil
}

// quarantine changes a NodePool so that it launches nothing, and reports whether that changed anything.
func quarantine(product client.Object) (changed bool) {
	pool := product.(*karpenterv1.NodePool)
	none := corev1.ResourceList{corev1.ResourceCPU: {}}
	if pool.Spec.Replicas != nil { // such a pool accepts no other limit
		none = corev1.ResourceList{"nodes": {}}
	}
	if patch.SameAmounts(corev1.ResourceList(pool.Spec.Limits), none) {
		return false
	}
	if _, kept := pool.Annotations[LimitsAnnotation]; !kept {
		former := map[string]string{LimitsAnnotation: spelled(pool.Spec.Limits)}
		pool.SetAnnotations(union(pool.Annotations, former))
	}
	pool.Spec.Limits = karpenterv1.Limits(none)
	return true
}
