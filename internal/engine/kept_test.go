package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// D-15, U-24. Nothing wants a node gone that something holds, and that rests since it has just replaced others.
func TestNothingWantsANodeThatRests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		age := rapid.Int64Range(0, 2*cluster.ReplacementRest).Draw(t, "age")
		s := parse(t, fmt.Sprintf(`
type m5.large   cpu=2 mem=8Gi  zones=a od=0.096
type m5.xlarge  cpu=4 mem=16Gi zones=a od=0.192
pool default
node n1         type=m5.xlarge zone=a pool=default created=%d replaced do-not-disrupt
pod a           cpu=1700m node=n1
`, 10_000-age))
		kept, _ := engine.Kept(s, engine.Terms{Now: 10_000})
		if rests := age < cluster.ReplacementRest; rests != (len(kept) == 0) {
			t.Fatalf("%d s after its launch: kept %+v", age, kept)
		}
	})
}

// B-20, U-24. Nothing wants a node gone that something holds, and that more nodes would replace for a saving below the
// price tolerance.
func TestNothingWantsANodeThatOnlyMoreWouldReplace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.IntRange(95, 109).Draw(t, "price of a small node") // two for one of 220: 209 is 5 % less
		s := parse(t, fmt.Sprintf(`
type small  cpu=2 mem=8Gi  zones=a od=0.%03d
type large  cpu=8 mem=32Gi zones=a od=0.220
pool default tolerance=5 need=type=small
node n1     type=large zone=a pool=default do-not-disrupt
pod p1..2   cpu=1900m node=n1
`, price))
		kept, _ := engine.Kept(s, engine.Terms{})
		if within := 2*price > 209; within != (len(kept) == 0) {
			t.Fatalf("two for 0.%03d each: kept %+v", price, kept)
		}
	})
}

// U-24. The kept nodes are kept for what Why says of each, and none of them goes. No node that is drifted and stays is
// left out. Nodes that go do so for what Why says.
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
			case isKept && (w.Goes != "" || w.Cause != k.Cause || w.Text != k.Text || k.Wanted == "" ||
				w.Wanted != k.Wanted && w.Cause != cause.PodsComing && w.Cause != cause.IsReplacement):
				t.Fatalf("%s\n----\n%s is kept for %s (%q), Why says %s", script, node.ID(), k.Cause, k.Wanted,
					w.Cause)
			case !isKept && w.Wanted == plan.Drifted:
				t.Fatalf("%s\n----\n%s is drifted and stays for %s: it is left out", script, node.ID(), w.Cause)
			}
		}
	})
}
