package apply_test

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// B-16: a claim is promised to its pods before the next claim is created: its node may open first, and must keep their
// places.
func TestAClaimIsPromisedAsSoonAsItIsCreated(t *testing.T) {
	t.Parallel()
	var r *rig
	var promised []int // how many were, at each create
	r = newRig(t, limit.Unlimited(),
		interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
			opts ...client.CreateOption) error {
			promised = append(promised, len(r.store.promised))
			return c.Create(ctx, o, opts...)
		}})
	r.apply(t, planOf(launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b")))
	if !slices.Equal(promised, []int{0, 1}) || len(r.store.promised) != 2 {
		t.Fatalf("%v claims were promised at each create, %v at the end; want none, one, and two", promised,
			r.store.promised)
	}
}
