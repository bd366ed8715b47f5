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

// K-55, P-11: while a plan launches on a commitment or reservation, no other plan does, until it could see those
// launches. The others' plans count on what was left before.
func TestNoTwoPlansSpendTheSame(t *testing.T) {
	t.Parallel()
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
	wants := func(when string, basedOn uint64, launched, refused int, launches ...plan.Launch) {
		t.Helper()
		p := planOf(launches...)
		p.BasedOn = basedOn
		got := r.apply(t, p)
		if len(got.Launched) != launched || len(got.Refused) != refused {
			t.Errorf("%s: launched %d, refused %v; want %d and %d", when, len(got.Launched), got.Refused, launched,
				refused)
		}
		for _, refused := range got.Refused {
			if want := "another plan launches on commitment c meanwhile"; refused.Why != want {
				t.Errorf("%s: refused with %q, want %q", when, refused.Why, want)
			}
		}
	}
	meanwhile = func() {
		wants("while another plan does", 7, 3, 1, on("d", "c"), on("e", "other"), launch(plan.NoSlot, "f"), reserved)
	}
	wants("a plan alone, twice on one", 7, 2, 0, on("a", "c"), on("b", "c"))
	r.store.snapshot.Version = 10
	wants("after that, seen", 10, 1, 0, on("g", "c"))
	wants("from a picture before that", 9, 0, 1, on("h", "c"))
}
