package rounds_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/bench/internal/joiner"
	"github.com/joiner-autoscaler/joiner/bench/internal/karpenter"
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/rounds"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Both sides, on a small cluster: every round keeps the budget, and in the end all pods have a place and the price is
// lower (B-05). The drifted nodes of the first budget are replaced (B-06).
func TestBothSides(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"consolidate-20", "drift-20"} {
		s, err := scenario.Make(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		own, err := joiner.NewDisrupter(s, joiner.Costs{})
		if err != nil {
			t.Fatal(err)
		}
		peer, err := karpenter.NewDisrupter(s, karpenter.Config{Workers: karpenter.Workers})
		if err != nil {
			t.Fatal(err)
		}
		pods := 0
		for _, n := range s.Nodes {
			pods += len(n.Pods)
		}
		for side, d := range map[string]rounds.Side{"joiner": own, "karpenter": peer} {
			run := rounds.Run{Side: d, Scenario: s, Limit: time.Hour}
			result, err := run.Do()
			if err != nil {
				t.Fatalf("%s, %s: %v", name, side, err)
			}
			if result.Placed != pods || result.Unplaced != 0 || result.FirstRemoved > 2 {
				t.Errorf("%s, %s: %d pods of %d placed, %d nodes in the first round: %+v", name, side, result.Placed,
					pods, result.FirstRemoved, result)
			}
			if s.Disrupt == scenario.Consolidate && (result.After >= result.Before || result.Nodes == len(s.Nodes)) {
				t.Errorf("%s, %s: nothing was gained: %+v", name, side, result)
			}
			if s.Disrupt == scenario.Drift && result.Removed != 2 {
				t.Errorf("%s, %s: %d drifted nodes went; want 2", name, side, result.Removed)
			}
		}
	}
}

// forgetful removes a node and does not say where its pods go.
type forgetful struct{ node string }

func (f *forgetful) Round(time.Duration) (rounds.Step, error) {
	return rounds.Step{Removes: []string{f.node}}, nil
}
func (f *forgetful) AddNode(scenario.Node) error    { return nil }
func (f *forgetful) RemoveNode(scenario.Node) error { return nil }
func (f *forgetful) Bind(*corev1.Pod) error         { return nil }
func (f *forgetful) Place([]*corev1.Pod, []scenario.Node) (outcome.Outcome, error) {
	return outcome.Outcome{}, nil
}

// A side that loses pods, or removes a node that does not exist, has no figures.
func TestLostPodsAreAnError(t *testing.T) {
	t.Parallel()
	s, err := scenario.Make("drift-3", 1)
	if err != nil {
		t.Fatal(err)
	}
	run := rounds.Run{Side: &forgetful{s.Nodes[0].Name}, Scenario: s, Limit: time.Hour}
	if _, err := run.Do(); err == nil || !strings.Contains(err.Error(), "were to be placed") {
		t.Errorf("lost pods: %v", err)
	}
	run = rounds.Run{Side: &forgetful{"no-such-node"}, Scenario: s, Limit: time.Hour}
	if _, err := run.Do(); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a node that is not there: %v", err)
	}
}
