package dump

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// The controller's flags that planning depends on, and the feature gate that is one of them.
const (
	flagSaving   = "consolidation-min-saving"
	flagPercent  = "consolidation-min-saving-percent"
	flagGates    = "feature-gates"
	gateSpot     = "SpotToSpotConsolidation"
	percentLimit = 99
)

// With returns terms under which one of the controller's flags has another value; the setting is FLAG=VALUE.
func With(t engine.Terms, setting string) (engine.Terms, error) {
	name, value, given := strings.Cut(strings.TrimPrefix(setting, "--"), "=")
	switch {
	case name == flagSaving && given:
		dollars, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return t, fmt.Errorf("%s is %q; want dollars per hour", name, value)
		}
		if t.MinSaving, err = resources.FromDollars(dollars); err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
		return t, nil
	case name == flagPercent && given:
		percent, err := strconv.Atoi(value)
		if err != nil || percent < 0 || percent > percentLimit {
			return t, fmt.Errorf("%s is %q; want 0 to %d", name, value, percentLimit)
		}
		t.MinSavingPercent = percent
		return t, nil
	case name == flagGates && (value == gateSpot+"=true" || value == gateSpot+"=false"):
		t.SpotToSpot = strings.HasSuffix(value, "true")
		return t, nil
	}
	return t, fmt.Errorf("%q is none of the flags that a plan depends on: want %s=DOLLARS, %s=PERCENT or %s=%s=true|false",
		setting, flagSaving, flagPercent, flagGates, gateSpot)
}
