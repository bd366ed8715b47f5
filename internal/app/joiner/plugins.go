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

// Plugins returns the providers that there are, ordered by name, each with its settings as they are by default.
func Plugins() []plugin.Plugin { return []plugin.Plugin{ec2.New(), kwok.New()} }

// named returns the plug-ins with these names, all when there are none. The error names what is unknown, and what is allowed.
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
			return nil, fmt.Errorf("--providers has %q: want one or more of %s, or nothing for those whose node classes the cluster knows",
				name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// able returns the plug-ins that lack no setting (P-52). One that was asked for by name has to have all; others are left out, and
// told is called for each of them.
func able(plugins []plugin.Plugin, byName bool, told func(name, lacks string)) ([]plugin.Plugin, error) {
	var list []plugin.Plugin
	for _, p := range plugins {
		lacks := p.Lacks()
		switch {
		case lacks == "":
			list = append(list, p)
		case byName:
			return nil, fmt.Errorf("--providers has %q, and --%s is not set: the provider can do nothing without it", p.Name(), lacks)
		default:
			told(p.Name(), lacks)
		}
	}
	return list, nil
}

// fleetOf returns the fleet of what was plugged in.
func fleetOf(plugged []plugin.Parts) *fleet.Fleet {
	f := fleet.New()
	for _, parts := range plugged {
		f = f.With(parts.Provider)
	}
	return f
}
