package claim

import (
	"context"
	"fmt"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// checkAge deletes a claim that has taken too long or lived long enough, and reports whether it did. Otherwise it
// schedules the next step in time.
func (c *Controller) checkAge(ctx context.Context, w *work) (bool, error) {
	if gone, err := c.overdue(ctx, w); gone || err != nil {
		return gone, err
	}
	return c.expired(ctx, w)
}

// gracefulAgain is how soon to check again an expired claim that is replaced within budgets: its pool may change.
const gracefulAgain = time.Minute

// expired deletes a claim when expireAfter has passed since its creation. It is forceful: neither budgets nor
// do-not-disrupt delay it, only the drain does (D-07). If the pool asks for expiration within budgets, the claim is
// only marked as expired, and the disruption controller does the rest.
func (c *Controller) expired(ctx context.Context, w *work) (bool, error) {
	lifetime := w.claim.Spec.ExpireAfter.Duration
	if lifetime == nil {
		return false, nil
	}
	if left := w.claim.CreationTimestamp.Add(*lifetime).Sub(c.config.Now()); left > 0 {
		w.askAgain(left)
		return false, nil
	}
	graceful, err := c.expiresGracefully(ctx, w.claim)
	if err != nil {
		return false, err
	}
	if graceful && condition.IsTrue(w.claim.Status.Conditions, karpenterv1.ConditionTypeExpired) {
		w.askAgain(gracefulAgain)
		return false, nil
	}
	before := w.claim.DeepCopy()
	message := fmt.Sprintf("expireAfter %s has passed", w.claim.Spec.ExpireAfter)
	c.set(w, condition.True(karpenterv1.ConditionTypeExpired, "Expired", message))
	text := "NodeClaim is removed: " + message
	if graceful {
		text = "NodeClaim is replaced as soon as the disruption budgets allow: " + message
	}
	c.config.Events.Event(w.claim, event.Normal, event.Expired, text)
	if err := c.saveStatus(ctx, before, w.claim); err != nil {
		return false, err
	}
	if graceful {
		w.askAgain(gracefulAgain)
		return false, nil
	}
	return true, c.remove(ctx, w, "Expired", message)
}

// expiresGracefully reports whether the claim's pool wants it replaced within budgets. A claim without an initialized
// node needs no such care.
func (c *Controller) expiresGracefully(ctx context.Context, claim *karpenterv1.NodeClaim) (bool, error) {
	if !condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized) {
		return false, nil
	}
	pool, err := c.poolOf(ctx, c.config.Client, claim)
	if pool == nil {
		return false, err
	}
	return translate.ExpiresGracefully(pool), nil
}
