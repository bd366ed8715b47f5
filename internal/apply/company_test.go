package apply_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// E-29, E-35: each claim says how many claims like it its plan creates. Launches that the limits refuse are not
// counted. Other demands count separately.
func TestClaimsSayHowManyThereAre(t *testing.T) {
	t.Parallel()
	limits := limit.Unlimited()
	limits.HardNodes = 4
	r := newRig(t, limits, interceptor.Funcs{})
	other := launch(3, "other")
	other.Types = []string{"m-4x"}
	r.apply(t, planOf(launch(0, "a"), launch(1, "b"), launch(2, "c"), other, launch(4, "too many")))
	var list karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	groups := map[translate.Company]int{}
	for i := range list.Items {
		groups[translate.CompanyOf(&list.Items[i])]++
	}
	if len(list.Items) != 4 || len(groups) != 2 {
		t.Fatalf("%d claims of companies %+v, want four of two", len(list.Items), groups)
	}
	for company, count := range groups {
		if company.Size != count || company.Group == "" {
			t.Errorf("company %+v has %d claims", company, count)
		}
	}
	alone := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	alone.apply(t, planOf(launch(plan.NoSlot, "a")))
	if err := alone.server.List(t.Context(), &list); err != nil || len(list.Items) != 1 ||
		translate.CompanyOf(&list.Items[0]).Size != 1 {
		t.Errorf("error %v, claims %+v: want one that says it is alone", err, list.Items)
	}
}
