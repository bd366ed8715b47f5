package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
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
		if s.condition == karpenterv1.ConditionTypeInitialized {
			if used, err := c.used(ctx, w, message); used || err != nil {
				return false, err
			}
		}
		c.reportTimeout(ctx, w, s, message)
		return true, c.giveUp(ctx, w, s.condition, s.name+"Timeout", event.Timeout, message)
	}
	return false, nil
}

// usedAgain is how soon a node that runs pods is looked at again after its initialization timeout.
const usedAgain = 10 * time.Minute

// used reports whether pods run on a node that is Ready and not initialized in time. Such a node stays: Karpenter has
// no such timeout, and a node that lacks a device or keeps a startup taint may serve pods for months. Pods of
// DaemonSets, static pods and finished ones do not count. An event says what is missing.
func (c *Controller) used(ctx context.Context, w *work, message string) (bool, error) {
	if w.node == nil || !isReady(w.node) {
		return false, nil
	}
	var pods corev1.PodList
	if err := c.config.Client.List(ctx, &pods, client.MatchingFields{IndexPodNode: w.node.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the pods of node %s: %w", w.node.Name, err)
	}
	number := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
		daemon := slices.ContainsFunc(pod.OwnerReferences,
			func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
		if !static && !daemon && !translate.Finished(pod) {
			number++
		}
	}
	if number == 0 {
		return false, nil
	}
	w.askAgain(usedAgain)
	c.config.Events.Event(w.claim, event.Warning, event.Timeout, fmt.Sprintf(
		"NodeClaim is %s. It stays while pods run on node %s, %d now", message, w.node.Name, number))
	return true, nil
}

// reportTimeout tells the pool about a claim that did not join in time. Only the first two stages count. A launch that
// was refused says why.
func (c *Controller) reportTimeout(ctx context.Context, w *work, s stage, message string) {
	if s.condition == karpenterv1.ConditionTypeInitialized {
		return
	}
	reason, message := s.name+"Timeout", "NodeClaim "+w.claim.Name+": "+message
	if failed, _ := condition.Get(w.claim.Status.Conditions, s.condition); failed.Status == metav1.ConditionFalse {
		reason, message = failed.Reason, message+": "+failed.Message
	}
	c.reportHealth(ctx, w, condition.False(karpenterv1.ConditionTypeNodeRegistrationHealthy, reason, message))
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
