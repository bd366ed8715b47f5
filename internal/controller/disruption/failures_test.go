package disruption_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// begun returns a rig with a marked empty node; with half, without its taint yet.
func begun(t *testing.T, half bool) *rig {
	t.Helper()
	objects := fleet("100%", "a")
	if half {
		claim := objects[2].(*karpenterv1.NodeClaim)
		condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason,
			string(plan.Empty), ""), controllertest.Start())
	}
	r := newRig(t, objects...)
	if !half {
		r.reconcile(t)
		r.sync(t)
	}
	return r
}

// replacing returns a rig with a node for which something cheaper was launched; with joined, it has joined.
func replacing(t *testing.T, joined bool) *rig {
	t.Helper()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.turn(t)
	replacements := r.replacements(t)
	if len(replacements) != 1 {
		t.Fatalf("replacements %v, the test wants one", replacements)
	}
	if joined {
		r.join(t, replacements[0], "small")
		r.change(t, func(pool *karpenterv1.NodePool) {
			pool.Annotations = map[string]string{
				karpenterv1.DisruptionBackoffAnnotationKey: "2026-01-02T03:04:05Z 10s",
			}
		})
	}
	r.clock.Advance(2 * time.Second)
	r.sync(t)
	return r
}

// lost returns a rig with a node whose replacement is gone; with abandoned, the other of two replacements is released.
func lost(t *testing.T, abandoned bool) *rig {
	t.Helper()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.create(t, podAsking("second", "a", "1500m"))
	r.turn(t)
	r.lose(t, r.replacements(t)[0])
	if abandoned {
		r.turn(t)
	}
	r.clock.Advance(2 * time.Second)
	r.sync(t)
	return r
}

func (r *rig) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := r.server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// scenes returns rounds by what each has to do.
func scenes() map[string]func(*testing.T) *rig {
	return map[string]func(*testing.T) *rig{
		"marks an empty node":   func(t *testing.T) *rig { t.Helper(); return newRig(t, fleet("100%", "a")...) },
		"completes a mark":      func(t *testing.T) *rig { t.Helper(); return begun(t, true) },
		"removes an empty node": func(t *testing.T) *rig { t.Helper(); return begun(t, false) },
		"takes a mark back": func(t *testing.T) *rig {
			t.Helper()
			r := begun(t, false)
			r.create(t, podOn("a"))
			r.sync(t)
			return r
		},
		"takes a taint off": func(t *testing.T) *rig {
			t.Helper()
			objects := fleet("0", "a")
			objects[1].(*corev1.Node).Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey,
				Effect: corev1.TaintEffectNoSchedule}}
			return newRig(t, objects...)
		},
		"begins a command": func(t *testing.T) *rig {
			t.Helper()
			return clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
		},
		"completes a command": func(t *testing.T) *rig {
			t.Helper()
			r := replacing(t, false)
			r.untaint(t,
				"a")
			r.sync(t)
			return r
		},
		"carries a command out": func(t *testing.T) *rig { t.Helper(); return replacing(t, true) },
		"takes a command back":  func(t *testing.T) *rig { t.Helper(); return lost(t, false) },
		"lets a replacement go": func(t *testing.T) *rig { t.Helper(); return lost(t, true) },
		"keeps a replacement": func(t *testing.T) *rig {
			t.Helper()
			r := lost(t, true)
			name := r.replacements(t)[0]
			r.join(t, name, "small")
			r.create(t, podAsking("third", name, "100m"))
			r.sync(t)
			return r
		},
		"trims": func(t *testing.T) *rig { t.Helper(); return newRig(t, limitedFleet("1", "a", "b")...) },
		"removes what is trimmed": func(t *testing.T) *rig {
			t.Helper()
			r := newRig(t, limitedFleet("1", "a", "b")...)
			r.reconcile(t)
			r.sync(t)
			return r
		},
		"completes a trimming": func(t *testing.T) *rig {
			t.Helper()
			r := newRig(t, limitedFleet("1", "a", "b")...)
			r.mark(t, "a", "NodeLimitExceeded")
			r.sync(t)
			return r
		},
		"takes a trimming back": func(t *testing.T) *rig {
			t.Helper()
			r := newRig(t, limitedFleet("1", "a", "b")...)
			r.reconcile(t)
			r.setLimit(t, "2")
			return r
		},
		"notes an excess": func(t *testing.T) *rig { t.Helper(); return newRig(t, softFleet("1", "1", "a", "b")...) },
		"forgets an excess": func(t *testing.T) *rig {
			t.Helper()
			objects := softFleet("2", "1", "a", "b")
			objects[0].SetAnnotations(map[string]string{karpenterv1.AboveLimitAnnotationKey: "Inherited"})
			return newRig(t, objects...)
		},
		"is paused": func(t *testing.T) *rig {
			t.Helper()
			r := begun(t, false)
			r.create(t, pauseSwitch("true"))
			return r
		},
	}
}

// D-10, L-42: no failure of any step of a removal is swallowed: the round is repeated.
func TestNoFailureOfARoundIsSwallowed(t *testing.T) {
	t.Parallel()
	for name, scene := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
				r := scene(t)
				r.over(f.Wrap(r.server))
				return func() error {
					_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
					return err
				}
			}, "create v1.NodeClaim") // which the applier asks for once more
		})
	}
}

// untaint takes all taints off a node.
func (r *rig) untaint(t *testing.T, name string) {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	n.Spec.Taints = nil
	if err := r.server.Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
}

// D-01: an admission policy never lets an empty node be tainted. Each round fails and says so. But after a minute of
// that the rounds do the rest of their work: the drifted node is replaced.
func TestANodeThatCannotBeTaintedStopsNothingElse(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "large", "b": "large"}, "1500m")
	if err := r.server.Delete(t.Context(), podAsking("on-a", "a", "1500m")); err != nil {
		t.Fatal(err)
	}
	r.mark(t, "a", string(plan.Empty))
	r.drift(t, "b")
	r.reborn(t)
	refused := apierrors.NewForbidden(corev1.Resource("nodes"), "a", errors.New("this node has to stay as it is"))
	r.over(interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if _, node := o.(*corev1.Node); node && o.GetName() == "a" {
				return refused
			}
			return c.Patch(ctx, o, p, options...)
		},
	}))
	for at := time.Duration(0); at <= 70*time.Second; at += 10 * time.Second {
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, refused) {
			t.Fatalf("after %s: %v, want %v", at, err, refused)
		}
		if began := r.tainted(t, "b"); began != (at > time.Minute) {
			t.Fatalf("after %s: the drifted node is tainted: %v", at, began)
		}
		r.clock.Advance(10 * time.Second)
		r.sync(t)
	}
}
