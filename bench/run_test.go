package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/karpenter"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Both sides see every pod of a scenario exactly once, and prices are those of the catalogue.
func TestBothSidesAccountForEveryPod(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"diverse-50", "preferences-20", "plain-100", "one-more-pod-20"} {
		for _, side := range []string{report.Joiner, report.Karpenter} {
			r := run{Scenario: name, Side: side, Seed: 1, Peer: karpenter.Config{Workers: 1, Limit: time.Minute}}
			s, err := scenario.Make(name, r.Seed)
			if err != nil {
				t.Fatal(err)
			}
			pods := s.Pending
			if s.OneByOne {
				pods = pods[:1]
			}
			p, err := r.start(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := batch(p, pods); err != nil {
				t.Fatal(err)
			}
			o, err := p.Outcome()
			if err != nil {
				t.Fatal(err)
			}
			seen := slices.Clone(o.Unplaced)
			for _, l := range o.Launches {
				seen = append(seen, l.Pods...)
				if l.Price <= 0 || l.Type == "" || l.Zone == "" {
					t.Errorf("%s, %s: launch %+v", name, side, l)
				}
			}
			for _, placed := range o.Existing {
				seen = append(seen, placed...)
			}
			slices.Sort(seen)
			if len(seen) != len(pods) || len(slices.Compact(seen)) != len(pods) || len(o.Unplaced) > 0 {
				t.Errorf("%s, %s: %d pods in the plan, %d unplaced; want %d and 0", name, side, len(seen),
					len(o.Unplaced), len(pods))
			}
		}
	}
}

// With a model of kube-scheduler, the result of consolidation is a function of the seed. The model moves other pods
// than the plan does, and leaves none without a place.
func TestTheModelPlacesWhatMoved(t *testing.T) {
	t.Parallel()
	ends := map[uint64][]string{}
	for _, seed := range []uint64{0, 1, 1} {
		r := run{Scenario: "consolidate-20", Side: report.Joiner, Seed: 1, SchedulerSeed: seed,
			DisruptLimit: time.Minute}
		s, err := scenario.Make(r.Scenario, r.Seed)
		if err != nil {
			t.Fatal(err)
		}
		a, err := r.disrupt(s)
		if err != nil {
			t.Fatal(err)
		}
		if a.Record.PodsUnplaced != 0 || a.Record.CutOff {
			t.Errorf("seed %d: %d pods without a place, cut off %t", seed, a.Record.PodsUnplaced, a.Record.CutOff)
		}
		ends[seed] = append(ends[seed], a.Note)
	}
	if one := ends[1]; one[0] != one[1] || one[0] == ends[0][0] || !strings.Contains(one[0], "found no node for") {
		t.Errorf("where Joiner expects pods: %q\nby the model, twice: %q", ends[0], one)
	}
}
