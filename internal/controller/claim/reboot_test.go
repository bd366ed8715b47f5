package claim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// K-30: reboots that Karpenter began are ended, whatever their result, and no node is given up for being rebooted.
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
		"decided, and not asked for": {phase: decided, bootID: "old", ready: true, reason: "RebootFailed",
			isReady: true},
		"decided, and the node is sick":  {phase: decided, bootID: "old", reason: "RebootFailed", isReady: true},
		"asked for, and not begun":       {phase: asked, bootID: "old", ready: true, after: time.Minute},
		"the node is down":               {phase: asked, bootID: "old", after: 19 * time.Minute},
		"it runs anew, and is not ready": {phase: asked, bootID: "new", after: time.Minute},
		"its boot ID is not known":       {phase: asked, ready: true, after: time.Minute},
		"it runs anew": {phase: asked, bootID: "new", ready: true, after: time.Minute,
			reason: "RebootSucceeded", isReady: true},
		"it never rebooted": {phase: asked, bootID: "old", ready: true, after: 20 * time.Minute,
			reason: "RebootFailed", isReady: true},
		"it never came back": {phase: asked, bootID: "old", after: 20 * time.Minute,
			reason: "RebootFailed", gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := initialized(t, false)
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
				if now.Status != "True" || now.Reason != c.phase || result.RequeueAfter <= 0 ||
					result.RequeueAfter > 20*time.Minute-c.after {
					t.Errorf("Rebooting=%s (%s), again after %s: want it to go on, and a look in time", now.Status,
						now.Reason, result.RequeueAfter)
				}
			} else if now.Status != "False" || now.Reason != c.reason || !strings.Contains(now.Message, "n1") {
				t.Errorf("Rebooting=%s (%s) %q, want False (%s) that names the node", now.Status, now.Reason,
					now.Message, c.reason)
			}
			if gone := got.DeletionTimestamp != nil; gone != c.gone {
				t.Errorf("given up: %t, want %t", gone, c.gone)
			}
			if isReady := r.is(t, karpenterv1.ConditionTypeReady) == "True"; isReady != c.isReady {
				t.Errorf("the claim is ready: %t, want %t", isReady, c.isReady)
			}
			tainted := slices.ContainsFunc(r.node(t).Spec.Taints,
				func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
			_, marked := got.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey]
			stays := c.reason == "" || c.gone
			if fenced := stays && c.bootID != "new"; tainted != fenced || marked != stays {
				t.Errorf("tainted: %t, annotated: %t, want %t and %t", tainted, marked, fenced, stays)
			}
			if other := r.node(t).Spec.Taints; !slices.ContainsFunc(other,
				func(t corev1.Taint) bool { return t.Key == "team" }) {
				t.Errorf("the node's own taint went, too: %v", other)
			}
		})
	}
}

// reboots makes node and claim look as Karpenter 1.15 leaves them in a phase of a reboot.
func reboots(t *testing.T, r *rig, phase string) {
	t.Helper()
	node := r.node(t)
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: karpenterv1.RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule})
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

// rebooting is a cloud that can reboot machines.
type rebooting struct{ *cloud }

func (rebooting) Reboot(context.Context, string, string) error { return nil }

