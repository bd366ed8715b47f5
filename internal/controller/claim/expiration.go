package claim

import (
	"context"
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/event"
)

// checkAge deletes a claim that has taken too long or lived long enough, and reports whether it did. Otherwise the next
// step is asked for in time.
func (c *Controller) checkAge(ctx context.Context, w *work) (bool, error) {
	gone, err := c.overdue(ctx, w)
	if err != nil || gone {
		return gone, err
	}
	return c.expired(ctx, w)
}

// expired deletes a claim when expireAfter has passed since its creation. It is forceful: neither budgets nor
// do-not-disrupt hold it up, only the drain does (D-07).
func (c *Controller) expired(ctx context.Context, w *work) (bool, error) {
	lifetime := w.claim.Spec.ExpireAfter.Duration
	if lifetime == nil {
		return false, nil
	}
	if left := w.claim.CreationTimestamp.Add(*lifetime).Sub(c.config.Now()); left > 0 {
		w.askAgain(left)
		return false, nil
	}
	before := w.claim.DeepCopy()
	message := fmt.Sprintf("expireAfter %s has passed", w.claim.Spec.ExpireAfter)
	c.set(w, condition.True(karpenterv1.ConditionTypeExpired, "Expired", message))
	c.config.Events.Event(w.claim, event.Normal, event.Expired, "NodeClaim is removed: "+message)
	if err := c.saveStatus(ctx, before, w.claim); err != nil {
		return false, err
	}
	return true, c.remove(ctx, w, "Expired", message)
}
