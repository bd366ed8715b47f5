package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// D-04, U-04. When consolidation finds nothing more, no node says that it is worth replacing and that others go first:
// there are no others.
func TestNothingWaitsForOthersAtTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		terms := engine.Terms{SpotToSpot: rapid.Bool().Draw(t, "spot"),
			MinSavingPercent: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "percent")}
		for round := 0; ; round++ {
			p := engine.Consolidate(s, terms)
			if p.Empty() {
				break
			}
			s = carriedOut(t, s, p, round, true)
		}
		for _, node := range s.Nodes {
			if found := engine.Why(s, terms, node); !node.Drifted && found.Cause == cause.OthersFirst {
				t.Fatalf("%s\n----\n%s: %s", script, node.Name, found.Text)
			}
		}
	})
}
