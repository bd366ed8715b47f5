package charts_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/charts"
)

// U-10: if requested, the dashboard is a ConfigMap with the label by which Grafana's sidecar finds it.
func TestU10_TheDashboardIsRenderedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	if documents := controller(t, nil); documents["ConfigMap/joiner-dashboard"] != nil {
		t.Error("it is there without dashboards.enabled")
	}
	set := map[string]any{"dashboards.enabled": true}
	found := read[corev1.ConfigMap](t, controller(t, set)["ConfigMap/joiner-dashboard"])
	if found.Labels["grafana_dashboard"] != "1" || found.Namespace != "hcp-a" {
		t.Errorf("its labels are %v, its namespace is %s", found.Labels, found.Namespace)
	}
	var got, want any
	if err := json.Unmarshal([]byte(found.Data["joiner.json"]), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file(t, charts.Joiner+"/files/dashboard.json"), &want); err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Error("it is another dashboard than that of the file")
	}
}
