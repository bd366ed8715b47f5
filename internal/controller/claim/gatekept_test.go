package claim_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
)

// L-14: the gate lists all claims of the cluster for each pool with a hard limit, and keeps none of these lists.
func TestTheGateKeepsNoListOfClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	var listed []weak.Pointer[karpenterv1.NodeClaim]
	r.config.Live = interceptor.NewClient(r.server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if claims, are := list.(*karpenterv1.NodeClaimList); are && len(claims.Items) > 0 {
				listed = append(listed, weak.Make(&claims.Items[0]))
			}
			return err
		},
	})
	r.step = claim.New(r.config)
	if r.reconcile(t); r.cloud.launches != 1 || len(listed) != 1 {
		t.Fatalf("%d launches after %d lists, want one each", r.cloud.launches, len(listed))
	}
	runtime.GC()
	if listed[0].Value() != nil {
		t.Error("the list is still in memory after the launch")
	}
	runtime.KeepAlive(r)
}
