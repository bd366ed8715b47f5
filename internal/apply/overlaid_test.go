package apply_test

import (
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// K-47: a claim says that overlays changed the price or the capacity of what it may become.
func TestK47_AClaimSaysThatOverlaysChangedIt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		priced, given string
		want          map[string]string
	}{
		{"other", "other", map[string]string{}},
		{"small", "other", map[string]string{karpenterv1.PriceOverlayAppliedAnnotationKey: "true"}},
		{"other", "small", map[string]string{karpenterv1.CapacityOverlayAppliedAnnotationKey: "true"}},
	} {
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
		r.store.priced, r.store.given = row.priced, row.given
		l := launch(plan.NoSlot, "a")
		l.Types = []string{"small"}
		name := r.apply(t, planOf(l)).Launched[0].Claim
		var claim karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: name}, &claim); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for key, value := range claim.Annotations {
			if strings.HasSuffix(key, "-overlay-applied") {
				got[key] = value
			}
		}
		if !maps.Equal(got, row.want) {
			t.Errorf("price of %s, capacity of %s: annotations %v, want %v", row.priced, row.given, got, row.want)
		}
	}
}
