package joiner

import (
	"math"
	"strings"
	"testing"
)

// D-05: the text that Karpenter's chart passes is understood, and sets every gate.
func TestFeatureGatesAreKarpenters(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.FeatureGates =
		"ReservedCapacity=true,SpotToSpotConsolidation=true,NodeRepair=false,NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false"
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	if s := config.Settings(); !s.SpotToSpot || s.MinSaving != 0 {
		t.Errorf("settings %+v: want spot to spot on, and no minimum saving", s)
	}
	if DefaultConfig().Settings().SpotToSpot {
		t.Error("spot to spot must be off unless it is asked for")
	}
}

// U-13: each setting that cannot work is named with its value and what is allowed.
func TestDisruptionSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"--max-nodes is -1: want a number of nodes above 0, or 0 for no limit": func(c *Config) { c.MaxNodes = -1 },
		"--max-node-claims-hard is -1: want a number of NodeClaims above 0, or 0 for no limit": func(c *Config) {
			c.MaxNodeClaimsHard = -1
		},

		`--feature-gates has "NodeRepair": want NAME=true or NAME=false`: func(c *Config) {
			c.FeatureGates = "NodeRepair"
		},
		`--feature-gates has "NodeRepair=maybe": want true or false`: func(c *Config) {
			c.FeatureGates = "NodeRepair=maybe"
		},
		"--consolidation-min-saving: price -0.1: want dollars per hour": func(c *Config) {
			c.ConsolidationMinSaving = -0.1
		},
		"--price-tolerance is 101: want percent from 0 to 100": func(c *Config) { c.PriceTolerance = 101 },
		"--v1beta1 writes CustomResourceDefinitions": func(c *Config) {
			c.ObserveOnly, c.V1beta1 = true, true
		},
		"--node-overhead-price: price -1: want dollars per hour": func(c *Config) { c.NodeOverheadPrice = -1 },
		"--consolidation-min-saving-percent is 100: want 0 to 99": func(c *Config) {
			c.ConsolidationMinSavingPercent = 100
		},
		"--consolidation-min-saving: price NaN": func(c *Config) {
			c.ConsolidationMinSaving = math.NaN()
		},
	} {
		config := DefaultConfig()
		change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %s", err, want)
		}
	}
}

func TestTheMinimumSavingIsInDollarsPerHour(t *testing.T) { // D-04
	t.Parallel()
	config := DefaultConfig()
	config.ConsolidationMinSaving = 0.05
	if got := config.Settings().MinSaving.String(); !strings.HasPrefix(got, "0.05") {
		t.Errorf("a minimum saving of 0.05 became %s", got)
	}
	if got := config.Settings().MinSavingPercent; got != 5 {
		t.Errorf("the minimum saving is %d %% unless something else is asked for; want 5, as docs/disruption.md says",
			got)
	}
}
