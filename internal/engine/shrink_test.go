package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// fallen is n nodes of 16 cores with two small pods each, of sizes that do not divide a node evenly. Smaller nodes
// cost as much for a core.
func fallen(t *testing.T, n int) string {
	t.Helper()
	source := rand.New(rand.NewPCG(1, uint64(n)))
	script :=
		"type s cpu=4 mem=16Gi zones=a,b od=0.1\ntype m cpu=8 mem=32Gi zones=a,b od=0.2\n" +
			"type l cpu=16 mem=64Gi zones=a,b od=0.5\npool default\n"
	for i := range n {
		script += fmt.Sprintf("node n%03d type=l zone=%c pool=default\n", i, 'a'+i%2)
		for k := range 2 {
			script += fmt.Sprintf("pod w%d-%d cpu=%dm mem=%dMi node=n%03d labels=app=w%d\n", i, k,
				300+source.IntN(2700), 500+source.IntN(9000), i, i%10)
		}
	}
	return script
}

// D-04, D-08, D-15: a fallen cluster shrinks with a tenth of its nodes at a time. That takes about as many rounds as
// to let each of its nodes go once, and the next round removes hardly anything that a round launches. The second half
// of the way is not made of ever smaller savings.
func TestAFallenClusterShrinksInFewRounds(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse(fallen(t, 200))
	if err != nil {
		t.Fatal(err)
	}
	first, launched, again, round := price(s), 0, 0, 0
	for ; ; round++ {
		budget := (len(s.Nodes) + 9) / 10
		terms := engine.Terms{MinSavingPercent: engine.DefaultMinSavingPercent, Budgets: map[string][]engine.Budget{
			"default": {{Max: budget}},
		}}
		p := engine.Consolidate(s, terms)
		if p.Empty() {
			break
		}
		if len(p.Removes) > budget {
			t.Fatalf("round %d removes %d nodes; the budget is %d", round, len(p.Removes), budget)
		}
		launched += len(p.Launches)
		for _, r := range p.Removes {
			if strings.HasPrefix(r.Claim, fmt.Sprintf("z%03d-", round-1)) {
				again++
			}
		}
		s = carriedOut(t, s, p, round, true)
	}
	t.Logf("%d rounds, %s/h of %s/h left, %d nodes; %d launched, %d removed in the next round", round, price(s), first,
		len(s.Nodes), launched, again)
	if round > 30 {
		t.Errorf("%d rounds; 200 nodes in tenths are 22 rounds down to 20", round)
	}
	if again*10 > launched {
		t.Errorf("%d of %d launched nodes were removed in the next round; want one in ten at most", again, launched)
	}
	if need := price(s).Dollars() / leastPrice(t, fallen(t, 200)); need > 1.25 {
		t.Errorf("what is left costs %.2f times the least", need)
	}
}

// leastPrice is a lower bound on the cost of the pods of a script.
func leastPrice(t *testing.T, script string) float64 {
	t.Helper()
	s, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	floor := s.Pools[0].Catalog.Floor(s.Pools[0].Catalog.Available, 0)
	var sum catalog.Least
	for _, node := range s.Nodes {
		for _, pod := range node.Pods {
			sum = sum.Plus(floor.Of(pod.Shape.Requests))
		}
	}
	return sum.Price().Dollars()
}

// D-04: no plan costs less than the floor of its pods, by which groups are refused without a plan. One pod that fills
// a node costs exactly its floor.
func TestNoPlanIsBelowTheFloor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := parse(t, enginetest.PlainScript(t))
		p := engine.Provision(s)
		requests := map[string]resources.Vector{}
		for _, pod := range s.Pending {
			requests[pod.UID] = pod.Shape.Requests
		}
		for _, l := range p.Launches {
			catalogue := s.Pool(l.Pool).Catalog
			floor := catalogue.Floor(catalogue.Available, 0)
			var sum catalog.Least
			for _, pod := range l.Pods {
				sum = sum.Plus(floor.Of(requests[pod.UID]))
			}
			if sum.Price() > l.Cheapest.Price {
				t.Fatalf("a node of %s/h holds pods that cost %s/h at least:\n%s", l.Cheapest.Price, sum.Price(), l)
			}
		}
	})
	price := leastPrice(t,
		"type s cpu=4 mem=16Gi zones=a od=0.1\npool p\nnode n type=s zone=a pool=p\npod web cpu=4 node=n")
	if price < 0.0999 || price > 0.1 {
		t.Errorf("a pod as large as a node of 0.1/h costs %v/h at least", price)
	}
}
