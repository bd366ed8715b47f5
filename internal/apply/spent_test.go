package apply_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// K-55, P-11: while a plan launches on what is paid for anyway, and until others have seen that it did, none of them does: their
// plans count on what that had left before.
func TestNoTwoPlansSpendTheSame(t *testing.T) {
	on := func(pod, commitment string) plan.Launch {
		l := launch(plan.NoSlot, pod)
		l.Cheapest.Commitment.Name = commitment
		return l
	}
	reserved := launch(plan.NoSlot, "r")
	reserved.Cheapest = plan.Choice{Type: "m-2x", Zone: "a", CapacityType: catalog.Reserved}
	var r *rig
	var meanwhile func()
	r = newRig(t, limit.Unlimited(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if do := meanwhile; do != nil {
				meanwhile = nil
				do()
			}
			return c.Create(ctx, o, opts...)
		},
	})
	wants := func(when string, out []int, launches ...plan.Launch) {
		t.Helper()
		p := planOf(launches...)
		p.BasedOn = r.store.snapshot.Version - uint64(out[2])
		got := r.apply(t, p)
		if len(got.Launched) != out[0] || len(got.Refused) != out[1] {
			t.Errorf("%s: %d launched, %d refused %v; want %v", when, len(got.Launched), len(got.Refused), got.Refused, out[:2])
		}
		for _, refused := range got.Refused {
			if want := "another plan launches on commitment c meanwhile"; refused.Why != want {
				t.Errorf("%s: refused with %q, want %q", when, refused.Why, want)
			}
		}
	}
	meanwhile = func() {
		wants("while another plan does", []int{3, 1, 0}, on("d", "c"), on("e", "other"), launch(plan.NoSlot, "f"), reserved)
	}
	wants("a plan alone, twice on one", []int{2, 0, 0}, on("a", "c"), on("b", "c"))
	r.store.snapshot.Version += 3
	wants("after that, seen", []int{1, 0, 0}, on("g", "c"))
	r.store.snapshot.Version += 3
	wants("from a picture before that", []int{0, 1, 6}, on("h", "c"))
}
