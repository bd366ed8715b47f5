package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
)

// The keys are those of docs/spec/performance.md; unchecked values are null.
func TestResultsHaveTheKeysOfTheSpec(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	none := 0
	if err := Write(file,
		[]Record{{Scenario: "a", Side: Joiner}, {Scenario: "a", Side: Karpenter, Violations: &none}}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var records []map[string]any
	if err := json.Unmarshal(data, &records); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for key := range records[0] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want :=
		"allocated_bytes cpu_seconds lower_bound nodes peak_rss_bytes pods_placed pods_unplaced price_per_hour " +
			"scenario side violations wall_seconds"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("keys %s; want %s", got, want)
	}
	if records[0]["violations"] != nil || records[1]["violations"] != 0.0 {
		t.Errorf("violations %v and %v; want null and 0", records[0]["violations"], records[1]["violations"])
	}
}

func TestFitFindsTheExponent(t *testing.T) {
	t.Parallel()
	var points [][2]float64
	for _, n := range []float64{100, 1000, 5000} {
		points = append(points, [2]float64{n, 3 * math.Pow(n, 1.5)})
	}
	if got, some := Fit(points); !some || math.Abs(got-1.5) > 1e-9 {
		t.Errorf("exponent %v; want 1.5", got)
	}
	if _, some := Fit(points[:1]); some {
		t.Error("one point has an exponent")
	}
}

func TestAimsSayWhatIsNotMet(t *testing.T) {
	t.Parallel()
	slow := Line{Record: Record{Scenario: "diverse-100", Side: Joiner, PodsPlaced: 100, PricePerHour: 2}}
	slow.WallSeconds = 1
	peer := Line{Record: Record{Scenario: "diverse-100", Side: Karpenter, PodsPlaced: 100, PricePerHour: 1}}
	peer.WallSeconds = 50
	var b strings.Builder
	Aims(&b, []Line{slow, peer})
	if strings.Count(b.String(), "NOT MET") != 2 {
		t.Errorf("aims:\n%s", b.String())
	}
}

// If consolidation was cut off on our side, it has not met its aim, however long the peer took, and has no price to
// compare. Drift has met its aim if the first round took the whole budget (B-05, B-06).
func TestAimsOfDisruption(t *testing.T) {
	t.Parallel()
	own := Line{Record: Record{Scenario: "consolidate-2000", Side: Joiner, PricePerHour: 1, CutOff: true}}
	peer := Line{Record: Record{Scenario: "consolidate-2000", Side: Karpenter, PricePerHour: 2}}
	own.WallSeconds, peer.WallSeconds = 1, 1000
	drifted := Line{Record: Record{Scenario: "drift-2000", Side: Joiner, FirstRound: 200}}
	var b strings.Builder
	Aims(&b, []Line{own, peer, drifted})
	text := b.String()
	if strings.Count(text, "NOT MET") != 1 || !strings.Contains(text, "cut off") ||
		strings.Contains(text, "the peer") || !strings.Contains(text, "200 of 200") {
		t.Errorf("aims:\n%s", text)
	}
}

// A side that was cut off says so in its row, in the ratios and in the file, and has no price to compare.
func TestCutOffIsNoFigure(t *testing.T) {
	t.Parallel()
	own := Line{Record: Record{Scenario: "plain-100k", Side: Joiner, PodsPlaced: 100, PricePerHour: 2}}
	own.WallSeconds, own.CPUSeconds = 2, 2
	peer := Line{Record: Record{Scenario: "plain-100k", Side: Karpenter, PodsPlaced: 10, PodsUnplaced: 90,
		PricePerHour: 1, CutOff: true}}
	peer.WallSeconds, peer.CPUSeconds = 1200, 1200
	var table, aims strings.Builder
	if err := Tables(&table, []Line{own, peer}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"> 1200.00 s", "> 600.0x"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in:\n%s", want, table.String())
		}
	}
	if Aims(&aims, []Line{own, peer}); strings.Contains(aims.String(), "the peer") {
		t.Errorf("a price is compared with that of a part:\n%s", aims.String())
	}
	if text, err := json.Marshal(peer.Record); err != nil || !strings.Contains(string(text), `"cut_off":true`) {
		t.Errorf("record %s, %v", text, err)
	}
}

