package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// keepsMix reports whether, once these nodes are gone and these launches are there, the spot share of each pool is
// allowed, or no larger than before (K-55).
func (d *disruption) keepsMix(gone []*cluster.Node, launches []plan.Launch) bool {
	for _, pool := range d.base.Pools {
		if pool.OnDemandPercent == 0 {
			continue
		}
		before := d.future.Mix(pool.Name) // with what was launched for what was chosen (Drawing)
		after := before.Minus(cluster.MixOf(pool.Name, gone...)).Plus(launchedMix(pool.Name, launches))
		if larger := before.All == 0 || after.Spot*before.All > before.Spot*after.All; larger && !pool.Allows(after) {
			return false
		}
	}
	return true
}

// launchedMix counts launches of a pool.
func launchedMix(pool string, launches []plan.Launch) (m cluster.Mix) {
	for _, l := range launches {
		if l.Pool == pool {
			m.All++
			if slices.Contains(l.CapacityTypes, catalog.Spot) {
				m.Spot++
			}
		}
	}
	return m
}
