package cluster

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
)

// Mix counts nodes of a pool (K-55).
type Mix struct {
	Spot int // that are spot, or may become spot
	All  int
}

// Plus returns the sum.
func (m Mix) Plus(other Mix) Mix { return Mix{m.Spot + other.Spot, m.All + other.All} }

// Minus returns the difference.
func (m Mix) Minus(other Mix) Mix { return Mix{m.Spot - other.Spot, m.All - other.All} }

// Allows reports whether the share of spot among such nodes is within what the pool allows.
func (p *Pool) Allows(m Mix) bool {
	return p.OnDemandPercent == 0 || 100*m.Spot <= (100-p.OnDemandPercent)*m.All
}

// MixOf counts those of the nodes that have a claim of the pool and are not being removed.
func MixOf(pool string, nodes ...*Node) (m Mix) {
	for _, node := range nodes {
		if node.Pool == pool && node.Claim != "" && !node.Deleting {
			m.All++
			if slices.Contains(node.mayHave(catalog.LabelCapacityType), catalog.Spot) {
				m.Spot++
			}
		}
	}
	return m
}

// Mix counts the nodes of a pool, with Closed and Drawing nodes, and without Undrawn ones.
func (s *Snapshot) Mix(pool string) Mix {
	return MixOf(pool, s.Nodes...).Plus(MixOf(pool, s.Closed...)).Plus(MixOf(pool, s.Drawing...)).Minus(
		MixOf(pool, s.Undrawn...))
}
