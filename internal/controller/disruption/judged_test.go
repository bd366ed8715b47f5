package disruption

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
)

// D-02: with many nodes, some are explained, then the next ones, then the first again.
func TestSomeOfManyNodesAreAsked(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i, want := range [][2]int{{0, 2}, {2, 2}, {4, 2}, {0, 2}} {
		if first, count := m.next(5, 2); first != want[0] || count != want[1] {
			t.Errorf("search %d: %d from %d, want %v", i, count, first, want)
		}
	}
	if first, count := m.next(1, 2); first != 0 || count != 1 {
		t.Errorf("%d from %d of one", count, first)
	}
	if first, count := m.next(0, 2); first != 0 || count != 0 {
		t.Errorf("%d from %d of none", count, first)
	}
}

// D-14: other controllers that obey the switch know its last reading.
func TestWhatTheSwitchSaidLast(t *testing.T) {
	t.Parallel()
	c := New(Config{Metrics: metrics.New(prometheus.NewRegistry()), Events: &controllertest.Tape{}})
	for _, why := range []string{"release week", ""} {
		r := one(somePool(), someNode())
		if r.paused = why; c.LastPaused() == why && why != "" {
			t.Fatal("it is known before it was said")
		}
		if c.pause(&r); c.LastPaused() != why {
			t.Errorf("last %q, want %q", c.LastPaused(), why)
		}
	}
}

// K-08: each reason for which nodes are marked has a label of its own.
func TestEachReasonHasALabel(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, reason := range engine.Reasons() {
		label := metrics.Reason(string(reason))
		if label == metrics.Other || seen[label] {
			t.Errorf("%s has the label %s", reason, label)
		}
		seen[label] = true
	}
}
