package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/nearest"
)

// FeatureGates is the setting of the gates.
const FeatureGates = "feature-gates"

// Gate is one of Karpenter's feature gates.
type Gate struct {
	Name string
	// Karpenter is Karpenter's own default. It counts here too for gates that the setting leaves out.
	Karpenter bool
	// Ours is our default if the setting is empty.
	Ours bool
	// Fixed means that the setting has no effect: the gate always is as Ours says.
	Fixed bool
}

// Gates returns Karpenter's feature gates, in its order.
func Gates() []Gate {
	return []Gate{
		{Name: "NodeRepair"}, {Name: "ReservedCapacity", Karpenter: true, Ours: true},
		{Name: "SpotToSpotConsolidation"}, {Name: "NodeOverlay", Ours: true}, {Name: "StaticCapacity", Ours: true},
		{Name: "CapacityBuffer", Ours: true}, {Name: "TerminateFirstDrift", Ours: true},
		{Name: "TerminateFirstRepair", Ours: true, Fixed: true}, {Name: "PodDeletionCostManagement", Fixed: true},
	}
}

// gatesText is Karpenter's default of the setting feature-gates.
func gatesText() string {
	var parts []string
	for _, g := range Gates() {
		parts = append(parts, fmt.Sprintf("%s=%t", g.Name, g.Karpenter))
	}
	return strings.Join(parts, ",")
}

// Notice is a message about a given setting.
type Notice struct {
	// Setting is the name of the flag; for a gate, a dot and its name follow.
	Setting string
	Text    string
	// Idle is set when the setting has no effect.
	Idle bool
}

// partsOf splits the setting into its parts.
func partsOf(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(part string) bool { return strings.TrimSpace(part) == "" })
}

// KarpentersGates returns which gates are on in Karpenter with a setting. A gate whose value cannot be read keeps its
// default.
func KarpentersGates(text string) map[string]bool {
	on := map[string]bool{}
	for _, g := range Gates() {
		on[g.Name] = g.Karpenter
	}
	for _, part := range partsOf(text) {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, known := on[name]; !known {
			continue
		}
		if is, err := strconv.ParseBool(strings.TrimSpace(value)); err == nil {
			on[name] = is
		}
	}
	return on
}

// ParseGates reads a list such as SpotToSpotConsolidation=true,NodeRepair=false, and returns which gates are on here
// (K-04, K-05). If the list is empty, the defaults Ours count. A list may have been written for Karpenter. So gates
// that it leaves out have Karpenter's default, and objects without effect there begin to act only if the list says so.
// The notices name parts without effect, and gates that are off because they were left out. The error names each part
// that cannot be read, and what is allowed.
func ParseGates(text string) (on map[string]bool, notices []Notice, err error) {
	on, parts := map[string]bool{}, partsOf(text)
	for _, g := range Gates() {
		switch {
		case g.Fixed || len(parts) == 0:
			on[g.Name] = g.Ours
		default:
			on[g.Name] = g.Karpenter
		}
	}
	if len(parts) == 0 {
		return on, nil, nil
	}
	var faults []error
	named, said := map[string]bool{}, map[string]bool{}
	for _, part := range parts {
		name, value, found := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if is, err := strconv.ParseBool(value); err == nil {
			if before, twice := said[name]; twice && is != before {
				notices = append(notices, Notice{Setting: FeatureGates + "." + name,
					Text: fmt.Sprintf("--feature-gates has %s as true and as false: the last one counts, %s", name,
						part)})
			}
			said[name] = is
		}
		named[name] = true
		notice, err := setGate(on, name, value, found)
		if err != nil {
			faults = append(faults, fmt.Errorf("--feature-gates has %q: %w", part, err))
		} else if notice.Text != "" {
			notice.Text = fmt.Sprintf("--feature-gates has %q: %s", part, notice.Text)
			notices = append(notices, notice)
		}
	}
	for _, name := range []string{"NodeOverlay", "StaticCapacity", "CapacityBuffer", "TerminateFirstDrift"} {
		if !named[name] {
			notices = append(notices, Notice{Setting: FeatureGates + "." + name,
				Text: fmt.Sprintf("--feature-gates does not name %[1]s, so it is off, "+
					"which is Karpenter's default: add %[1]s=true to switch it on", name)})
		}
	}
	return on, notices, errors.Join(faults...)
}

// setGate reads the value of one gate. The notice says why the value has no effect; it is empty if it has one.
func setGate(on map[string]bool, name, value string, given bool) (Notice, error) {
	known := Gates()
	i := slices.IndexFunc(known, func(g Gate) bool { return g.Name == name })
	own := FeatureGates + "." + name
	is, invalid := strconv.ParseBool(value)
	switch {
	case !given || name == "":
		return Notice{}, errors.New("want NAME=true or NAME=false")
	case value != "" && invalid != nil:
		return Notice{}, errors.New("want true or false after the =")
	case i < 0: // Notice.Setting leaves out the name: it can be anything
		return Notice{FeatureGates, "it has no effect, there is no such gate" + meant(name), true}, nil
	case value == "":
		return Notice{own, "it has no value, so the gate keeps its default", false}, nil
	case !known[i].Fixed:
		on[name] = is
	case known[i].Ours && !is:
		return Notice{own, "it has no effect, Joiner always does this", true}, nil
	case !known[i].Ours && is:
		return Notice{own, "it has no effect, Joiner does not have this", true}, nil
	}
	return Notice{}, nil
}

// meant suggests the gate with the most similar name, or lists all gates.
func meant(name string) string {
	var names []string
	for _, g := range Gates() {
		names = append(names, g.Name)
	}
	if text := nearest.Ask(name, names); text != "" {
		return text
	}
	slices.Sort(names)
	return "; Joiner knows " + strings.Join(names, ", ")
}
