package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// rebooter counts what it is asked for.
type rebooter struct {
	cannot  bool
	failure error
	lost    bool // the answer
	asked   []string
}

func (r *rebooter) CanReboot(string) bool { return !r.cannot }

func (r *rebooter) Reboot(_ context.Context, id, operation string) error {
	r.asked = append(r.asked, id+" "+operation)
	if r.lost {
		return errors.New("no answer")
	}
	return r.failure
}

// rebootRig is a node whose reboot was decided, with a drain of a minute.
func rebootRig(t *testing.T, r *rebooter, objects ...client.Object) (*rig, *prometheus.Registry) {
	t.Helper()
	n, claim := dying()
	n.DeletionTimestamp, claim.DeletionTimestamp = nil, nil
	n.Labels = map[string]string{karpenterv1.NodeInitializedLabelKey: "true", "team": "a"}
	n.Status.NodeInfo.BootID = "old"
	claim.Annotations = map[string]string{karpenterv1.RebootTerminationGracePeriodAnnotationKey: "1m0s"}
	condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeInitialized, "", ""),
		controllertest.Start())
	condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeRebooting,
		karpenterv1.ReasonRebootRequested, "Gpu=False"), controllertest.Start())
	rig := newRig(t, append(objects, n, claim)...)
	return rig, rig.reboots(r)
}

// reboots sets another process up.
func (r *rig) reboots(by *rebooter) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	r.step = node.New(node.Config{Client: r.server, Live: r.server, Fleet: r.cloud, Rebooter: by, Events: r.tape,
		Metrics: metrics.New(registry), Now: r.clock.Now, Log: logr.Discard()})
	return registry
}

func (r *rig) node(t *testing.T) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

func (r *rig) claim(t *testing.T) *karpenterv1.NodeClaim {
	t.Helper()
	var c karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "c1"}, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// phase is how the reboot stands: the reason of its condition, and what the node has of it.
func (r *rig) phase(t *testing.T) string {
	t.Helper()
	n := r.node(t)
	fenced := slices.ContainsFunc(n.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
	return fmt.Sprintf("%s fenced=%t initialized=%s,%s", r.condition(t, karpenterv1.ConditionTypeRebooting).Reason,
		fenced,
		n.Labels[karpenterv1.NodeInitializedLabelKey], r.condition(t, karpenterv1.ConditionTypeInitialized).Status)
}

const (
	decided = "RebootRequested fenced=true initialized=true,True"
	issued  = "RebootIssued fenced=true initialized=,Unknown"
	failed  = "RebootFailed fenced=true initialized=true,True"
)

// K-49: the node is fenced off and drained, except daemons; then the provider is asked, once.
func TestK49_ANodeIsDrainedBeforeItsReboot(t *testing.T) {
	t.Parallel()
	daemon := pod("daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent",
		UID: "agent", Controller: new(true)}}
	by := &rebooter{}
	r, _ := rebootRig(t, by, pod("a"), pod("b"), daemon)
	r.refuse["b"] = true
	if r.reconcile(t); r.phase(t) != decided || len(by.asked) != 0 || !slices.Equal(r.evicted, []string{"a", "b"}) {
		t.Fatalf("%s, asked %v, evicted %v; want it to be drained first", r.phase(t), by.asked, r.evicted)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said,
		"a Evicted: Evicted, since its node n1 is being rebooted") ||
		!strings.Contains(said,
			"n1 FailedDraining: Cannot drain before the reboot at 2026-01-02T03:05:05Z: pod default/b: ") {
		t.Errorf("said %q", said)
	}
	r.clock.Advance(59 * time.Second)
	if again := r.reconcile(t).RequeueAfter; again != time.Second || len(by.asked) != 0 {
		t.Errorf("a second before the drain ends: again after %s, asked %v", again, by.asked)
	}
	r.clock.Advance(time.Second)
	r.reconcile(t)
	if want := fmt.Sprintf("kwok://n1 c1-%d", controllertest.Start().Unix()); r.phase(t) != issued ||
		!slices.Equal(by.asked, []string{want}) {
		t.Fatalf("%s, asked %q; want %q", r.phase(t), by.asked, want)
	}
	for range 3 {
		r.reconcile(t)
		r.clock.Advance(time.Hour)
	}
	if len(by.asked) != 1 || r.phase(t) != issued || r.node(t).Labels["team"] != "a" {
		t.Errorf("%s, asked %v: want it to be asked once, and to be left to the controller of claims", r.phase(t),
			by.asked)
	}
}

