package disruption_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
)

// K-49: a node marked as unhealthy goes if it is still unhealthy. It stays if nobody repairs nodes any more, if it has
// recovered, and while that is unknown. A failed replacement is counted.
func TestK49_AnUnhealthyNodeGoesUnlessItHasRecovered(t *testing.T) {
	t.Parallel()
	says := func(why string, err error) func(context.Context, string) (string, error) {
		return func(_ context.Context, claim string) (string, error) {
			if claim != "a" {
				return "", errors.New("asked about " + claim)
			}
			return why, err
		}
	}
	for name, c := range map[string]struct {
		recovered        func(context.Context, string) (string, error)
		together         int
		marked, deleting int
		said             string
		failures         float64
	}{
		"unhealthy": {recovered: says("", nil), together: 1, deleting: 1,
			said: "a DisruptionTerminating: The node is removed: Unhealthy"},
		"one failed": {recovered: says("", nil), together: 2, deleting: 1, failures: 1},
		"healthy": {recovered: says("it is healthy again", nil), together: 1,
			said: "a DisruptionCancelled: The node stays: node a: it is healthy again"},
		"the gate is off": {
			together: 1, said: "a DisruptionCancelled: The node stays: node a: the feature gate NodeRepair is off",
		},
		"no answer": {recovered: says("", errors.New("no answer")), together: 1, marked: 1},
	} {
		r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "900m")
		r.choose(t, "Unhealthy", "a")
		r.standsFor(t, "b", c.together, "a")
		r.over(r.server, func(config *disruption.Config) { config.Recovered = c.recovered })
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
		if (err != nil) != (c.marked > 0) {
			t.Errorf("%s: %v", name, err)
		}
		if marked, deleting := r.state(t); len(marked) != c.marked || len(deleting) != c.deleting {
			t.Errorf("%s: marked %v, deleting %v", name, marked, deleting)
		}
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, c.said) {
			t.Errorf("%s: said %q", name, said)
		}
		if n := controllertest.Count(t, r.registry,
			"karpenter_voluntary_disruption_queue_failures_total"); n != c.failures {
			t.Errorf("%s: %v failures were counted, want %v", name, n, c.failures)
		}
	}
}

// reboots puts the taint onto a node that closes it until it has been rebooted.
func (r *rig) reboots(t *testing.T, name string) {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	n.Spec.Taints = append(n.Spec.Taints,
		corev1.Taint{Key: karpenterv1.RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule})
	if err := r.server.Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// K-49: a node that is being rebooted takes no pods, but has no mark: it is not checked each second, and nobody is
// told that it stays.
func TestK49_ANodeThatIsRebootedIsNoRemoval(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "900m")
	r.reboots(t, "a")
	asked := 0
	r.over(r.server, func(config *disruption.Config) {
		config.Live = interceptor.NewClient(r.server,
			interceptor.Funcs{Get: func(ctx context.Context, server client.WithWatch,
				key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, is := object.(*karpenterv1.NodeClaim); is {
					asked++
				}
				return server.Get(ctx, key, object, options...)
			}})
	})
	if again := r.reconcile(t).RequeueAfter; again < 10*time.Second || asked > 0 {
		t.Errorf("looked at again after %s, asked for %d claims", again, asked)
	}
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "DisruptionCancelled") {
		t.Errorf("said %q", said)
	}
}

// K-49: the repair controller marks and launches while this controller looks. Just after the mark, the missing
// replacement must not count.
func TestK49_WhatWasMarkedAMomentAgoIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "900m")
	r.choose(t, "Unhealthy", "a")
	r.over(r.server, func(config *disruption.Config) {
		config.Recovered = func(context.Context, string) (string, error) { return "", nil }
	})
	for _, c := range []struct {
		after            time.Duration
		marked, deleting int
	}{{0, 1, 0}, {9 * time.Second, 1, 0}, {time.Second, 0, 1}} {
		r.clock.Advance(c.after)
		r.reconcile(t)
		r.sync(t)
		if marked, deleting := r.state(t); len(marked) != c.marked || len(deleting) != c.deleting {
			t.Errorf("%s later: marked %v, deleting %v", c.after, marked, deleting)
		}
	}
}
