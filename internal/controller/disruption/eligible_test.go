package disruption_test

import (
	"maps"
	"testing"
)

// eligibleNow is what a scrape is told of nodes that may go, by reason; nil for nothing.
func (r *rig) eligibleNow(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "karpenter_voluntary_disruption_eligible_nodes" {
			continue
		}
		shown := map[string]float64{}
		for _, m := range family.GetMetric() {
			shown[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
		return shown
	}
	return nil
}

// K-08, K-13: the nodes that may go are counted at each scrape from the current snapshot, but not by a replica that
// has not worked yet.
func TestK13_NodesThatMayGoAreCountedWhenAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("0", "a", "b")...)
	if shown := r.eligibleNow(t); shown != nil {
		t.Errorf("before any round %v are shown", shown)
	}
	r.reconcile(t)
	if shown, want := r.eligibleNow(t),
		map[string]float64{"empty": 2, "drifted": 0, "underutilized": 0}; !maps.Equal(shown, want) {
		t.Errorf("shown are %v, want %v", shown, want)
	}
	r.create(t, podOn("b")) // which only the picture knows, and no round
	r.sync(t)
	if shown, want := r.eligibleNow(t),
		map[string]float64{"empty": 1, "drifted": 0, "underutilized": 0}; !maps.Equal(shown, want) {
		t.Errorf("with a pod: shown are %v, want %v", shown, want)
	}
}
