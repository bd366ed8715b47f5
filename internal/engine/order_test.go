package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// processors are the settings of GOMAXPROCS that P-20 is checked with.
var processors = []int{1, 2, 8}

// P-20: a plan is the same byte for byte, as text and in every field, whatever the order of its input and the number
// of processors.
func TestPlansDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkOrder(t, enginetest.Script(t)) })
}

// P-20 where the price decides, with minimum counts, wishes, volumes and limits.
func TestPlansByPriceDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkOrder(t, enginetest.PlainScript(t)) })
}

func checkOrder(t *rapid.T, script string) {
	t.Helper()
	want := engine.Provision(parse(t, script))
	source := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for _, n := range processors {
		shuffled := shuffle(source, parse(t, shuffleLines(source, script)))
		before := runtime.GOMAXPROCS(n)
		got := engine.Provision(shuffled)
		runtime.GOMAXPROCS(before)
		if got.String() != want.String() {
			t.Fatalf("%s\n----\n%s\nin another order, on %d processors:\n%s", script, want, n, got)
		}
		if a, b := dump(want), dump(got); a != b {
			t.Fatalf("%s\n----\n%s\nin another order, on %d processors, the same but for what is not printed:\n%s\n%s",
				script, want, n, a, b)
		}
	}
}

// dump prints every field of a plan, exported or not. A plan holds no pointers, and maps are printed in order.
func dump(p plan.Plan) string { return fmt.Sprintf("%#v", p) }

// shuffleLines puts the lines of each kind into another order, and the values of lists in which order means nothing.
// What depends on the order of parsing (positions in catalogues, shapes) then differs.
func shuffleLines(source *rand.Rand, script string) string {
	groups := map[string][]string{}
	kinds := []string{"type", "daemon", "pool", "node", "claim", "pod", "pdb", "limit"}
	for _, line := range strings.Split(script, "\n") {
		kind, _, _ := strings.Cut(line, " ")
		words := strings.Fields(line)
		for i, word := range words {
			if zones, found := strings.CutPrefix(word, "zones="); found {
				words[i] = "zones=" + strings.Join(shuffled(source, strings.Split(zones, ",")), ",")
			}
		}
		groups[kind] = append(groups[kind], strings.Join(words, " "))
	}
	var lines []string
	for _, kind := range kinds {
		lines = append(lines, shuffled(source, groups[kind])...)
		delete(groups, kind)
	}
	if len(groups) > 0 {
		panic(fmt.Sprintf("kinds of lines without an order: %v", groups))
	}
	return strings.Join(lines, "\n")
}

func shuffled[T any](source *rand.Rand, list []T) []T {
	own := slices.Clone(list)
	source.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	return own
}

// shuffle puts every list of the snapshot into another order, as a store that saw other events first would.
func shuffle(source *rand.Rand, s *cluster.Snapshot) *cluster.Snapshot {
	own := *s
	own.Pending, own.Repelling = shuffled(source, s.Pending), shuffled(source, s.Repelling)
	own.Pools, own.Daemons, own.Nodes = shuffled(source, s.Pools), shuffled(source, s.Daemons),
		shuffled(source, s.Nodes)
	for i, node := range own.Nodes {
		other := *node
		other.Pods, other.Ports = shuffled(source, node.Pods), shuffled(source, node.Ports)
		own.Nodes[i] = &other
	}
	return cluster.New(own)
}
