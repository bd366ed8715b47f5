package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Gates are what --feature-gates switches. It takes Karpenter's text, so that a deployment made for that applies as it is.
type Gates struct {
	// SpotToSpotConsolidation lets spot nodes be replaced by cheaper spot nodes (D-05).
	SpotToSpotConsolidation bool
	// NodeRepair lets nodes that stay unhealthy be replaced (D-13).
	NodeRepair bool
}

// gates lists the names that Karpenter knows, each with what takes its value; nil for one that switches nothing here,
// because what it stands for is always there, as far as it is there at all.
func (g *Gates) gates() map[string]*bool {
	return map[string]*bool{
		"SpotToSpotConsolidation": &g.SpotToSpotConsolidation, "NodeRepair": &g.NodeRepair,
		"ReservedCapacity": nil, "NodeOverlay": nil, "StaticCapacity": nil, "CapacityBuffer": nil,
	}
}

// ParseGates reads a list such as SpotToSpotConsolidation=true,NodeRepair=false; what it does not name is off. The error
// names each part that cannot be read, and what is allowed.
func ParseGates(text string) (Gates, error) {
	var result Gates
	known := result.gates()
	var faults []error
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		gate, found := known[strings.TrimSpace(name)]
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		switch {
		case !found:
			faults = append(faults, fmt.Errorf("--feature-gates has %q: want NAME=true or NAME=false with one of the names %s", part, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		case err != nil:
			faults = append(faults, fmt.Errorf("--feature-gates has %q: want true or false after the =", part))
		case gate != nil:
			*gate = on
		}
	}
	return result, errors.Join(faults...)
}
