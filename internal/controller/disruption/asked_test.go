package disruption_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
)

// asking counts in asked how often the API server is asked for the pause switch.
func (r *rig) asking(asked *int) {
	live := interceptor.NewClient(r.server, interceptor.Funcs{Get: func(ctx context.Context, server client.WithWatch,
		key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		if _, is := object.(*corev1.ConfigMap); is && key.Name == disruption.SwitchName {
			*asked++
		}
		return server.Get(ctx, key, object, opts...)
	}})
	r.over(r.server, func(c *disruption.Config) { c.Live = live })
}

// D-14, B-12: rounds that begin nothing read the switch once in ten seconds. A round that begins something reads it
// first, and so does each that carries something out.
func TestTheSwitchIsAskedWhereItMatters(t *testing.T) {
	t.Parallel()
	r := newRig(t, append(fleet("100%", "a"), podOn("a"))...)
	asked := 0
	r.asking(&asked)
	see := func(what string, want int) {
		t.Helper()
		if asked != want {
			t.Fatalf("%s: the switch was asked for %d times, want %d", what, asked, want)
		}
	}
	for range 3 {
		r.reconcile(t)
	}
	see("three rounds with nothing to do", 1)
	r.clock.Advance(10 * time.Second)
	r.reconcile(t)
	see("ten seconds later", 2)
	if err := r.server.Delete(t.Context(), podOn("a")); err != nil {
		t.Fatal(err)
	}
	r.store.Remove(podOn("a"))
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 1 {
		t.Fatalf("%d nodes are marked, want the empty one", marked)
	}
	see("an intent is written", 3)
	r.sync(t)
	r.reconcile(t)
	if all, _ := r.claims(t); all != 0 {
		t.Fatalf("%d claims, want none", all)
	}
	see("it is carried out", 4)
}

// D-14: a switch that is turned on after one round has read it stops what the next round would begin: an empty node, a
// drifted one, one above an inherited limit. The round after that reports why.
func TestASwitchThatHasJustComeOnHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*testing.T) *rig
		due    func(*testing.T, *rig)
	}{
		"empty": {
			func(t *testing.T) *rig { t.Helper(); return newRig(t, append(fleet("100%", "a"), podOn("a"))...) },
			func(t *testing.T, r *rig) {
				t.Helper()
				if err := r.server.Delete(t.Context(), podOn("a")); err != nil {
					t.Fatal(err)
				}
				r.store.Remove(podOn("a"))
			},
		},
		"too many": {
			func(t *testing.T) *rig {
				t.Helper()
				r := newRig(t, softFleet("1", "0", "a", "b")...)
				r.reconcile(t)
				r.sync(t) // it is known now that the pool inherited what is too many
				return r
			},
			func(t *testing.T, r *rig) {
				t.Helper()
				r.change(t, func(pool *karpenterv1.NodePool) {
					pool.Spec.Disruption.Budgets[0].Nodes = intstr.FromString("1")
				})
			},
		},
		"drifted": {
			func(t *testing.T) *rig {
				t.Helper()
				return clusterOf(t, "100%", map[string]string{"a": "small"}, "1500m")
			},
			func(t *testing.T, r *rig) { t.Helper(); r.drift(t, "a") },
		},
	} {
		for _, on := range []bool{false, true} {
			r := c.before(t)
			r.reconcile(t)
			if _, marked := r.claims(t); marked != 0 {
				t.Fatalf("%s: %d nodes are marked before one is due", name, marked)
			}
			if on {
				r.create(t, pauseSwitch("true"))
			}
			c.due(t, r)
			again := r.reconcile(t).RequeueAfter
			if _, marked := r.claims(t); (marked == 0) != on {
				t.Errorf("%s, switch on %t: %d nodes are marked", name, on, marked)
			}
			if on && again > time.Second {
				t.Errorf("%s: the next round comes after %s, want it at once", name, again)
			}
			if on {
				r.reconcile(t)
				r.pausedGauge(t, 1)
			}
		}
	}
}
