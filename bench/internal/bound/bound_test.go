package bound

import (
	"math"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// A case small enough to do by hand: pods of 2 cores on nodes of 3 for 1 dollar. A third of each node stays unused;
// only the configuration program knows that.
func TestConfigurationKnowsThatPodsAreWhole(t *testing.T) {
	t.Parallel()
	p := Problem{
		Items: []Item{{Amounts: []float64{2.0 / 12}, Count: 6}},
		Bins:  []Bin{{Room: []float64{3.0 / 12}, Price: 1}},
		rows:  1,
	}
	for name, got := range map[string][2]float64{
		"simple": {p.Simple(), 4}, "fluid": {p.Fluid(), 4}, "configuration": {p.Configuration(time.Minute), 6},
	} {
		if math.Abs(got[0]-got[1]) > 1e-6 {
			t.Errorf("%s bound %v; want %v", name, got[0], got[1])
		}
	}
}

// Two kinds of pods on two kinds of nodes: 4 of (3 cores, 1 Gi) and 4 of (1 core, 3 Gi); (4, 4) for 1 dollar, (3, 1)
// for 0.4. A pair on each large node costs 4. Small nodes take the first kind for 1.6, but then the second kind needs
// 4 large nodes of its own. So 4 is best.
func TestConfigurationMixesPods(t *testing.T) {
	t.Parallel()
	p := Problem{
		Items: []Item{{Amounts: []float64{3.0 / 16, 1.0 / 16}, Count: 4},
			{Amounts: []float64{1.0 / 16, 3.0 / 16}, Count: 4}},
		Bins: []Bin{{Room: []float64{4.0 / 16, 4.0 / 16}, Price: 1},
			{Room: []float64{3.0 / 16, 1.0 / 16}, Price: 0.4}},
		rows: 2,
	}
	if got := p.Configuration(time.Minute); math.Abs(got-4) > 1e-3*4 || got > 4+1e-9 {
		t.Errorf("bound %v; want 4", got)
	}
}

// The bounds are ordered: a bound that knows more is not lower, as far as it is solved.
func TestBoundsAreOrdered(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"diverse-100", "plain-300"} {
		s, err := scenario.Make(name, 3)
		if err != nil {
			t.Fatal(err)
		}
		p := New(s.Pending, s.Catalog)
		simple, fluid, configuration := p.Simple(), p.Fluid(), p.Configuration(10*time.Second)
		if simple <= 0 || fluid < simple || configuration < 0.9*fluid {
			t.Errorf("%s: simple %v, fluid %v, configuration %v", name, simple, fluid, configuration)
		}
		t.Logf("%s: simple %v, fluid %v, configuration %v", name, simple, fluid, configuration)
	}
}

// Pods that refuse each other on a node need a node each, even if all would fit on one.
func TestPodsApartNeedANodeEach(t *testing.T) {
	t.Parallel()
	p := Problem{
		Items: []Item{{Amounts: []float64{1.0 / 10, 1.0 / 10}, Count: 10}}, // a core, and alone
		Bins:  []Bin{{Room: []float64{100.0 / 10, 1.0 / 10}, Price: 1}},
		rows:  2,
	}
	if got := p.Fluid(); math.Abs(got-10) > 1e-6 {
		t.Errorf("bound %v; want 10", got)
	}
}

// B-20: 8 pods of one core, on nodes of one core for 1 dollar or of eight for 10. 8 dollars buy eight small nodes, and
// the large one costs 2 more. For 9 dollars there are only small ones, but between two points the bound is a line.
func TestFewNodesHaveTheirPrice(t *testing.T) {
	t.Parallel()
	p := Problem{
		Items: []Item{{Amounts: []float64{1.0 / 8}, Count: 8}},
		Bins:  []Bin{{Room: []float64{1.0 / 8}, Price: 1}, {Room: []float64{1}, Price: 10}},
		rows:  1,
	}
	f := frontierOf(p, []float64{0.1, 2.0 / 7, 4})
	for price, want := range map[float64]int{8: 8, 9: 5, 10: 1, 20: 0} { // (8 + 8λ - price)/λ at λ = 2/7
		if got := f.Nodes(price); got != want {
			t.Errorf("plans of %v dollars have %d nodes or more; want %d", price, got, want)
		}
	}
}
