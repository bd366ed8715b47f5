package claim_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
)

// P-40: the watch of nodes is late, so the cache has no node for a deleted claim. The instance is not ended before the
// node, which the API server has, is drained. This also holds if the node's registration was not written onto the
// claim (simulation).
func TestANodeThatTheCacheDoesNotShowIsDrained(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{true, false} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		if err := r.server.Create(t.Context(), joined()); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		c := r.claim(t)
		if !written {
			c.Status.NodeName = ""
			if err := r.server.Status().Update(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.server.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				if _, nodes := list.(*corev1.NodeList); nodes {
					return nil
				}
				return c.List(ctx, list, options...)
			},
		})
		r.step = claim.New(r.config)
		r.reconcile(t)
		if len(r.cloud.machines) != 1 || r.node(t).DeletionTimestamp == nil {
			t.Fatalf("written %v: %d machines, node %+v: want the machine to stay until its node is drained", written,
				len(r.cloud.machines), r.node(t).ObjectMeta)
		}
	}
}

// B-12, P-40: once the cache has shown the node of a deleted claim, a missing node is gone: the API server is not
// asked. After a restart it is.
func TestANodeThatWasSeenIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for same, want := range map[bool]int{true: 0, false: 1} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		r.create(t, joined())
		r.reconcile(t)
		if err := r.server.Delete(t.Context(), r.claim(t)); err != nil {
			t.Fatal(err)
		}
		asked := 0
		r.config.Live = interceptor.NewClient(r.server,
			interceptor.Funcs{Get: func(ctx context.Context, server client.WithWatch,
				key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				if _, node := object.(*corev1.Node); node {
					asked++
				}
				return server.Get(ctx, key, object, opts...)
			}})
		r.step = claim.New(r.config)
		r.reconcile(t) // deletes the node, which our finalizer holds
		if !same {
			r.step = claim.New(r.config)
		}
		node := r.node(t)
		node.Finalizers = nil
		if err := r.server.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		if asked != want || len(r.cloud.ended) != 1 {
			t.Errorf("the same process %t: asked %d times, want %d; machines ended %v", same, asked, want,
				r.cloud.ended)
		}
	}
}
