package joiner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/app/joiner/settings"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
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

// Notice is something that the log is told of a setting at the start.
type Notice struct {
	// Setting is the name of its flag, with that of a gate after a dot.
	Setting string
	Text    string
	// Idle is set when it was given and has no effect.
	Idle bool
}

// gate is one that Karpenter knows, and what it does here.
type gate struct {
	settings.Gate
	value *bool // nil when it switches nothing here
}

// gates lists the gates that Karpenter knows.
func (g *Gates) gates() []gate {
	values := map[string]*bool{
		"SpotToSpotConsolidation": &g.SpotToSpotConsolidation, "NodeRepair": &g.NodeRepair,
		"ReservedCapacity": &g.ReservedCapacity, "NodeOverlay": &g.NodeOverlay, "StaticCapacity": &g.StaticCapacity,
	}
	var list []gate
	for _, known := range settings.Gates() {
		list = append(list, gate{known, values[known.Name]})
	}
	return list
}

// featureGates is the flag of the gates.
const featureGates = "feature-gates"

// ParseGates reads a list such as SpotToSpotConsolidation=true,NodeRepair=false (K-04, K-05). Without any text overlays,
// static pools and reservations are on, the rest is off. A text is one that somebody wrote for Karpenter, perhaps: what it
// leaves out has Karpenter's default, so that objects which had no effect there begin to act only when that is asked
// for. The notices name what was given and has no effect, and what is off because it was left out. The error names
// each part that cannot be read, and what is allowed.
func ParseGates(text string) (Gates, []Notice, error) {
	var result Gates
	known := result.gates()
	parts := slices.DeleteFunc(strings.Split(text, ","), func(part string) bool { return strings.TrimSpace(part) == "" })
	for _, g := range known {
		if g.value != nil {
			*g.value = g.Ours && len(parts) == 0 || g.Karpenter
		}
	}
	if len(parts) == 0 {
		return result, nil, nil
	}
	var faults []error
	var notices []Notice
	named := map[string]bool{}
	for _, part := range parts {
		name, value, found := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		named[name] = true
		notice, err := setGate(known, name, value, found)
		if err != nil {
			faults = append(faults, fmt.Errorf("--feature-gates has %q: %w", part, err))
		} else if notice.Text != "" {
			notice.Text = fmt.Sprintf("--feature-gates has %q: %s", part, notice.Text)
			notices = append(notices, notice)
		}
	}
	for _, name := range []string{"NodeOverlay", "StaticCapacity"} {
		if !named[name] {
			notices = append(notices, Notice{Setting: featureGates + "." + name,
				Text: fmt.Sprintf("--feature-gates does not name %[1]s, so it is off, "+
					"which is Karpenter's default: add %[1]s=true to switch it on", name)})
		}
	}
	return result, notices, errors.Join(faults...)
}

// setGate reads the value of one gate. The notice says why it has no effect, nothing when it has one.
func setGate(known []gate, name, value string, given bool) (Notice, error) {
	i := slices.IndexFunc(known, func(g gate) bool { return g.Name == name })
	own := featureGates + "." + name
	on, invalid := strconv.ParseBool(value)
	switch {
	case !given || name == "":
		return Notice{}, errors.New("want NAME=true or NAME=false")
	case value != "" && invalid != nil:
		return Notice{}, errors.New("want true or false after the =")
	case i < 0: // the setting does not say the name: anything may stand there
		return Notice{featureGates, "it has no effect, there is no such gate" + meant(known, name), true}, nil
	case value == "":
		return Notice{own, "it has no value, so the gate keeps its default", false}, nil
	case known[i].value != nil:
		*known[i].value = on
	case known[i].Ours && !on:
		return Notice{own, "it has no effect, Joiner always does this", true}, nil
	case !known[i].Ours && on:
		return Notice{own, "it has no effect, Joiner does not have this", true}, nil
	}
	return Notice{}, nil
}

// meant asks about the gate whose name is most like one that there is none of, or lists them all.
func meant(known []gate, name string) string {
	var names []string
	for _, g := range known {
		names = append(names, g.Name)
	}
	if text := nearest.Ask(name, names); text != "" {
		return text
	}
	slices.Sort(names)
	return "; Joiner knows " + strings.Join(names, ", ")
}

// off says which parts of the picture are left out.
func (g Gates) off() world.Off {
	return world.Off{Overlays: !g.NodeOverlay, Static: !g.StaticCapacity, Reserved: !g.ReservedCapacity}
}

// Notices names the settings that were given and have no effect, or another one than may be thought.
func (c Config) Notices() []Notice {
	_, notices, _ := ParseGates(c.FeatureGates)
	if !c.IgnoreDRARequests {
		notices = append(notices, Notice{"ignore-dra-requests", "--ignore-dra-requests (IGNORE_DRA_REQUESTS) is false: it has no " +
			"effect, no node is launched for pods that ask for devices by ResourceClaims", true})
	}
	if c.BatchIdleDuration > c.BatchMaxDuration {
		notices = append(notices, Notice{"batch-idle-duration", fmt.Sprintf("--batch-idle-duration is %s and --batch-max-duration "+
			"%s: a batch ends after %[2]s, however many pods still come", c.BatchIdleDuration, c.BatchMaxDuration), false})
	}
	return notices
}
