package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
)

// P-22: tied pods that are packed by price break no rule. They cost no more than pods placed one by one, or 15 % more
// with nodes of one size. No more pods are left without a place.
func TestTiedPodsPackedByPriceBreakNoRule(t *testing.T) {
	t.Parallel()
	var cheaper atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script, apart := tangle(t)
		snapshot := parse(t, script)
		p, oneByOne := engine.Provision(snapshot), pack.Solve(snapshot, snapshot.Pending)
		for choice := range 3 {
			if broken := enginetest.Check(snapshot, p, choice); broken != nil {
				t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, p, strings.Join(broken, "\n"))
			}
		}
		if len(p.Unplaced) > len(oneByOne.Unplaced) {
			t.Fatalf("%s\n----\n%s\nleaves more pods without a place than\n%s", script, p, oneByOne)
		}
		most := 1.0
		if apart {
			most = 1.15
		}
		if float64(p.Price()) > most*float64(oneByOne.Price()) {
			t.Fatalf("%s\n----\n%s\ncosts more than %v times\n%s", script, p, most, oneByOne)
		}
		if float64(p.Price()) < 0.99*float64(oneByOne.Price()) {
			cheaper.Add(1)
		}
	})
	if cheaper.Load() == 0 {
		t.Error("no plan is cheaper: the law says nothing")
	}
}

// tangle draws pods that are tied in all ways, on nodes whose prices are not in proportion to their sizes. It also
// says whether some keep apart.
func tangle(t *rapid.T) (script string, apart bool) {
	var b strings.Builder
	for _, cores := range []int{1, 2, 4, 8, 16, 32} {
		price := float64(cores) * rapid.Float64Range(0.03, 0.05).Draw(t, "price of a core")
		fmt.Fprintf(&b, "type t%d cpu=%d mem=%dGi zones=a,b,c od=%.4f\n", cores, cores, cores*4, price)
	}
	fmt.Fprintf(&b, "pool default %s\n",
		rapid.SampledFrom([]string{"", "", "nodes=6", "hard.nodes=8", "limit.cpu=60"}).Draw(t, "limit"))
	if rapid.Bool().Draw(t, "node") {
		b.WriteString("node n1 type=t8 zone=a pool=default\n")
	}
	kinds := []string{"", "spread=zone:1", "spread=host:1", "spread=host:2",
		"together=zone", "together=host", "apart=host", "apart=zone", "need=zone=b"}
	for i := range rapid.IntRange(2, 7).Draw(t, "groups") {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		apart = apart || kind == "apart=host"
		fmt.Fprintf(&b, "pod w%d-0..%d cpu=%dm mem=%dMi labels=app=w%d %s\n", i, rapid.IntRange(0, 14).Draw(t, "pods"),
			rapid.IntRange(100, 2500).Draw(t, "cpu"), rapid.IntRange(100, 6000).Draw(t, "memory"),
			rapid.IntRange(0, 3).Draw(t, "app"), kind)
	}
	return b.String(), apart
}
