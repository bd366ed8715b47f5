package joiner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Gates are what --feature-gates switches. It takes Karpenter's text, so that a deployment made for that applies as it
// is.
type Gates struct {
	// SpotToSpotConsolidation lets spot nodes be replaced by cheaper spot nodes (D-05).
	SpotToSpotConsolidation bool
	// NodeRepair lets nodes that stay unhealthy be replaced (D-13).
	NodeRepair bool
	// ReservedCapacity lets nodes be launched in reservations (P-11), NodeOverlay lets NodeOverlays take effect (P-11),
	// and StaticCapacity lets spec.replicas be acted on (D-12).
	ReservedCapacity, NodeOverlay, StaticCapacity bool
}

// gate is one that Karpenter knows.
type gate struct {
	value *bool // nil when it switches nothing here
	// karpenter is Karpenter's own default. It holds for a gate that the text leaves out. Without any text Joiner's holds.
	karpenter bool
	// always is set for what Joiner always does, so that false has no effect. Of others that switch nothing true has none.
	always bool
}

// gates lists the names that Karpenter knows.
func (g *Gates) gates() map[string]gate {
	return map[string]gate{
		"SpotToSpotConsolidation": {value: &g.SpotToSpotConsolidation}, "NodeRepair": {value: &g.NodeRepair},
		"ReservedCapacity": {value: &g.ReservedCapacity, karpenter: true},
		"NodeOverlay":      {value: &g.NodeOverlay}, "StaticCapacity": {value: &g.StaticCapacity},
		"CapacityBuffer": {}, "TerminateFirstRepair": {}, "PodDeletionCostManagement": {},
		"TerminateFirstDrift": {always: true},
	}
}

// ParseGates reads a list such as SpotToSpotConsolidation=true,NodeRepair=false. Without any text overlays, static
// pools and reservations are on, the rest is off. A text is one that somebody wrote for Karpenter, perhaps: what it
// leaves out has Karpenter's default, so that objects which had no effect there begin to act only when that is asked
// for. The notices name what was given and has no effect, and what is off because it was left out. The error names
// each part that cannot be read, and what is allowed.
func ParseGates(text string) (Gates, []string, error) {
	result := Gates{ReservedCapacity: true, NodeOverlay: true, StaticCapacity: true}
	known := result.gates()
	parts := slices.DeleteFunc(strings.Split(text, ","), func(part string) bool { return strings.TrimSpace(part) == "" })
	if len(parts) == 0 {
		return result, nil, nil
	}
	for _, g := range known {
		if g.value != nil {
			*g.value = g.karpenter
		}
	}
	var faults []error
	var notices []string
	named := map[string]bool{}
	for _, part := range parts {
		name, value, found := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		named[name] = true
		notice, err := setGate(known, name, value, found)
		if err != nil {
			faults = append(faults, fmt.Errorf("--feature-gates has %q: %w", part, err))
		} else if notice != "" {
			notices = append(notices, fmt.Sprintf("--feature-gates has %q: %s", part, notice))
		}
	}
	for _, name := range []string{"NodeOverlay", "StaticCapacity"} {
		if !named[name] {
			notices = append(notices, fmt.Sprintf("--feature-gates does not name %[1]s, so it is off, "+
				"which is Karpenter's default: add %[1]s=true to switch it on", name))
		}
	}
	return result, notices, errors.Join(faults...)
}

// setGate reads the value of one gate. The notice says why it has no effect, "" when it has one.
func setGate(known map[string]gate, name, value string, given bool) (notice string, err error) {
	g, found := known[name]
	on, invalid := strconv.ParseBool(value)
	switch {
	case !given || name == "":
		return "", errors.New("want NAME=true or NAME=false")
	case value == "":
		return "it has no value, so the gate keeps its default", nil
	case invalid != nil:
		return "", errors.New("want true or false after the =")
	case !found:
		return "it has no effect, Joiner knows " + strings.Join(slices.Sorted(maps.Keys(known)), ", "), nil
	case g.value != nil:
		*g.value = on
	case g.always && !on:
		return "it has no effect, Joiner always does this", nil
	case !g.always && on:
		return "it has no effect, Joiner does not have this", nil
	}
	return "", nil
}

// off says which parts of the picture are left out.
func (g Gates) off() world.Off {
	return world.Off{Overlays: !g.NodeOverlay, Static: !g.StaticCapacity, Reserved: !g.ReservedCapacity}
}

// Notices names the settings that were given and have no effect, or another one than may be thought.
func (c Config) Notices() []string {
	_, notices, _ := ParseGates(c.FeatureGates)
	if !c.IgnoreDRARequests {
		notices = append(notices, "--ignore-dra-requests (IGNORE_DRA_REQUESTS) is false: it has no effect, "+
			"no node is launched for pods that ask for devices by ResourceClaims")
	}
	return notices
}