// K-49: Joiner's own reboot is left to the controller of nodes until the provider accepts it. When the node has
// restarted it opens, with an event; when it is ready again the reboot has succeeded, and is counted once. A reboot
// that takes too long has failed. Then a ready node opens, for the repair controller, and an unready one is removed
// with a bounded drain.
func TestK49_HowARebootEnds(t *testing.T) {
	t.Parallel()
	const asked, decided = karpenterv1.ReasonRebootIssued, karpenterv1.ReasonRebootRequested
	for name, c := range map[string]struct {
		phase          string
		bootID         string
		ready          bool
		after          time.Duration
		reason, result string // in the end
		said           string
		gone, fenced   bool
	}{
		"decided":   {phase: decided, bootID: "old", ready: true, after: time.Hour, fenced: true},
		"taken on":  {phase: asked, bootID: "old", ready: true, after: 19 * time.Minute, fenced: true},
		"it starts": {phase: asked, bootID: "new", after: time.Minute, said: "c1 RebootObserved: Node n1 runs anew"},
		"it is back": {phase: asked, bootID: "new", ready: true, after: 40 * time.Second,
			reason: karpenterv1.ReasonRebootSucceeded, result: "succeeded", said: "c1 RebootObserved: "},
		"nothing has come": {phase: asked, bootID: "old", ready: true, after: 20 * time.Minute,
			reason: karpenterv1.ReasonRebootFailed, result: "recovery_timeout",
			said: "c1 RebootFailed: node n1 did not reboot within 20m0s"},
		"it never came back": {phase: asked, bootID: "old", after: 20 * time.Minute,
			reason: karpenterv1.ReasonRebootFailed, result: "recovery_timeout",
			said: "c1 RebootFailed: node n1 is not ready 20m0s after", gone: true, fenced: true},
		"it starts for ever": {phase: asked, bootID: "new", after: 20 * time.Minute,
			reason: karpenterv1.ReasonRebootFailed, result: "recovery_timeout", said: "c1 RebootFailed: ", gone: true},
	} {
		c1 := newClaim()
		c1.Spec.StartupTaints = nil
		r := newRig(t, c1, joined())
		registry := prometheus.NewRegistry()
		r.config.Metrics, r.config.Reboots, r.config.Fleet = metrics.New(registry), true, fleet.New(rebooting{r.cloud})
		r.step = claim.New(r.config)
		r.reconcile(t)
		r.makeReady(t)
		r.reconcile(t)
		r.clock.Advance(48 * time.Hour)
		reboots(t, r, c.phase)
		r.clock.Advance(c.after)
		node := r.node(t)
		node.Status.NodeInfo.BootID = c.bootID
		if !c.ready {
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
		}
		r.put(t, node)
		for range 2 {
			r.reconcile(t)
		}
		got := r.claim(t)
		now, _ := condition.Get(got.Status.Conditions, karpenterv1.ConditionTypeRebooting)
		if on := now.Status == "True"; on != (c.reason == "") || !on && now.Reason != c.reason {
			t.Errorf("%s: Rebooting=%s (%s), want %q", name, now.Status, now.Reason, c.reason)
		}
		fenced := slices.ContainsFunc(r.node(t).Spec.Taints,
			func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
		if gone := got.DeletionTimestamp != nil; gone != c.gone || fenced != c.fenced {
			t.Errorf("%s: given up %t, fenced %t; want %t and %t", name, gone, fenced, c.gone, c.fenced)
		}
		if ends := got.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]; c.gone &&
			ends != r.clock.Now().Add(10*time.Minute).Format(time.RFC3339) {
			t.Errorf("%s: the drain ends at %q, want 10m from now", name, ends)
		}
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, c.said) ||
			(c.said == "") != !strings.Contains(said, "c1 Reboot") {
			t.Errorf("%s: said %q, want %q", name, said, c.said)
		}
		if c.result == "" {
			continue
		}
		if n := controllertest.Count(t, registry, "karpenter_nodes_reboots_total", c.result); n != 1 {
			t.Errorf("%s: %v reboots are counted as %s, want 1", name, n, c.result)
		}
		if n := controllertest.Observed(t, registry, "karpenter_nodes_reboot_duration_seconds", c.result); n != 1 {
			t.Errorf("%s: %d reboots are measured, want 1", name, n)
		}
		n := controllertest.Observed(t, registry, "karpenter_nodes_reboot_recovery_duration_seconds")
		if (n == 1) != (c.result == "succeeded") {
			t.Errorf("%s: %d recoveries are measured", name, n)
		}
	}
}

// K-49: the taint of a reboot that was taken back, or that the provider refused, goes.
func TestK49_ARebootThatDoesNotComeOpensTheNode(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{karpenterv1.ReasonRebootWithdrawn, karpenterv1.ReasonRebootFailed} {
		r := newRig(t, newClaim(), joined())
		r.reconcile(t)
		r.makeReady(t)
		reboots(t, r, karpenterv1.ReasonRebootRequested)
		r.setCondition(t, condition.False(karpenterv1.ConditionTypeRebooting, reason, "why"))
		r.reconcile(t)
		if taints := r.node(t).Spec.Taints; slices.ContainsFunc(taints,
			func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey }) {
			t.Errorf("%s: the node has taints %v", reason, taints)
		}
		if now, _ := condition.Get(r.claim(t).Status.Conditions,
			karpenterv1.ConditionTypeRebooting); now.Reason != reason || now.Message != "why" {
			t.Errorf("Rebooting is %+v, want %s as it was", now, reason)
		}
	}
}
