package disruption_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
)

// slow is an API server whose answers to some writes wait until the test lets them go.
type slow struct {
	waiting atomic.Int64
	answer  chan struct{}
}

func (s *slow) wait() {
	s.waiting.Add(1)
	<-s.answer
	s.waiting.Add(-1)
}

// atOnce has the controller make as many calls at the same time as there are.
func atOnce(c *disruption.Config) {
	c.Each = func(n int, do func(i int)) {
		var running sync.WaitGroup
		for i := range n {
			running.Go(func() { do(i) })
		}
		running.Wait()
	}
}

// begin makes a round in the background, and returns what waits for its end.
func (r *rig) begin(t *testing.T) (end func()) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
		failed <- err
	}()
	return func() {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// D-01, B-11: the removals of one round go together: none waits for the API server's answer to another.
func TestTheRemovalsOfARoundGoTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fleet("100%", "a", "b", "c", "d", "e")...)
		r.reconcile(t)
		r.sync(t)
		server := &slow{answer: make(chan struct{})}
		r.over(interceptor.NewClient(r.server, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				server.wait()
				return c.Delete(ctx, o, options...)
			},
		}), atOnce)
		end := r.begin(t)
		synctest.Wait()
		if n := server.waiting.Load(); n != 5 {
			t.Errorf("%d deletions are under way, want all 5", n)
		}
		close(server.answer)
		end()
		if all, _ := r.claims(t); all != 0 {
			t.Errorf("%d claims are left", all)
		}
	})
}

// D-10: marks that were left half done are completed together, too.
func TestMarksAreCompletedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fleet("100%", "a", "b", "c")...)
		for _, name := range []string{"a", "b", "c"} {
			r.mark(t, name, "Empty")
		}
		r.sync(t)
		server := &slow{answer: make(chan struct{})}
		r.over(interceptor.NewClient(r.server, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				if _, node := o.(*corev1.Node); node {
					server.wait()
				}
				return c.Patch(ctx, o, p, options...)
			},
		}), atOnce)
		end := r.begin(t)
		synctest.Wait()
		if n := server.waiting.Load(); n != 3 {
			t.Errorf("%d marks are under way, want all 3", n)
		}
		close(server.answer)
		end()
	})
}

// D-10: of two commands that replace a node each, one goes on once its own replacement is there; it does not wait for
// the other's.
func TestANodeGoesOnceItsOwnReplacementIsThere(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "1500m")
	for _, name := range []string{"new-a", "new-b"} {
		node, claim := sized(name, "small")
		if name == "new-b" { // it is registered, and not initialized
			delete(node.Labels, karpenterv1.NodeInitializedLabelKey)
			claim.Status.Conditions = claim.Status.Conditions[:2]
		}
		r.create(t, node)
		r.create(t, claim)
	}
	r.standsFor(t, "new-a", 1, "a")
	r.standsFor(t, "new-b", 1, "b")
	r.drift(t, "a")
	r.drift(t, "b")
	r.choose(t, "Drifted", "a", "b")
	r.reconcile(t)
	for name, goes := range map[string]bool{"a": true, "b": false} {
		var claim karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: name}, &claim); err != nil {
			t.Fatal(err)
		}
		if goes != (claim.DeletionTimestamp != nil) {
			t.Errorf("NodeClaim %s goes: %t, want %t; said %q", name, !goes, goes, r.tape.Said())
		}
	}
}

// D-06: what is noted on a pool is written once, however many of its nodes have gone.
func TestASuccessIsNotedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a", "b", "c", "other")...)
	r.change(t, func(pool *karpenterv1.NodePool) {
		pool.Annotations = map[string]string{karpenterv1.DisruptionBackoffAnnotationKey: r.clock.Now().UTC().Format(
			"2006-01-02T15:04:05Z07:00") + " 10s"}
	})
	for _, name := range []string{"a", "b", "c"} {
		r.drift(t, name)
	}
	r.choose(t, "Drifted", "a", "b", "c")
	writes := 0
	r.over(interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if _, pool := o.(*karpenterv1.NodePool); pool {
				writes++
			}
			return c.Patch(ctx, o, p, options...)
		},
	}))
	r.reconcile(t)
	if all, _ := r.claims(t); all != 1 || writes != 1 {
		t.Errorf("%d claims are left, and the pool was written %d times, want 1 and once", all, writes)
	}
}
