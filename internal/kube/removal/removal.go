// Package removal takes nodes away whose machine is lost or about to be: the NodeClaim is deleted, which drains the node,
// and the drain gets an end of its own. What else follows is the business of the controllers of claims and nodes.
package removal

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// Told is told of each NodeClaim that a controller takes away: why as a word, and as a sentence. Nil tells nobody.
type Told func(claim *karpenterv1.NodeClaim, cause, why string)

// Tell tells it.
func (t Told) Tell(claim *karpenterv1.NodeClaim, cause, why string) {
	if t != nil {
		t(claim, cause, why)
	}
}

// Delete deletes a NodeClaim, unless it is being deleted; that it is gone is no error.
func Delete(ctx context.Context, c client.Client, claim *karpenterv1.NodeClaim) error {
	if claim.DeletionTimestamp != nil {
		return nil
	}
	if err := c.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// Bound makes the drain of a deleted NodeClaim end at latest, if nothing makes it end sooner: pods get their own grace
// period before that, whatever PodDisruptionBudgets and do-not-disrupt say (P-41). Zero bounds nothing. It is to be called
// after Delete and not before: on a claim that stays, a deadline would lie in wait for a later drain.
func Bound(ctx context.Context, c client.Client, claim *karpenterv1.NodeClaim, latest, now time.Time) error {
	if latest.IsZero() {
		return nil
	}
	if due, limited := deadline(claim, now); limited && !latest.Before(due) {
		return nil
	}
	// An earlier deadline may stand there that the cache does not show; it must not be put off.
	bound := patch.Annotation(claim, karpenterv1.NodeClaimTerminationTimestampAnnotationKey, latest.UTC().Format(time.RFC3339))
	if err := c.Patch(ctx, claim, bound); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("bounding the drain of NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// deadline returns when the claim's drain ends by itself: as written down, or as its grace period says.
func deadline(claim *karpenterv1.NodeClaim, now time.Time) (time.Time, bool) {
	if due, err := time.Parse(time.RFC3339, claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
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
