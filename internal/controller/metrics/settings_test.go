package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// K-03: each setting without effect, and each that could not be read, is a series of its own.
func TestK03_SettingsAreShown(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics.NewSettings(registry).Set([]string{"cpu-requests", "log-output-paths"}, []string{"batch-idle-duration"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, family := range families {
		got[family.GetName()] = len(family.GetMetric())
	}
	if got["joiner_settings_ignored"] != 2 || got["joiner_settings_invalid"] != 1 || len(got) != 2 {
		t.Errorf("series %v; want 2 of joiner_settings_ignored and 1 of joiner_settings_invalid", got)
	}
}
