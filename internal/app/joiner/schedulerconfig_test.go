package joiner

import (
	"fmt"
	"strings"
	"testing"
)

// P-03: Karpenter's document of the scheduler's constraints means what it means there.
func TestTheSchedulerConfigIsRead(t *testing.T) {
	t.Parallel()
	const document = "podTopologySpread:\n  defaultConstraints:\n  - maxSkew: 3\n" +
		"    topologyKey: kubernetes.io/hostname\n    whenUnsatisfiable: ScheduleAnyway\n"
	list, err := spreadOf(document, "None")
	const spread = `[{"maxSkew":3,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway"}]`
	if want := spread; err != nil || list != want {
		t.Errorf("%s, error %v; want %s", list, err, want)
	}
	for document, want := range map[string]string{
		"podTopologySpread: {defaultConstraints: [{maxSkew: 0, topologyKey: zone, " +
			"whenUnsatisfiable: DoNotSchedule}]}": "[0].maxSkew is 0: want 1 or more",
		"podTopologySpred: {}":                                "podTopologySpred",
		"podTopologySpread: {}\n---\npodTopologySpread: {}\n": "it has 2 YAML documents",
		"System":  "want a document with podTopologySpread.defaultConstraints, got System",
		"a: b: c": "want a document with podTopologySpread.defaultConstraints",
	} {
		if _, err := spreadOf(document, "None"); err == nil || !strings.Contains(fmt.Sprint(err), want) ||
			strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: error %v; want one line that says %s", document, err, want)
		}
	}
	if _, err := spreadOf("podTopologySpread: {}", "System"); err == nil {
		t.Error("both settings are accepted")
	}
}
