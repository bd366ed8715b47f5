package provisioning_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// U-10: the time and number of pods of the last plan are exported, even while that plan still holds.
func TestU10_TheLastPlanIsShown(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	round := func() {
		t.Helper()
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	round()
	begun := r.clock.Now()
	if at := controllertest.Count(t, r.registry, "joiner_last_plan_timestamp_seconds"); at != float64(begun.Unix()) {
		t.Errorf("planned at %v, want %d", at, begun.Unix())
	}
	r.clock.Advance(time.Minute)
	round() // nothing is new
	if at := controllertest.Count(t, r.registry, "joiner_last_plan_timestamp_seconds"); at != float64(begun.Unix()+
		60) {
		t.Errorf("looked at %v, want a minute after %d", at, begun.Unix())
	}
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if name := family.GetName(); name == "joiner_plan_pods" || name == "joiner_plan_duration_seconds" {
			if h := family.Metric[0].GetHistogram(); h.GetSampleCount() != 1 ||
				name == "joiner_plan_pods" && h.GetSampleSum() != 1 {
				t.Errorf("%s has %d plans of %v together, want one", name, h.GetSampleCount(), h.GetSampleSum())
			}
		}
	}
}
