package claim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// K-30: reboots that Karpenter began are ended, whatever has become of them, and no node is given up for being rebooted.
func TestK30_RebootsAreEnded(t *testing.T) {
	t.Parallel()
	const asked, decided = "RebootIssued", "RebootRequested"
	for name, c := range map[string]struct {
		phase   string
		bootID  string // of the node by now; it was "old"
		ready   bool
		after   time.Duration
		reason  string // of the condition in the end; "" while it goes on
		gone    bool
		isReady bool // the claim
	}{
		"decided, and not asked for":     {phase: decided, bootID: "old", ready: true, reason: "RebootFailed", isReady: true},
		"decided, and the node is sick":  {phase: decided, bootID: "old", reason: "RebootFailed", isReady: true},
		"asked for, and not begun":       {phase: asked, bootID: "old", ready: true, after: time.Minute},
		"the node is down":               {phase: asked, bootID: "old", after: 19 * time.Minute},
		"it runs anew, and is not ready": {phase: asked, bootID: "new", after: time.Minute},
		"its boot ID is not known":       {phase: asked, ready: true, after: time.Minute},
		"it runs anew":                   {phase: asked, bootID: "new", ready: true, after: time.Minute, reason: "RebootSucceeded", isReady: true},
		"it never rebooted":              {phase: asked, bootID: "old", ready: true, after: 20 * time.Minute, reason: "RebootFailed", isReady: true},
		"it never came back":             {phase: asked, bootID: "old", after: 20 * time.Minute, reason: "RebootFailed", gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := newClaim()
			claim.Spec.StartupTaints = nil
			r := newRig(t, claim, joined())
			r.reconcile(t)
			r.makeReady(t)
			r.reconcile(t)
			if r.is(t, karpenterv1.ConditionTypeReady) != "True" {
				t.Fatal("the claim is not ready before the reboot")
			}
			r.clock.Advance(48 * time.Hour) // long after all times for a new node
			reboots(t, r, c.phase)
			r.clock.Advance(c.after)
			node := r.node(t)
			node.Status.NodeInfo.BootID = c.bootID
			if !c.ready {
				node.Status.Conditions[0].Status = corev1.ConditionUnknown
			}
			r.put(t, node)
			result := r.reconcile(t)

			got := r.claim(t)
			now, _ := condition.Get(got.Status.Conditions, karpenterv1.ConditionTypeRebooting)
			if c.reason == "" {
				if now.Status != "True" || now.Reason != c.phase || result.RequeueAfter <= 0 || result.RequeueAfter > 20*time.Minute-c.after {
					t.Errorf("Rebooting=%s (%s), again after %s: want it to go on, and a look in time", now.Status, now.Reason, result.RequeueAfter)
				}
			} else if now.Status != "False" || now.Reason != c.reason || !strings.Contains(now.Message, "n1") {
				t.Errorf("Rebooting=%s (%s) %q, want False (%s) that names the node", now.Status, now.Reason, now.Message, c.reason)
			}
			if gone := got.DeletionTimestamp != nil; gone != c.gone {
				t.Errorf("given up: %t, want %t", gone, c.gone)
			}
			if isReady := r.is(t, karpenterv1.ConditionTypeReady) == "True"; isReady != c.isReady {
				t.Errorf("the claim is ready: %t, want %t", isReady, c.isReady)
			}
			tainted := slices.ContainsFunc(r.node(t).Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
			_, marked := got.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey]
			if stays := c.reason == "" || c.gone; tainted != stays || marked != stays {
				t.Errorf("tainted: %t, annotated: %t, want both %t", tainted, marked, stays)
			}
			if other := r.node(t).Spec.Taints; !slices.ContainsFunc(other, func(t corev1.Taint) bool { return t.Key == "team" }) {
				t.Errorf("the node's own taint went, too: %v", other)
			}
		})
	}
}

// reboots makes node and claim look as Karpenter 1.15 leaves them in a phase of a reboot.
func reboots(t *testing.T, r *rig, phase string) {
	t.Helper()
	node := r.node(t)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: karpenterv1.RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule})
	r.put(t, node)
	claim := r.claim(t)
	claim.Annotations = map[string]string{karpenterv1.RebootTerminationGracePeriodAnnotationKey: "10m"}
	if phase == "RebootIssued" {
		claim.Annotations[karpenterv1.RebootPreBootIDAnnotationKey] = "old"
	}
	if err := r.server.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.setCondition(t, condition.True(karpenterv1.ConditionTypeRebooting, phase, "by the health of the node"))
	if phase == "RebootIssued" {
		r.setCondition(t, condition.Unknown(karpenterv1.ConditionTypeInitialized, "Rebooting", "node is rebooting"))
	}
}
