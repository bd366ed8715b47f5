package world

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file leaves out of snapshots what feature gates switch off (see [Off]).

// unreserved returns the catalogue with all offerings in reservations marked unavailable. They stay in it so that
// nodes in a reservation keep their price and do not drift.
func (o Off) unreserved(c catalog.Catalog) catalog.Catalog {
	reserved := func(offering catalog.Offering) bool { return offering.CapacityType == catalog.Reserved }
	if !o.Reserved || !slices.ContainsFunc(c.Types,
		func(t catalog.Type) bool { return slices.ContainsFunc(t.Offerings, reserved) }) {
		return c
	}
	c.Types = slices.Clone(c.Types)
	for i, t := range c.Types {
		if !slices.ContainsFunc(t.Offerings, reserved) {
			continue
		}
		c.Types[i].Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			if reserved(t.Offerings[j]) { // its remaining count does not matter then
				c.Types[i].Offerings[j].Available, c.Types[i].Offerings[j].Reservation = false, 0
			}
		}
	}
	return c
}

// switchedOff returns the verdict on every overlay while overlays are off.
func (s *Store) switchedOff() map[string]translate.Verdict {
	verdicts := map[string]translate.Verdict{}
	for name := range s.overlays.known {
		verdicts[name] = translate.Verdict{Reason: translate.GateDisabled,
			Message: "the feature gate NodeOverlay is off (--feature-gates)"}
	}
	return verdicts
}