// B-10 to B-13, B-16: whole controllers have a table and aims of their own.
func TestWholeControllersAreComparedPerNode(t *testing.T) {
	t.Parallel()
	phase := func(scenario, side string, seconds, price float64, launched, removed, requests int) Line {
		l := Line{Record: Record{Scenario: scenario, Side: side, PricePerHour: price, System: &System{
			NodesPlanned: 16, NodesLaunched: launched, NodesRemoved: removed,
			Requests: map[string]int{"patch nodes": requests}, RoundSeconds: []float64{seconds},
		}}}
		l.WallSeconds, l.CPUSeconds, l.PeakRSSBytes = seconds, seconds/10, 1<<20
		return l
	}
	lines := []Line{
		phase("apply-500", Joiner, 10, 1, 20, 0, 200), phase("apply-500", Karpenter, 20, 1, 10, 0, 200),
		phase("shrink-500", Joiner, 30, 2, 0, 10, 80), phase("shrink-500", Karpenter, 100, 1, 0, 10, 100),
	}
	lines[0].Expected, lines[0].Elsewhere = 94, 6
	lines[2].NodesPlanned, lines[2].NodesLaunched = 2, 3
	var out strings.Builder
	if err := Tables(&out, lines); err != nil {
		t.Fatal(err)
	}
	Aims(&out, lines)
	for _, want := range []string{
		"NOT MET  K-60   apply-500: 94 % of 100 pods were bound where a plan expected them; aim 95 %",
		"met      B-10   apply-500: time 0.50 of the peer's",
		"NOT MET  B-16   apply-500: 20 nodes launched where 16 were planned: 1.25; aim 1.15",
		"met      B-10   apply-500: price 1.00 of the peer's",
		"met      B-12   apply-500: 10.0 requests per node against 20.0 (at least 5), 0.50 of the peer's",
		"NOT MET  B-11   shrink-500: time 0.30 of the peer's; aim 0.2",
		"NOT MET  B-11   shrink-500: final price 2.00 of the peer's; aim 1",
		"NOT MET  B-11   shrink-500: 3 nodes launched on the way, 1 of them not in the first plan that launches any; aim 0",
		"NOT MET  B-12   shrink-500: 8.0 requests per node against 10.0",
		"met      B-13   apply-500: CPU 0.50 of the peer's",
		"NOT MET  B-13   apply-500: peak RSS 1.00 of the peer's",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}
}

// The end of consolidation is measured by a fresh plan for the same pods: 1.02 times its price meets B-17, more does
// not.
func TestAimOfTheEndStateIsAFreshPlan(t *testing.T) {
	t.Parallel()
	for price, verdict := range map[float64]string{10.2: "met ", 10.3: "NOT MET"} {
		own := Line{Record: Record{Scenario: "consolidate-200", Side: Joiner, PricePerHour: price, Nodes: 61,
			LowerBound: 8, FreshPrice: 10, FreshNodes: 43}}
		var b strings.Builder
		Aims(&b, []Line{own})
		if text := b.String(); !strings.HasPrefix(text, verdict) || !strings.Contains(text, "B-17") ||
			!strings.Contains(text, "61 nodes for 43") {
			t.Errorf("at %v $/h:\n%s", price, text)
		}
	}
}

