package disruption

import (
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// D-01: each node of a command that was begun is told, with what the command costs before and after and what it launches; one
// that was not marked is not, and what has no price counts nothing.
func TestWhatIsToldOfACommand(t *testing.T) {
	t.Parallel()
	remove := func(claim string, price resources.Money) plan.Remove {
		return plan.Remove{Claim: claim, Reason: plan.Drifted, Price: price}
	}
	launch := plan.Launch{Pool: "default", Replaces: []string{"a", "b"}}
	launch.Cheapest.Type, launch.Cheapest.Price = "m", 2_000_000
	p := plan.Plan{Launches: []plan.Launch{launch}, Removes: []plan.Remove{
		remove("unmarked", 9_000_000), remove("a", 4_000_000), remove("c", resources.Unpriced), remove("b", 1_000_000),
	}}
	tape := &controllertest.Tape{}
	New(Config{Events: tape}).reportCommands(p, apply.Outcome{Marked: []string{"a", "b", "c"}})
	together := " DisruptionLaunching: The node is to go: Drifted: 5.000/h before, 2.000/h after, once default/m is there"
	want := []string{"a" + together, "b" + together,
		"c DisruptionLaunching: The node is to go: Drifted: 0.000/h before, 0.000/h after"}
	if said := tape.Said(); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// D-04, D-05: what a replacement has to save is as it was configured.
func TestTheTermsAreAsConfigured(t *testing.T) {
	t.Parallel()
	terms := New(Config{MinSaving: 7, MinSavingPercent: 3, SpotToSpot: true}).terms(one(somePool(), someNode()))
	if terms.MinSaving != 7 || terms.MinSavingPercent != 3 || !terms.SpotToSpot || terms.Now != 1000 {
		t.Errorf("terms %+v", terms)
	}
}
