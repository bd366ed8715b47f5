package joiner

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/world"
)

// D-12, P-11: false means off. Without any text Joiner's defaults hold; with one, what it leaves out has Karpenter's.
func TestGatesSwitchOff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Gates{
		"": {ReservedCapacity: true, NodeOverlay: true, StaticCapacity: true, CapacityBuffer: true,
			TerminateFirstDrift: true},
		" , ": {ReservedCapacity: true, NodeOverlay: true, StaticCapacity: true, CapacityBuffer: true,
			TerminateFirstDrift: true},
		"TerminateFirstDrift=true":  {ReservedCapacity: true, TerminateFirstDrift: true},
		"TerminateFirstDrift=false": {ReservedCapacity: true},
		"CapacityBuffer=true":       {ReservedCapacity: true, CapacityBuffer: true},
		"NodeRepair=true":           {ReservedCapacity: true, NodeRepair: true},
		"StaticCapacity=":           {ReservedCapacity: true},
		"ReservedCapacity=true":     {ReservedCapacity: true},
		"NodeOverlay=false,StaticCapacity=false,ReservedCapacity=false": {},
		"NodeOverlay = true, StaticCapacity = true,ReservedCapacity=false": {
			NodeOverlay: true, StaticCapacity: true,
		},
		"FromTomorrow=true,SpotToSpotConsolidation=true,CapacityBuffer=false ": {ReservedCapacity: true,
			SpotToSpotConsolidation: true},
	} {
		if got, _, err := ParseGates(text); err != nil || got != want {
			t.Errorf("%q: %+v, error %v; want %+v", text, got, err, want)
		}
	}
	if off := (Gates{ReservedCapacity: true}).off(); off != (world.Off{Overlays: true, Static: true, Buffers: true,
		First: true}) {
		t.Errorf("off %+v", off)
	}
	config := DefaultConfig()
	if config.Settings().StaticOff {
		t.Error("static pools are off by default")
	}
	if config.FeatureGates = "StaticCapacity=false"; !config.Settings().StaticOff {
		t.Error("static pools are not off")
	}
}

// P-34, K-04, K-05: what has no effect is told, once for each part, and nothing else is.
func TestGatesWithoutEffectAreTold(t *testing.T) {
	t.Parallel()
	const all = "NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true,TerminateFirstDrift=true,"
	for text, want := range map[string][]string{
		"": nil, all: nil,
		"NodeOverlay=true,StaticCapacity=true," +
			"CapacityBuffer=false,TerminateFirstRepair=true,TerminateFirstDrift=true,PodDeletionCostManagement=false": nil,
		all + "PodDeletionCostManagement=true": {
			`"PodDeletionCostManagement=true": it has no effect, Joiner does not have this`,
		},
		all + "TerminateFirstRepair=false": {
			`"TerminateFirstRepair=false": it has no effect, Joiner always does this`,
		},
		all + "FromTomorrow=false": {`"FromTomorrow=false": it has no effect, ` +
			`there is no such gate; Joiner knows CapacityBuffer, NodeOverlay`},
		all + "NodeRepairs=true": {
			`"NodeRepairs=true": it has no effect, there is no such gate; do you mean NodeRepair?`,
		},
		all + "FromTomorrow=": {`"FromTomorrow=": it has no effect, there is no such gate`},
		all + "NodeRepair=true,NodeRepair=false": {
			"has NodeRepair as true and as false: the last one counts, NodeRepair=false",
		},
		all + "NodeRepair=true,NodeRepair=true": nil,
		all + "NodeRepair=":                     {`"NodeRepair=": it has no value, so the gate keeps its default`},
		"ReservedCapacity=true": {"does not name NodeOverlay, so it is off",
			"does not name StaticCapacity, so it is off",
			"does not name CapacityBuffer, so it is off", "does not name TerminateFirstDrift, so it is off"},
	} {
		config := Config{FeatureGates: text, IgnoreDRARequests: true}
		got := config.Notices()
		if len(got) != len(want) {
			t.Errorf("%q: %v; want %q", text, got, want)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i].Text, want[i]) {
				t.Errorf("%q: %v; want %q", text, got[i], want[i])
			}
		}
	}
}

// K-42. Who sets that devices are looked at is told what comes of it: no node is launched for them.
func TestK42_TheSettingIsSaidToLaunchNothing(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if notices := c.Notices(); len(notices) > 0 {
		t.Errorf("%v without any setting", notices)
	}
	c.IgnoreDRARequests = false
	if notices := c.Notices(); len(notices) != 1 || notices[0].Idle ||
		!strings.Contains(notices[0].Text, "IGNORE_DRA_REQUESTS") ||
		!strings.Contains(notices[0].Text, "no node is launched") {
		t.Errorf("notices %v; want one that names IGNORE_DRA_REQUESTS", notices)
	}
}
