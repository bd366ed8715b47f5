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

// B-16, P-22: a plan with nodes of one size breaks no rule, and costs at most 15 % more than the cheapest plan. Every
// pod that has a place in the cheapest plan has one in this.
func TestNodesOfOneSizeCostLittleMore(t *testing.T) {
	t.Parallel()
	var other atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script := crowd(t)
		snapshot := parse(t, script)
		p, cheapest := engine.Provision(snapshot), pack.Solve(snapshot, snapshot.Pending)
		if p.String() != cheapest.String() {
			other.Add(1)
		}
		for choice := range 3 {
			if broken := enginetest.Check(snapshot, p, choice); broken != nil {
				t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, p, strings.Join(broken, "\n"))
			}
		}
		placed := map[string]bool{}
		for _, u := range cheapest.Unplaced {
			placed[u.Pod.UID] = true
		}
		for _, u := range p.Unplaced {
			if !placed[u.Pod.UID] {
				t.Fatalf("%s\n----\n%s\n%s has no place, and has one in\n%s", script, p, u.Pod, cheapest)
			}
		}
		if float64(p.Price()) > 1.15*float64(cheapest.Price()) {
			t.Fatalf("%s\n----\n%s\ncosts more than 1.15 times\n%s", script, p, cheapest)
		}
	})
	if other.Load() == 0 {
		t.Error("no plan differs from the cheapest one: the law says nothing")
	}
}

// crowd draws pods that keep apart by hostname, and others. Some are large, may go to one zone only, or are spread
// over zones.
func crowd(t *rapid.T) string {
	var b strings.Builder
	for _, cores := range []int{1, 2, 4, 8, 16, 32} {
		price := float64(cores) * rapid.Float64Range(0.04, 0.05).Draw(t, "price of a core")
		fmt.Fprintf(&b, "type t%d cpu=%d mem=%dGi zones=a,b od=%.4f\n", cores, cores, cores*4, price)
	}
	limits := []string{"", "nodes=3", "hard.nodes=4", "limit.cpu=40"}
	fmt.Fprintf(&b, "pool default %s\n", rapid.SampledFrom(limits).Draw(t, "limit"))
	fmt.Fprintf(&b, "daemon log cpu=%dm\n", rapid.IntRange(50, 300).Draw(t, "daemon"))
	fmt.Fprintf(&b, "node n1 type=t8 zone=a pool=default\n")
	apart, others := rapid.IntRange(2, 12).Draw(t, "apart"), rapid.IntRange(0, 60).Draw(t, "others")
	fmt.Fprintf(&b, "pod db-0..%d cpu=%dm mem=1Gi labels=app=db apart=host\n", apart,
		rapid.IntRange(100, 2000).Draw(t, "db"))
	fmt.Fprintf(&b, "pod web-0..%d cpu=%dm mem=2Gi %s\n", others, rapid.IntRange(100, 2000).Draw(t, "web"),
		rapid.SampledFrom([]string{"", "need=zone=b", "labels=app=web spread=zone:1"}).Draw(t, "where"))
	if rapid.Bool().Draw(t, "large") {
		b.WriteString("pod big-0 cpu=20 mem=4Gi\n")
	}
	return b.String()
}
