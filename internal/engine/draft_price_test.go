package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// P-22: few pods of many kinds cost at most 1.10 times the lower bound, in the mean. The pods are those of B-01, drawn
// with fixed seeds: the figure is the same on every machine. It was 1.098 on 2026-11-29.
func TestFewPodsOfManyKindsAreCheap(t *testing.T) {
	t.Parallel()
	const aim = 1.10
	mean, _ := overBound(t, func(dice *rand.Rand) (string, float64) { return diverse(dice, 100) })
	if mean > aim {
		t.Errorf("plans cost %.4f of their bound in the mean, want at most %.2f", mean, aim)
	}
}

// overBound plans draws with 40 seeds. It returns what the plans cost as a share of their lower bounds, in the mean,
// and how many nodes they have in all.
func overBound(t *testing.T, draw func(*rand.Rand) (script string, bound float64)) (mean float64, nodes int) {
	t.Helper()
	const seeds = 40
	for seed := range uint64(seeds) {
		script, bound := draw(rand.New(rand.NewPCG(seed, 0)))
		snapshot, err := enginetest.Parse(script)
		if err != nil {
			t.Fatal(err)
		}
		p := engine.Provision(snapshot)
		if len(p.Unplaced) > 0 {
			t.Fatalf("seed %d: %s", seed, p)
		}
		mean, nodes = mean+p.Price().Dollars()/bound/seeds, nodes+len(p.Launches)
	}
	return mean, nodes
}

// What a core costs, and how much memory comes with it, of each of the types.
const perCore, mebibytesPerCore = 0.3, 2048

func types(b *strings.Builder) {
	for cores := 1; cores <= 60; cores++ {
		fmt.Fprintf(b, "type linear-%d cpu=%d mem=%dMi pods=%d system.cpu=100m system.mem=10Mi zones=a,b,c od=%.1f\n",
			cores, cores, mebibytesPerCore*cores, 10*cores, perCore*float64(cores))
	}
}

// diverse draws pods as B-01 has them, a fifth of each kind, and types like those of its catalogue: each core costs as
// much, and has as much memory. It also returns a lower bound of the plan's cost, in dollars an hour: enough cores,
// and enough memory.
func diverse(dice *rand.Rand, pods int) (script string, bound float64) {
	var b strings.Builder
	types(&b)
	b.WriteString("pool default\n")
	of := func(amounts ...int) int { return amounts[dice.IntN(len(amounts))] }
	value := func() string { return string(rune('a' + dice.IntN(7))) }
	kinds := []func() string{
		func() string { return "labels=value=" + value() },
		func() string { return "labels=value=" + value() + " spread=zone:1/value=" + value() },
		func() string { return "labels=value=" + value() + " spread=host:1/value=" + value() },
		func() string { v := value(); return "labels=together=" + v + " together=zone/together=" + v },
		func() string { return "labels=app=apart apart=host" },
	}
	cores, memory := 0.0, 0.0
	for i := range pods {
		milliCores, mebibytes := of(100, 250, 500, 1000, 1500), of(100, 256, 512, 1024, 2048, 4096)
		cores, memory = cores+float64(milliCores)/1000, memory+float64(mebibytes)/mebibytesPerCore
		fmt.Fprintf(&b, "pod p%03d cpu=%dm mem=%dMi %s\n", i, milliCores, mebibytes, kinds[i*len(kinds)/pods]())
	}
	return b.String(), perCore * max(cores, memory)
}
