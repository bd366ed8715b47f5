package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// B-20: for plain pods of one pool without limits, the overhead price of nodes never brings more nodes, nor a higher
// total cost, and breaks no rule.
func TestNodeOverheadNeverBringsMoreNodes(t *testing.T) {
	t.Parallel()
	var fewer atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script := plainPods(t)
		overhead := rapid.SampledFrom([]float64{0.002, 0.01, 0.05, 1}).Draw(t, "overhead")
		alone := parse(t, script+"\npool default")
		with := parse(t, fmt.Sprintf("%s\npool default overhead=%v", script, overhead))
		was, is := engine.Provision(alone), engine.Provision(with)
		if len(is.Launches) > len(was.Launches) || is.Cost(with.Overhead) > was.Cost(with.Overhead) {
			t.Fatalf("%s\n----\n%s\ncosts more in all, or has more nodes, than\n%s", script, is, was)
		}
		if broken := enginetest.Check(with, is, 0); broken != nil {
			t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, is, strings.Join(broken, "\n"))
		}
		if len(is.Launches) < len(was.Launches) {
			fewer.Add(1)
		}
	})
	if fewer.Load() == 0 {
		t.Error("an overhead never brought fewer nodes: the law says nothing")
	}
}

// plainPods draws instance types and pods that only need room. Small nodes are a little cheaper for what they have.
func plainPods(t *rapid.T) string {
	var lines []string
	for _, cores := range []int{1, 2, 4, 8, 16, 32} {
		price := float64(cores) * rapid.Float64Range(0.04, 0.05).Draw(t, "price of a core")
		lines = append(lines, fmt.Sprintf("type t%d cpu=%d mem=%dGi zones=a,b od=%.4f", cores, cores, cores*4, price))
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "kinds") {
		lines = append(lines, fmt.Sprintf("pod w%d-0..%d cpu=%dm mem=%dMi", i, rapid.IntRange(0, 30).Draw(t, "pods"),
			rapid.IntRange(50, 4000).Draw(t, "cpu"), rapid.IntRange(64, 12000).Draw(t, "memory")))
	}
	return strings.Join(lines, "\n")
}

// B-20: prices that people see are those of the machines, whatever a node costs beside them. What has no price has no
// cost.
func TestWhatIsToldIsThePrice(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse(`
type t2 cpu=2 mem=8Gi od=0.100
pool default overhead=0.500
node n1 type=t2 pool=default
node n2 cpu=2 mem=8Gi pool=default
pod web cpu=1900m node=n1
pod new cpu=1900m`)
	if err != nil {
		t.Fatal(err)
	}
	if p := engine.Provision(s); p.Price() != 0 {
		t.Errorf("%s: the pod has room on n2", p)
	}
	p := engine.Provision(s.Without(s.Nodes[1]))
	if p.Price() != 100_000 || p.Cost(s.Overhead) != 600_000 || p.Cost(new(cluster.Snapshot).Overhead) != 100_000 {
		t.Errorf("price %s, cost %s, want 0.100 and 0.600", p.Price(), p.Cost(s.Overhead))
	}
	if s.Cost(s.Nodes[0]) != 600_000 || s.Cost(s.Nodes...) != resources.Unpriced {
		t.Errorf("a node costs %s in all, want 0.600; both cost %s, want no price", s.Cost(s.Nodes[0]),
			s.Cost(s.Nodes...))
	}
}
