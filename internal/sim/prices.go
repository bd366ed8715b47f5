package sim

import (
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// This file changes spot prices, which differ by zone then.

const verbSpotPrice = "spot-price"

// priceVerbs returns the script lines about prices.
func priceVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbSpotPrice: (*World).spotPrice}
}

// spotPrice multiplies the first spot prices of a zone. In worlds with EC2 it does nothing: prices stay there.
func (w *World) spotPrice(a arguments) error {
	factor, err := strconv.ParseFloat(a[1], 64)
	if err != nil || factor <= 0 || factor > 10 {
		return fmt.Errorf("the factor is %q: want more than 0, up to 10", a[1])
	}
	if a[0] != "zone-a" && a[0] != "zone-b" {
		return fmt.Errorf("%q is no zone of the cloud: want zone-a or zone-b", a[0])
	}
	if w.simulated != nil {
		w.simulated.SpotPrices(a[0], factor)
	}
	return nil
}

// muchDearer is how much more than on-demand a spot node costs that consolidation has to replace, whatever the
// tolerance.
const muchDearer = 1.2

// dearSpot finds a spot node that costs much more than an on-demand one of its type in its zone, where it might be
// replaced by that (D-04). Spot has to be as dear in the other zone. Otherwise the cheapest replacement is a spot
// node, and a spot node is not replaced by a spot node (D-05).
func (w *World) dearSpot() string {
	if w.simulated == nil || w.script.keepsDear() {
		return ""
	}
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		m, pool := w.checks.machines[string(claim.UID)], w.poolOf(claim)
		if m == nil || m.CapacityType != catalog.Spot || isOther(claim) || pool == nil || !w.replaces(pool) ||
			w.protected(claim.Status.NodeName) {
			return
		}
		spot, full := w.simulated.SpotPrice(m.Type, m.Zone), cloud.FullPrice(m.Type)
		if min(w.simulated.SpotPrice(m.Type, "zone-a"), w.simulated.SpotPrice(m.Type, "zone-b")) > muchDearer*full {
			problem = fmt.Sprintf("claim %s has cost $%g an hour as spot for an hour, and on-demand costs $%g",
				claim.Name, spot, full)
		}
	})
	return problem
}

// spotPrices changes prices in some scripts. With a factor of 4, spot is dearer than on-demand.
func (g *generator) spotPrices() {
	d := newDice(g.script.Seed, verbSpotPrice)
	if !d.chance(0.25) {
		return
	}
	for range 1 + d.n(4) {
		at := d.between(time.Second, g.script.Heal-time.Second)
		g.add(at, verbSpotPrice, of(&d, "zone-a", "zone-b"), of(&d, "0.5", "0.9", "1", "1.3", "2", "4"))
	}
}
