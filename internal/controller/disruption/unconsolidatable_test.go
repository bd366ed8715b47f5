package disruption_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// D-02: a node that was checked and stays reports why, and one that goes does not. If budgets let none go, the pool
// reports that.
func TestANodeThatNothingIsCheaperThanSaysSo(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]string{
		"100%": "a Unconsolidatable: NothingCheaper: its pods would cost $1.000/h elsewhere, " +
			"and the node costs $1.000/h. Nothing to do. By itself: ",
		"0": "default DisruptionBlocked: BudgetClosed: the budgets of NodePool default let no node be disrupted now " +
			"for the reason Underutilized. To do: ",
	} {
		r := clusterOf(t, budget, map[string]string{"a": "small"}, "1500m")
		r.turn(t)
		said := strings.Join(r.tape.Said(), "\n")
		if !strings.Contains(said, want) || budget == "0" && strings.Contains(said, "Unconsolidatable") {
			t.Errorf("said %s\nwant %s", said, want)
		}
	}
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.turn(t)
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "Unconsolidatable") {
		t.Errorf("said %s", said)
	}
}

// D-02: a node that must not be disrupted does not report that nothing is cheaper, and does not stop others from
// reporting it.
func TestAProtectedNodeDoesNotSayThatNothingIsCheaper(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small", "c": "small"}, "1500m")
	r.protects(t, "a")
	r.protects(t, "c")
	r.turn(t)
	told := map[string]bool{}
	for _, said := range r.tape.Said() {
		if name, _, found := strings.Cut(said, " Unconsolidatable: "); found {
			told[name] = true
		}
	}
	if len(told) != 1 || !told["b"] {
		t.Errorf("said %q, want that nothing is cheaper of b alone", r.tape.Said())
	}
}

// U-15: in a large cluster each search explains some nodes and the next search the next ones, until each was
// explained.
func TestEachNodeIsAskedInTheEnd(t *testing.T) {
	t.Parallel()
	nodes := map[string]string{}
	for i := range 45 {
		nodes[fmt.Sprintf("n%02d", i)] = "small"
	}
	r := clusterOf(t, "1", nodes, "1500m")
	told := map[string]bool{}
	for round, want := range []int{20, 40, 45} {
		r.reconcile(t)
		for _, said := range r.tape.Said() {
			if name, _, found := strings.Cut(said, " Unconsolidatable: "); found {
				told[name] = true
			}
		}
		if len(told) != want {
			t.Fatalf("after %d searches %d nodes were told, want %d", round+1, len(told), want)
		}
		r.clock.Advance(2 * time.Minute)
	}
}
