package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// P-22: workloads that are spread over hostnames cost little more than the lower bound, in the mean, and come on few
// nodes. They are drawn with fixed seeds: the figures are the same on every machine. They were 1.044 and 105 on
// 2026-11-29.
func TestWorkloadsSpreadOverHostsAreCheap(t *testing.T) {
	t.Parallel()
	const aim, aimNodes = 1.05, 110
	mean, nodes := overBound(t, spreadOverHosts)
	if mean > aim || nodes > aimNodes {
		t.Errorf("plans cost %.4f of their bound in the mean on %d nodes, want at most %.2f and %d", mean, nodes, aim,
			aimNodes)
	}
}

// spreadOverHosts draws one to three workloads that are spread over hostnames, a quarter of them over zones too. In
// half of all cases it adds pods that only need room. It also returns a lower bound of the plan's cost, in dollars an
// hour.
func spreadOverHosts(dice *rand.Rand) (script string, bound float64) {
	var b strings.Builder
	types(&b)
	b.WriteString("pool default tolerance=5\n")
	cores, memory := 0.0, 0.0
	draw := func(name string, count int, more string) {
		milliCores, mebibytes := []int{250, 500, 1000, 1500}[dice.IntN(4)], []int{512, 1024, 2048, 4096}[dice.IntN(4)]
		fmt.Fprintf(&b, "pod %s-0..%d cpu=%dm mem=%dMi labels=app=%s %s\n", name, count-1, milliCores, mebibytes, name,
			more)
		cores, memory = cores+float64(count*milliCores)/1000, memory+float64(count*mebibytes)/mebibytesPerCore
	}
	for i := range 1 + dice.IntN(3) {
		more := "spread=host:1"
		if dice.IntN(4) == 0 {
			more += " spread=zone:1"
		}
		draw(fmt.Sprintf("web%d", i), 5+dice.IntN(56), more)
	}
	if dice.IntN(2) == 0 {
		for i := range 3 {
			draw(fmt.Sprintf("plain%d", i), 1+dice.IntN(20), "")
		}
	}
	return b.String(), perCore * max(cores, memory)
}
