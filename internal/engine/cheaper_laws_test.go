package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// withZonePrices gives the types of a script other spot prices in zone b, from a fifth of those elsewhere to above the
// price on demand.
func withZonePrices(t *rapid.T, script string) string {
	lines := strings.Split(script, "\n")
	for i, line := range lines {
		var spot float64
		if at := strings.Index(line, " spot="); strings.HasPrefix(line, "type ") && at >= 0 && strings.Contains(line, ",b") {
			if _, err := fmt.Sscanf(line[at:], " spot=%f", &spot); err != nil {
				t.Fatal(err)
			}
			lines[i] += fmt.Sprintf(" spot.b=%.4f", spot*rapid.Float64Range(0.2, 4).Draw(t, fmt.Sprint("zone b ", i)))
		}
	}
	return strings.Join(lines, "\n")
}

// offersOf returns what a launch leaves to the provider: of the capacity type that was planned, or all if its types
// have none of that.
func offersOf(pool *cluster.Pool, l plan.Launch) (all catalog.Bits, dearest resources.Money) {
	all = catalog.NewBits(len(pool.Catalog.Offers))
	for _, name := range l.Types {
		pool.Catalog.OfType(name).And(pool.Catalog.Available).OrTo(all)
	}
	pool.Catalog.Narrow(all, l.Requirements)
	for i := range all.All() {
		if o := pool.Catalog.Offers[i]; o.CapacityType == l.Cheapest.CapacityType {
			dearest = max(dearest, o.Price)
		}
	}
	return all, dearest
}

// D-04, P-09. Whatever the provider takes of what a consolidation launches, less is paid than before, and what it may
// take has as many values of each label as the pool insists on.
func TestD04_WhateverTheProviderTakesSaves(t *testing.T) {
	t.Parallel()
	var launched atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script := withZonePrices(t, enginetest.PlainScript(t))
		s := shrunk(t, script)
		p := engine.Consolidate(s, engine.Terms{SpotToSpot: rapid.Bool().Draw(t, "spot")})
		before, after := resources.Money(0), resources.Money(0)
		for _, remove := range p.Removes {
			for _, node := range s.Nodes {
				if node.Claim == remove.Claim {
					before += node.Price
				}
			}
		}
		for _, l := range p.Launches {
			pool := s.Pool(l.Pool)
			all, dearest := offersOf(pool, l)
			after += dearest
			for _, demand := range pool.MinValues {
				if n := len(pool.Catalog.Values(demand.Key, all)); n < demand.Count && !pool.RelaxMinValues &&
					pool.Catalog.Known(demand.Key) {
					t.Fatalf("%s\n----\n%s\n%s asks for %d values of %s, and %d are left", script, p, pool.Name,
						demand.Count, demand.Key, n)
				}
			}
		}
		if launched.Add(int64(len(p.Launches))); len(p.Launches) > 0 && after >= before {
			t.Fatalf("%s\n----\n%s\n%s/h goes, and up to %s/h comes", script, p, before, after)
		}
	})
	if launched.Load() == 0 {
		t.Error("nothing was replaced: the law says nothing")
	}
}
