package main

import (
	"slices"
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
				t.Errorf("%s, %s: %d pods in the plan, %d unplaced; want %d and 0", name, side, len(seen), len(o.Unplaced), len(pods))
			}
		}
	}
}
