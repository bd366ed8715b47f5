package claim

import (
	"context"
	"fmt"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// stage is a stage on a claim's way to a usable node, with a timeout (P-30).
type stage struct {
	name      string
	condition string    // true when the stage is over
	start     time.Time // zero while the stage has not begun
	timeout   time.Duration
	remedy    string // where to look
}

// overdue gives the claim up if its current stage has taken too long, and reports whether it did. Otherwise it
// schedules the next step in time.
func (c *Controller) overdue(ctx context.Context, w *work) (bool, error) {
	if w.node == nil && w.is(karpenterv1.ConditionTypeRegistered) {
		return c.deserted(ctx, w)
	}
	if reboots(w.claim) { // its initialization timeout began long ago, and endReboot has its own
		return false, nil
	}
	launched, _ := condition.Since(w.claim.Status.Conditions, karpenterv1.ConditionTypeLaunched)
	registered, _ := condition.Since(w.claim.Status.Conditions, karpenterv1.ConditionTypeRegistered)
	stages := []stage{
		{"Launch", karpenterv1.ConditionTypeLaunched, w.claim.CreationTimestamp.Time, c.config.Timeouts.Launch,
			"look at the events of the NodeClaim for what the provider answered"},
		{"Registration", karpenterv1.ConditionTypeRegistered, launched, c.config.Timeouts.Registration,
			"look at the instance's console: its kubelet has not joined the cluster"},
		{"Initialization", karpenterv1.ConditionTypeInitialized, registered, c.config.Timeouts.Initialization,
			"look at the node: it is not ready, keeps a startup taint or lacks a resource"},
	}
	for _, s := range stages {
		if w.is(s.condition) {
			continue
		}
		if s.timeout <= 0 || s.start.IsZero() {
			return false, nil
		}
		if left := s.start.Add(s.timeout).Sub(c.config.Now()); left > 0 {
			w.askAgain(left)
			return false, nil
		}
		message := fmt.Sprintf("not %s after %s; %s", s.condition, s.timeout, s.remedy)
		if s.condition == karpenterv1.ConditionTypeRegistered {
			c.reportHealth(ctx, w, condition.False(karpenterv1.ConditionTypeNodeRegistrationHealthy,
				"RegistrationTimeout", "NodeClaim "+w.claim.Name+": "+message))
		}
		return true, c.giveUp(ctx, w, s.condition, s.name+"Timeout", event.Timeout, message)
	}
	return false, nil
}

// reasonNodeGone is the reason of the condition Ready of a registered claim whose node is gone while its machine
// runs, and of such a claim's end: its cause.
const reasonNodeGone = string(cause.NodeGone)

func nodeGone(claim *karpenterv1.NodeClaim) string {
	return "node " + claim.Status.NodeName + " is gone, and its machine runs without it"
}

// deserted gives up a registered claim whose node is gone while its machine runs, and reports whether it did. Somebody
// has deleted the Node past our finalizer. A kubelet that starts anew joins again, so it has as long as a new machine
// (P-30). Otherwise nobody would end the machine. A claim that was not ready before has that time from when it ceased
// to be. The API server is asked, since the cache may lack the node of a claim that another leader has registered.
func (c *Controller) deserted(ctx context.Context, w *work) (bool, error) {
	ready, found := condition.Get(w.claim.Status.Conditions, karpenterv1.ConditionTypeReady)
	if !found || ready.Reason != reasonNodeGone || c.config.Timeouts.Registration <= 0 {
		return false, nil
	}
	if left := ready.LastTransitionTime.Add(c.config.Timeouts.Registration).Sub(c.config.Now()); left > 0 {
		w.askAgain(left)
		return false, nil
	}
	if node, err := c.lateNode(ctx, w.claim); err != nil || node != nil {
		return false, err
	}
	message := fmt.Sprintf("%s for %s", nodeGone(w.claim), c.config.Timeouts.Registration)
	return true, c.giveUp(ctx, w, karpenterv1.ConditionTypeRegistered, reasonNodeGone, event.Timeout, message)
}
