package joiner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/plugin"
	ec2 "github.com/joiner-autoscaler/joiner/internal/provider/ec2/plug"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	kwok "github.com/joiner-autoscaler/joiner/internal/provider/kwok/plug"
)

// Plugins returns all providers with their default settings, ordered by name.
func Plugins() []plugin.Plugin { return []plugin.Plugin{ec2.New(), kwok.New()} }

// named returns the plug-ins with these names, or all if there are no names. The error names the unknown and the
// allowed names.
func named(all []plugin.Plugin, names []string) ([]plugin.Plugin, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []plugin.Plugin
	var known []string
	for _, p := range all {
		known = append(known, p.Name())
		if slices.Contains(names, p.Name()) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil,
				fmt.Errorf(
					"--providers has %q: want one or more of %s, or nothing for those whose node classes the cluster knows",
					name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// able returns the plug-ins that lack no required setting (P-52). With byName, a plug-in that lacks one is an error.
// Otherwise it is left out, and told is called for it.
func able(plugins []plugin.Plugin, byName bool, told func(name, lacks string)) ([]plugin.Plugin, error) {
	var list []plugin.Plugin
	for _, p := range plugins {
		lacks := p.Lacks()
		switch {
		case lacks == "":
			list = append(list, p)
		case byName:
			return nil, fmt.Errorf("--providers has %q, and --%s is not set: the provider can do nothing without it",
				p.Name(), lacks)
		default:
			told(p.Name(), lacks)
		}
	}
	return list, nil
}

// fleetOf returns the fleet of the providers in plugged.
func fleetOf(plugged []plugin.Parts) *fleet.Fleet {
	f := fleet.New()
	for _, parts := range plugged {
		f = f.With(parts.Provider)
	}
	return f
}