// B-20: the frontier is printed beside the peer's figures, from this run or an earlier one, and judged at 5 %.
func TestTheFrontierStandsBesideThePeer(t *testing.T) {
	t.Parallel()
	own := Line{Record: Record{Scenario: "plain-5000", Side: Joiner, Frontier: []Point{
		{Nodes: 1088, PricePerHour: 104, LeastNodes: 1000},
		{Setting: Setting{PriceTolerance: 5}, Nodes: 641, PricePerHour: 109, LeastWithin: 500},
		{Setting: Setting{NodeOverheadPrice: 0.1}, Nodes: 162, PricePerHour: 117}}}}
	peer := Record{Scenario: "plain-5000", Side: Karpenter, Nodes: 50, PricePerHour: 108}
	for name, c := range map[string]struct {
		lines   []Line
		earlier []Record
		from    string
	}{
		"both sides": {[]Line{own, {Record: peer}}, nil, "this run"},
		"one side":   {[]Line{own}, []Record{peer}, "an earlier run"},
	} {
		var b strings.Builder
		if err := Frontiers(&b, c.lines, c.earlier); err != nil {
			t.Fatal(err)
		}
		FrontierAims(&b, c.lines, c.earlier)
		for _, want := range []string{"tolerance 5 %", "4.8 %", "overhead 0.1 $/h", c.from,
			"NOT MET  B-20   plain-5000: 641 nodes at tolerance 5 % (no plan within it has fewer than 500); aim 150",
			"NOT MET  B-20   plain-5000: 109.000 $/h at tolerance 5 %; the peer 108.000, of " + c.from} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: want %q in\n%s", name, want, b.String())
			}
		}
	}
	var b strings.Builder
	own.Scenario = "consolidate-200"
	FrontierAims(&b, []Line{own}, nil)
	if b.Len() > 0 {
		t.Errorf("nothing is known of the peer, and it says\n%s", b.String())
	}
}

func TestResultsAreReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	if records, err := Read(file); err != nil || records != nil {
		t.Errorf("without a file %v, %v", records, err)
	}
	want := []Record{{Scenario: "plain-5000", Side: Karpenter, Nodes: 50}}
	if err := Write(file, want); err != nil {
		t.Fatal(err)
	}
	if records, err := Read(file); err != nil || !reflect.DeepEqual(records, want) {
		t.Errorf("%+v, %v; want %+v", records, err, want)
	}
}

// B-22: a controller at rest is judged by what it used, beside the peer. A cluster that never came up is not at rest.
func TestB22_AimsOfAControllerAtRest(t *testing.T) {
	t.Parallel()
	rest := func(side string, cpu float64, requests, went int) Line {
		return Line{Record: Record{Scenario: "rest-2000", Side: side,
			Cost: measure.Cost{WallSeconds: 100, CPUSeconds: cpu, PeakRSSBytes: 200 << 20},
			Rest: &Rest{Requests: map[string]int{"patch a": requests}, ReadySeconds: 3, Went: went}}}
	}
	var out strings.Builder
	Aims(&out, []Line{rest(Joiner, 1, 101, 1), rest(Karpenter, 30, 7, 0)})
	for _, want := range []string{
		"met      B-22   rest-2000: 1.00 % of a core at rest; aim 2 %; the peer 30.00 % of a core",
		"NOT MET  B-22   rest-2000: 1.01 requests a second; aim 1; the peer 0.07 requests a second",
		"met      B-22   rest-2000: ready 3.0 s after a restart",
		"NOT MET  B-22   rest-2000: after a restart 1 nodes came or went",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	cut := rest(Joiner, 0, 0, 0)
	cut.CutOff = true
	Aims(&out, []Line{cut})
	if got := out.String(); !strings.HasPrefix(got, "NOT MET") || strings.Count(got, "\n") != 1 {
		t.Errorf("of a cluster that was not there: %s", got)
	}
}

// Tied pods are measured by their lower bound, and the line names that bound.
func TestAimOfTheDiversePriceIsTheBound(t *testing.T) {
	t.Parallel()
	for price, met := range map[float64]bool{10.9: true, 11.1: false} {
		own := Line{Record: Record{Scenario: "diverse-1000", Side: Joiner, PodsPlaced: 1000, PricePerHour: price,
			LowerBound: 10, LowerBoundKind: "constrained"}}
		var b strings.Builder
		Aims(&b, []Line{own})
		if !strings.Contains(b.String(), "of the lower bound (constrained); aim 1.10") ||
			strings.Contains(b.String(), "NOT MET") == met {
			t.Errorf("%v $/h: %s", price, b.String())
		}
	}
}
