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

// ForeignRule says what becomes of a product without a wrapper that was made when the guest was protected already: in
// a gap of the admission policies, or past them. What is older is left alone under each of them (G18).
type ForeignRule string

// The rules. Each tells of a foreign product by an event and a metric.
const (
	// ForeignQuarantine lets a NodePool launch nothing more; its nodes stay. An EC2NodeClass without a wrapper is used
	// by no pool of a wrapper anyway.
	ForeignQuarantine ForeignRule = "Quarantine"
	// ForeignReport leaves it alone.
	ForeignReport ForeignRule = "Report"
	// ForeignDelete deletes it, and its nodes go with it.
	ForeignDelete ForeignRule = "Delete"
)

const (
	// LimitsAnnotation keeps the limits that a NodePool in quarantine had, as JSON.
	LimitsAnnotation = hypershiftv1beta1.Group + "/limits-before-quarantine"
	// clocksDiffer is by how much the clocks of both clusters may.
	clocksDiffer = 10 * time.Second
	// sinceAgainAfter is when it is looked again since when the guest is protected, while nobody knows.
	sinceAgainAfter = time.Second
)

// protectedSince returns since when the guest is protected. The memory of that is the policy's condition
// ProtectedOnce, on the management cluster, where no user of the guest writes; without a policy it is the start of
// this process. It is not known while the policy is not, or has not said so yet.
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

// foreign reports whether a product without a wrapper was made when the guest was protected already.
func (b *Board) foreign(product client.Object) (foreign, known bool) {
	since, known := b.protectedSince()
	return known && product.GetCreationTimestamp().After(since.Add(clocksDiffer)), known
}

// begin says when the operator has looked at the admission policies for the first time.
func (b *Board) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.began.IsZero() {
		b.began = now
	}
}

// stranger looks at a product that has no wrapper and is not the operator's.
func (c *Controller) stranger(ctx context.Context, s scene) (reconcile.Result, error) {
	kind := c.config.Kind
	foreign, known := c.config.Board.foreign(s.product)
	if !foreign {
		c.config.Events.Event(s.product, event.Warning, ReasonUnmanaged, fmt.Sprintf(
			"no %s of this name exists, so the provider's policy does not hold for this %s; create one to bring it under the policy, its nodes stay",
			kind.Wrapper, kind.Product))
		if !known {
			return reconcile.Result{RequeueAfter: sinceAgainAfter}, nil
		}
		return reconcile.Result{}, nil
	}
	c.config.Events.Event(s.product, event.Warning, ReasonForeign, fmt.Sprintf(
		"this %s was made past the admission policies and has no %s: create one of this name to bring it under the policy (--foreign-objects=%s)",
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

// quarantine lets a NodePool launch nothing, and reports whether that changed anything.
func quarantine(product client.Object) (changed bool) {
	pool := product.(*karpenterv1.NodePool)
	none := corev1.ResourceList{corev1.ResourceCPU: {}}
	if pool.Spec.Replicas != nil { // such a pool takes no other limit
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
