package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// U-24. The nodes that are kept are kept for what Why says of each; none of them goes, none that is drifted and stays
// is left out, and what goes does so for what Why says.
func TestKeptAgreesWithWhy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		terms := engine.Terms{Budgets: map[string][]engine.Budget{}, SpotToSpot: rapid.Bool().Draw(t, "spot"),
			MinSavingPercent: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "percent")}
		for _, pool := range s.Pools {
			terms.Budgets[pool.Name] = []engine.Budget{{Max: rapid.IntRange(0, 4).Draw(t, "budget")}}
		}
		kept, going := engine.Kept(s, terms)
		known := map[string]engine.Standing{}
		for _, k := range kept {
			known[k.Node.Claim] = k.Standing
		}
		goes := map[string]plan.DisruptionReason{}
		for _, g := range going {
			goes[g.Node.Claim] = g.Goes
		}
		for _, node := range s.Nodes {
			w := engine.Why(s, terms, node)
			k, isKept := known[node.Claim]
			switch {
			case w.Goes != goes[node.Claim]:
				t.Fatalf("%s\n----\n%s goes for %q, Why says %q", script, node.ID(), goes[node.Claim], w.Goes)
			case isKept && (w.Goes != "" || w.Cause != k.Cause || w.Text != k.Text || k.Wanted == "" || w.Wanted != k.Wanted &&
				w.Cause != cause.PodsComing && w.Cause != cause.IsReplacement):
				t.Fatalf("%s\n----\n%s is kept for %s (%q), Why says %s", script, node.ID(), k.Cause, k.Wanted, w.Cause)
			case !isKept && w.Wanted == plan.Drifted:
				t.Fatalf("%s\n----\n%s is drifted and stays for %s: it is left out", script, node.ID(), w.Cause)
			}
		}
	})
}
