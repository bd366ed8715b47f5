package claim_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
)

// P-40: the watch of nodes is late, so the cache has no node for a claim that is deleted: the instance is not ended before
// the node, which the API server has, was drained. Also when its registration was not written onto the claim (simulation).
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
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, nodes := list.(*corev1.NodeList); nodes {
					return nil
				}
				return c.List(ctx, list, options...)
			},
		})
		r.step = claim.New(r.config)
		r.reconcile(t)
		if len(r.cloud.machines) != 1 || r.node(t).DeletionTimestamp == nil {
			t.Fatalf("written %v: %d machines, node %+v: want the machine to stay until its node is drained", written, len(r.cloud.machines), r.node(t).ObjectMeta)
		}
	}
}
