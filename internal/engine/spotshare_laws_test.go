package engine_test

import (
	"regexp"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// withSpotRatios bounds the share of spot of all pools of a script.
func withSpotRatios(t *rapid.T, script string) string {
	ratio := rapid.SampledFrom([]string{"0", "30", "50", "70", "95"}).Draw(t, "ratio")
	return regexp.MustCompile(`(?m)^pool .*`).ReplaceAllString(script, "$0 spot-ratio="+ratio)
}

// checkMix fails when the spot share of a pool is larger than it allows.
func checkMix(t *rapid.T, s *cluster.Snapshot, script string, after any) {
	t.Helper()
	for _, pool := range s.Pools {
		if m := s.Mix(pool.Name); !pool.Allows(m) {
			t.Fatalf("%s\n----\n%d of %d nodes of pool %s are spot, and %d percent are not to be, after\n%s", script,
				m.Spot, m.All, pool.Name, pool.OnDemandPercent, after)
		}
	}
}

// K-55. Whatever is launched, and whatever consolidation replaces, the spot share of a pool is no larger than it
// allows: of nodes that may be either.
func TestK55_NoLargerShareIsSpotThanThePoolAllows(t *testing.T) {
	t.Parallel()
	var spot, moves atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script := withSpotRatios(t, enginetest.PlainScript(t))
		before := parse(t, script)
		p := engine.Provision(before)
		after := enginetest.Applied(before, p, rapid.IntRange(0, 2).Draw(t, "choice"))
		checkMix(t, after, script, p)
		for _, pool := range after.Pools {
			spot.Add(int64(after.Mix(pool.Name).Spot))
		}
		s := shrunk(t, script)
		for _, pool := range s.Pools {
			if !pool.Allows(s.Mix(pool.Name)) { // what users stop is not for consolidation to mend
				return
			}
		}
		terms := engine.Terms{SpotToSpot: rapid.Bool().Draw(t, "spot")}
		for round := range 3 {
			p := engine.Consolidate(s, terms)
			moves.Add(int64(len(p.Removes)))
			s = carriedOut(t, s, p, round, false)
			checkMix(t, s, script, p)
		}
	})
	if spot.Load() == 0 || moves.Load() == 0 {
		t.Errorf("%d spot nodes and %d removals: the law says nothing", spot.Load(), moves.Load())
	}
}