// K-49: how the provider's answers are handled. After a lost answer, it is not asked again before another boot ID had
// time to show.
func TestK49_WhatTheProviderSaysOfAReboot(t *testing.T) {
	t.Parallel()
	refused := &provider.RebootError{Message: "no right to ec2:RebootInstances"}
	for name, c := range map[string]struct {
		by      rebooter
		bootID  string // after the first step
		opened  bool   // the node is not initialized after that: the answer was written down in part
		wait    time.Duration
		want    string
		asked   int
		told    string
		outcome string
	}{
		"lost":                    {by: rebooter{lost: true}, want: decided, asked: 1, wait: 239 * time.Second},
		"lost, and it runs anew":  {by: rebooter{lost: true}, bootID: "new", want: issued, asked: 1},
		"lost, and so is another": {by: rebooter{lost: true}, want: decided, asked: 2, wait: 240 * time.Second},
		"lost for too long": {by: rebooter{lost: true}, want: failed, asked: 1, wait: 5 * time.Minute,
			told: "has not taken the reboot of node n1 on within 5m0s", outcome: "provider_error"},
		"taken on, and written down in part": {by: rebooter{lost: true}, opened: true, want: issued, asked: 1,
			wait: 5 * time.Minute},
		"refused": {by: rebooter{failure: refused}, want: failed, asked: 1,
			told: "no right to ec2:RebootInstances", outcome: "provider_error"},
		"gone": {by: rebooter{failure: provider.ErrNotFound}, want: failed, asked: 1,
			told: "instance not found", outcome: "provider_error"},
		"throttled, and asked again at once": {by: rebooter{failure: provider.ErrThrottled}, want: decided, asked: 2},
	} {
		r, registry := rebootRig(t, &c.by)
		claim := r.claim(t)
		claim.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey] = "0s"
		if err := r.server.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		step := func() {
			_, _ = r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
		}
		step()
		if c.bootID != "" {
			n := r.node(t)
			n.Status.NodeInfo.BootID = c.bootID
			if err := r.server.Status().Update(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if c.opened {
			n := r.node(t)
			delete(n.Labels, karpenterv1.NodeInitializedLabelKey)
			if err := r.server.Update(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		r.clock.Advance(c.wait)
		step()
		if r.phase(t) != c.want || len(c.by.asked) != c.asked {
			t.Errorf("%s: %s, asked %d times; want %s and %d", name, r.phase(t), len(c.by.asked), c.want, c.asked)
		}
		if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "RebootFailed") != (c.told != "") ||
			!strings.Contains(said, c.told) {
			t.Errorf("%s: said %q, want %q", name, said, c.told)
		}
		if c.outcome != "" {
			if n := controllertest.Count(t, registry, "karpenter_nodes_reboots_total", c.outcome); n != 1 {
				t.Errorf("%s: %v reboots are counted as %s, want 1", name, n, c.outcome)
			}
		}
	}
}

// K-49: after a process dies at any call, another one can continue. The machine is asked to reboot once, or not again
// before its boot ID had time to change.
func TestK49_NoSecondReboot(t *testing.T) {
	t.Parallel()
	by := &rebooter{}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		*by = rebooter{}
		r, _ := rebootRig(t, by)
		r.step = node.New(node.Config{Client: f.Wrap(r.server), Live: r.server, Fleet: r.cloud, Rebooter: by,
			Events: r.tape, Metrics: metrics.New(prometheus.NewRegistry()), Now: r.clock.Now, Log: logr.Discard()})
		return func() error {
			_, err := r.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
			if len(by.asked) > 1 {
				t.Errorf("asked %v", by.asked)
			}
			if err != nil && len(by.asked) == 1 { // it reboots, whether the answer was written down or not
				n := r.node(t)
				n.Status.NodeInfo.BootID = "new"
				if err := r.server.Status().Update(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			if err == nil && r.phase(t) != issued {
				t.Errorf("no error, and %s", r.phase(t))
			}
			return err
		}
	})
}

// K-49: an invalid value is reported with annotation, value and what is allowed, and the node is not rebooted.
func TestK49_ADrainThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"soon", "-1s", "10"} {
		by := &rebooter{}
		r, registry := rebootRig(t, by)
		claim := r.claim(t)
		claim.Annotations[karpenterv1.RebootTerminationGracePeriodAnnotationKey] = value
		if err := r.server.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		want := fmt.Sprintf(
			"annotation karpenter.sh/reboot-termination-grace-period of NodeClaim c1 is %q; want a duration of 0s or more",
			value)
		got := r.condition(t, karpenterv1.ConditionTypeRebooting)
		if len(by.asked) != 0 || got.Reason != karpenterv1.ReasonRebootFailed || !strings.Contains(got.Message, want) {
			t.Errorf("%q: asked %v, %s %q; want %q", value, by.asked, got.Reason, got.Message, want)
		}
		if n := controllertest.Count(t, registry, "karpenter_nodes_reboots_total", "invalid_request"); n != 1 {
			t.Errorf("%v invalid requests are counted, want 1", n)
		}
	}
}

// K-49: nodes whose reboot nobody decided, or nobody can carry out, are left alone.
func TestK49_WhoIsNotRebooted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by     *rebooter
		change func(c *karpenterv1.NodeClaim)
	}{
		"the provider cannot": {&rebooter{cannot: true}, func(*karpenterv1.NodeClaim) {}},
		"it was taken back": {&rebooter{}, func(c *karpenterv1.NodeClaim) {
			condition.Set(&c.Status.Conditions, 0, condition.False(karpenterv1.ConditionTypeRebooting,
				karpenterv1.ReasonRebootWithdrawn, ""), controllertest.Start())
		}},
		"nobody decided it": {&rebooter{}, func(c *karpenterv1.NodeClaim) { c.Status.Conditions = nil }},
	} {
		r, _ := rebootRig(t, c.by, pod("a"))
		claim := r.claim(t)
		c.change(claim)
		if err := r.server.Status().Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		before := r.node(t).ResourceVersion
		if r.reconcile(t); len(c.by.asked)+len(r.evicted) != 0 || r.node(t).ResourceVersion != before {
			t.Errorf("%s: asked %v, evicted %v, %s", name, c.by.asked, r.evicted, r.phase(t))
		}
	}
}
