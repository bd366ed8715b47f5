// Package removal removes nodes whose machine is lost or about to be. It deletes the NodeClaim, which drains the node,
// and gives the drain a deadline. The controllers of claims and nodes do the rest.
package removal

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// Told is called for each NodeClaim that a controller deletes, with the reason as a word and as a sentence. Nil does
// nothing.
type Told func(claim *karpenterv1.NodeClaim, cause, why string)

// Tell calls t, if it is not nil.
func (t Told) Tell(claim *karpenterv1.NodeClaim, cause, why string) {
	if t != nil {
		t(claim, cause, why)
	}
}

// Delete deletes a NodeClaim unless it is being deleted. A claim that is gone is no error. One without our finalizer
// is an error: it would be gone at once, and leave its machine (P-40). Its controller puts the finalizer back.
func Delete(ctx context.Context, c client.Client, claim *karpenterv1.NodeClaim) error {
	if claim.DeletionTimestamp != nil {
		return nil
	}
	if !controllerutil.ContainsFinalizer(claim, karpenterv1.TerminationFinalizer) {
		return fmt.Errorf("deleting NodeClaim %s: somebody took its finalizer %s off, and it is not back yet",
			claim.Name, karpenterv1.TerminationFinalizer)
	}
	if err := c.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// Bound makes the drain of a deleted NodeClaim end by latest, unless it ends sooner. Before that, pods get their own
// grace period, whatever PodDisruptionBudgets and do-not-disrupt say (P-41). A zero latest does nothing. Call it after
// Delete: on a claim that stays, the deadline would hit a later drain.
func Bound(ctx context.Context, c client.Client, claim *karpenterv1.NodeClaim, latest, now time.Time) error {
	if latest.IsZero() {
		return nil
	}
	if due, limited := deadline(claim, now); limited && !latest.Before(due) {
		return nil
	}
	// There may be an earlier deadline that the cache does not show yet. It must not be postponed.
	bound := patch.Annotation(claim, karpenterv1.NodeClaimTerminationTimestampAnnotationKey,
		latest.UTC().Format(time.RFC3339))
	if err := c.Patch(ctx, claim, bound); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("bounding the drain of NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// deadline returns when the claim's drain ends, by its annotation or else by its grace period.
func deadline(claim *karpenterv1.NodeClaim, now time.Time) (time.Time, bool) {
	if due, err := time.Parse(time.RFC3339,
		claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
		return due, true
	}
	grace := claim.Spec.TerminationGracePeriod
	if grace == nil {
		return time.Time{}, false
	}
	if claim.DeletionTimestamp != nil {
		now = claim.DeletionTimestamp.Time
	}
	return now.Add(grace.Duration), true
}
