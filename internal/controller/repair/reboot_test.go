package repair_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/repair"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// rebooting is a cloud that reboots machines whose reason says Xid, and replaces others.
type rebooting struct{ cloud }

func (rebooting) Reboot(context.Context, string, string) error { return nil }

func (rebooting) RepairPolicies() []provider.RepairPolicy {
	policy := provider.RepairPolicy{ConditionType: "Gpu", ConditionStatus: corev1.ConditionFalse,
		Toleration: time.Minute, TerminationGracePeriod: new(time.Minute)}
	reboot := policy
	reboot.Reason, reboot.Reboot = "^Xid", true
	return []provider.RepairPolicy{policy, reboot}
}

var _ provider.Rebooter = rebooting{}

// gpu is a cluster of five nodes, of which x is broken for a reason.
func gpu(t *testing.T, reason string, changes ...func(m *machine)) *rig {
	t.Helper()
	broken := func(m *machine) {
		m.node.Status.Conditions = []corev1.NodeCondition{{Type: "Gpu", Status: corev1.ConditionFalse, Reason: reason,
			LastTransitionTime: metav1.NewTime(controllertest.Start().Add(-time.Hour))}}
	}
	changes = append([]func(m *machine){broken}, changes...)
	r := situation(t, []*karpenterv1.NodePool{poolOf("p", "fake", "100%")},
		append(fine(4, "p", "fake"), machineOf("x", "p", "fake", changes...))...)
	r.with(func(c *repair.Config) { c.Fleet = fleet.New(rebooting{}) })
	return r
}

func (r *rig) claim(t *testing.T) *karpenterv1.NodeClaim {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "x"}, &claim); err != nil {
		t.Fatal(err)
	}
	return &claim
}

func ended(reason string, ago time.Duration, times ...string) func(m *machine) {
	return func(m *machine) {
		condition.Set(&m.claim.Status.Conditions, 0, condition.False(karpenterv1.ConditionTypeRebooting, reason, ""),
			controllertest.Start().Add(-ago))
		m.claim.Annotations = map[string]string{karpenterv1.RebootsAnnotationKey: strings.Join(times, ",")}
	}
}

// K-49: a reboot by a policy with a pattern is recorded on the claim, and nothing is deleted. A node that was rebooted
// in vain is replaced, and so is one that no pattern matches.
func TestK49_WhatIsRebooted(t *testing.T) {
	t.Parallel()
	annotated := func(key string) func(m *machine) {
		return func(m *machine) { m.claim.Annotations = map[string]string{key: "true"} }
	}
	const day, before, now = "2026-01-01T03:04:04Z", "2026-01-02T02:04:05Z", "2026-01-02T03:04:05Z"
	for name, c := range map[string]struct {
		reason  string
		changes []func(m *machine)
		want    string // reboot, replace or ""
		times   string
	}{
		"by its reason":      {"Xid13", nil, "reboot", now},
		"no pattern matches": {"Fell", nil, "replace", ""},
		"one whose reboot failed": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootFailed, time.Hour,
			before)}, "replace", before},
		"long ago": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootFailed, 25*time.Hour, day)}, "reboot",
			now},
		"taken back": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootWithdrawn, time.Hour)}, "reboot",
			now},
		"it helped, for a while": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootSucceeded, time.Hour,
			before)}, "reboot", before + "," + now},
		"it may still help": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootSucceeded,
			time.Second, before)}, "", before},
		"twice in vain": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootSucceeded, time.Hour,
			before, before)}, "replace", before + "," + before},
		"nobody knows how often": {"Xid13", []func(m *machine){ended(karpenterv1.ReasonRebootSucceeded, time.Hour,
			"often", "x")}, "replace", "often,x"},
		"do-not-repair": {"Xid13", []func(m *machine){annotated(karpenterv1.DoNotRepairAnnotationKey)}, "",
			""},
		"do-not-disrupt": {"Xid13", []func(m *machine){annotated(karpenterv1.DoNotDisruptAnnotationKey)},
			"", ""},
		"one that is being deleted": {"Xid13", []func(m *machine){leaving}, "replace", ""},
	} {
		r := gpu(t, c.reason, c.changes...)
		r.reconcile(t)
		claim := r.claim(t)
		rebooting, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
		got := ""
		if rebooting.Status == metav1.ConditionTrue {
			if got = "reboot"; rebooting.Reason != karpenterv1.ReasonRebootRequested ||
				!strings.Contains(rebooting.Message, "node x is rebooted: Gpu=False (Xid13)") ||
				claim.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey] != "1m0s" {
				t.Errorf("%s: condition %+v, annotations %v; want it to be told why, and how long the drain may take",
					name, rebooting, claim.Annotations)
			}
		}
		if claim.DeletionTimestamp != nil {
			got += "replace"
		}
		if got != c.want || claim.Annotations[karpenterv1.RebootsAnnotationKey] != c.times {
			t.Errorf("%s: %q, reboots %q; want %q and %q", name, got,
				claim.Annotations[karpenterv1.RebootsAnnotationKey], c.want, c.times)
		}
	}
}

