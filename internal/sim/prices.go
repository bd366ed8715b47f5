package sim

import (
	"fmt"
	"strconv"
	"time"
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
	if w.simulated != nil {
		w.simulated.SpotPrices(a[0], factor)
	}
	return nil
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
