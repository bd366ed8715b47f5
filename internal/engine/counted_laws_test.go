package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// picker returns what draws one of some words.
func picker(t *rapid.T) func(words ...string) string {
	n := 0
	return func(words ...string) string {
		n++
		return rapid.SampledFrom(words).Draw(t, fmt.Sprint("word", n))
	}
}

// twoSizes are a small and a large machine in two zones, and a pool that takes both.
func twoSizes() []string {
	return []string{"type small cpu=2 mem=8Gi zones=a,b od=0.08", "type large cpu=8 mem=32Gi zones=a,b od=0.30",
		"pool default"}
}

// countedScript draws nodes of ours with pods that are tied to each other, beside nodes that take no pods and count.
func countedScript(t *rapid.T) string {
	pick := picker(t)
	lines := twoSizes()
	tie := pick("spread=host:1", "spread=host:2", "spread=zone:1", "apart=host", "apart=zone", "together=zone")
	for i := range rapid.IntRange(2, 4).Draw(t, "nodes") {
		lines = append(lines, fmt.Sprintf("node n%d type=%s zone=%s pool=default", i, pick("small", "large"),
			pick("a", "b")),
			fmt.Sprintf("pod web%d-0..%s cpu=%s labels=app=web %s node=n%d", i, pick("0", "1"), pick("300m", "900m"),
				tie, i))
	}
	const silent = "not-ready taint=node.kubernetes.io/not-ready:NoSchedule"
	for i := range rapid.IntRange(0, 2).Draw(t, "others") {
		lines = append(lines, fmt.Sprintf("node x%d type=small zone=%s %s", i, pick("a", "b"),
			pick(silent, "pool=default "+silent,
				"disrupting taint=karpenter.sh/disrupted:NoSchedule",
				"deleting taint=karpenter.sh/disrupted:NoSchedule")))
		if pick("", "used") != "" {
			lines = append(lines, fmt.Sprintf("pod other%d cpu=100m labels=app=web %s node=x%d", i, tie, i))
		}
	}
	return strings.Join(lines, "\n")
}

// P-03, P-04, D-04: consolidation counts what planning for pending pods counts. When nodes go because their pods fit
// on others, no node is launched for these pods: the removed node would come back, and be removed again.
func TestWhatFitsElsewhereNeedsNoLaunch(t *testing.T) {
	t.Parallel()
	removals := 0
	rapid.Check(t, func(t *rapid.T) {
		script := countedScript(t)
		s := parse(t, script)
		p := engine.Consolidate(s, engine.Terms{})
		var gone []*cluster.Node
		for _, node := range s.Nodes {
			if slices.ContainsFunc(p.Removes, func(r plan.Remove) bool { return r.Claim == node.Claim }) {
				gone = append(gone, node)
			}
		}
		if len(gone) == 0 || len(p.Launches) > 0 || len(s.Pending) > 0 {
			return
		}
		removals++
		if moved := engine.Provision(s.Without(gone...)); len(moved.Launches)+len(moved.Unplaced) > 0 {
			t.Fatalf("%s\n----\n%s\nand then\n%s", script, p, moved)
		}
	})
	if removals == 0 {
		t.Error("nothing was ever removed: the law was not tried")
	}
}