// K-49: a reboot under way is not decided again, by this process or the next. It uses up the budget and is counted
// once.
func TestK49_ARebootIsDecidedOnce(t *testing.T) {
	t.Parallel()
	r := gpu(t, "Xid13", func(m *machine) {
		m.claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: 20 * time.Second}
	})
	registry := r.with(func(c *repair.Config) { c.Fleet = fleet.New(rebooting{}) })
	for range 3 {
		r.reconcile(t)
	}
	first := r.claim(t)
	if got := first.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey]; got != "20s" {
		t.Errorf("the drain may take %q, want the claim's own 20s, which is shorter", got)
	}
	for name, labels := range map[string][]string{
		"karpenter_voluntary_disruption_decisions_total":             {"", "reboot", "unhealthy"},
		"karpenter_voluntary_disruption_decisions_by_nodepool_total": {"p", "", "reboot", "unhealthy"},
	} {
		if n := controllertest.Count(t, registry, name, labels...); n != 1 {
			t.Errorf("%s %v is %v, want 1", name, labels, n)
		}
	}
	r.with(func(c *repair.Config) { c.Fleet = fleet.New(rebooting{}) }) // another process
	r.clock.Advance(time.Hour)
	if next := r.reconcile(t).RequeueAfter; next != 10*time.Second {
		t.Errorf("the node is looked at again after %s, want 10s: the reboot may fail, and no node changes then", next)
	}
	if again := r.claim(t); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("the claim was written again: %v, %v", again.Annotations, again.Status.Conditions)
	}
}

// K-49: before the provider is asked, a reboot is withdrawn if the node has recovered or somebody keeps it; afterwards
// it is not.
func TestK49_ARebootIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(node *corev1.Node, claim *karpenterv1.NodeClaim)
		why    string // "" when it goes on
	}{
		"as it was":  {func(*corev1.Node, *karpenterv1.NodeClaim) {}, ""},
		"it is well": {func(n *corev1.Node, _ *karpenterv1.NodeClaim) { n.Status.Conditions = nil }, "healthy again"},
		"on the node": {func(n *corev1.Node, _ *karpenterv1.NodeClaim) {
			n.Annotations = map[string]string{karpenterv1.DoNotRepairAnnotationKey: "true"}
		}, "do-not-repair"},
		"on the claim": {func(_ *corev1.Node, c *karpenterv1.NodeClaim) {
			c.Annotations[karpenterv1.DoNotDisruptAnnotationKey] = "true"
		},
			"do-not-disrupt"},
		"too late": {func(n *corev1.Node, c *karpenterv1.NodeClaim) {
			n.Status.Conditions, c.Annotations[karpenterv1.RebootPreBootIDAnnotationKey] = nil, "a"
		}, ""},
	} {
		r := gpu(t, "Xid13")
		r.reconcile(t)
		claim, node := r.claim(t), &corev1.Node{}
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: "x"}, node); err != nil {
			t.Fatal(err)
		}
		c.change(node, claim)
		status := node.Status
		for _, err := range []error{r.server.Update(t.Context(), claim), r.server.Update(t.Context(), node)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		node.Status = status
		if err := r.server.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		got, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeRebooting)
		back := got.Status == metav1.ConditionFalse && got.Reason == karpenterv1.ReasonRebootWithdrawn
		if back != (c.why != "") || !strings.Contains(got.Message, c.why) {
			t.Errorf("%s: %s (%s) %q, want it taken back since %q", name, got.Status, got.Reason, got.Message, c.why)
		}
	}
}

// D-09: no failure of what is written about a reboot is swallowed, and the next step goes on from there.
func TestK49_NoFailureOfARebootIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := gpu(t, "Xid13")
		r.with(func(c *repair.Config) {
			c.Fleet, c.Client, c.Live = fleet.New(rebooting{}), f.Wrap(r.server), f.Wrap(r.server)
		})
		return func() error {
			result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
			claim := r.claim(t)
			if _, found := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting); err == nil &&
				(!found ||
					claim.Annotations[karpenterv1.RebootsAnnotationKey] != "2026-01-02T03:04:05Z") {
				t.Errorf("no error, and the reboot is not written down: %v; again after %s", claim.Annotations,
					result.RequeueAfter)
			}
			return err
		}
	})
}
