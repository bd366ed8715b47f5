package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// U-03: of a node that is due and stays, the short look says what the long one says.
func TestU03_WhyDueAgreesWithWhy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		parts := *s
		parts.Nodes = nil
		for _, node := range s.Nodes {
			own := *node
			own.Drifted = rapid.Bool().Draw(t, "drifted")
			parts.Nodes = append(parts.Nodes, &own)
		}
		s = cluster.New(parts)
		terms := engine.Terms{Budgets: map[string][]engine.Budget{}}
		for _, pool := range s.Pools {
			terms.Budgets[pool.Name] = []engine.Budget{{Max: rapid.IntRange(0, 2).Draw(t, "budget")}}
		}
		for _, node := range s.Nodes {
			long := engine.Why(s, terms, node)
			short, stays := engine.WhyDue(s, terms, node)
			switch {
			case stays && !node.Drifted && !node.Expired && !node.Deleting:
				t.Fatalf("%s\n----\n%s is not due, and said to stay for %s", script, node.ID(), short.Cause)
			case stays && long.Goes == "" && short.Cause != long.Cause:
				t.Fatalf("%s\n----\n%s stays for %s, and by the short look for %s", script, node.ID(), long.Cause,
					short.Cause)
			case !stays && node.Drifted && node.Claim != "" && s.Pool(node.Pool) != nil:
				t.Fatalf("%s\n----\n%s has drifted, and nothing is said of it", script, node.ID())
			}
		}
	})
}
