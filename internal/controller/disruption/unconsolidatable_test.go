package disruption_test

import (
	"strings"
	"testing"
)

// D-02: a node that was looked at and stays says why, and one that goes does not.
func TestANodeThatNothingIsCheaperThanSaysSo(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]string{
		"100%": "a Unconsolidatable: The node stays: its pods fit nowhere else, and nothing was found that costs enough less",
		"0":    "a Unconsolidatable: The node stays: the disruption budgets of its NodePool allow no consolidation now",
	} {
		r := clusterOf(t, budget, map[string]string{"a": "small"}, "1500m")
		r.turn(t)
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, want) {
			t.Errorf("said %s\nwant %s", said, want)
		}
	}
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.turn(t)
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "Unconsolidatable") {
		t.Errorf("said %s", said)
	}
}

// D-02: a node that must not be disrupted does not say that nothing cheaper was found, and keeps no other from saying
// it.
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
