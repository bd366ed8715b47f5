package disruption

import (
	"fmt"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// V-07, D-03, D-06: the next round comes when the first quiet time, pause or budget ends, or after a minute at the
// latest. Ends in the past, or never, do not count.
func TestWhenSomethingChangesByTimeAlone(t *testing.T) {
	t.Parallel()
	const never = cluster.Never
	for name, c := range map[string]struct {
		quiet []int64 // when the quiet times of nodes end; it is 1000 now
		pause []int64 // when the pauses of pools end
		want  time.Duration
	}{
		"nothing":           {nil, nil, time.Minute},
		"never":             {[]int64{never}, nil, time.Minute},
		"ended":             {[]int64{10, 999}, nil, time.Minute},
		"now":               {[]int64{1000}, nil, time.Minute},
		"soon":              {[]int64{never, 1030, 1020, 1040}, nil, 20 * time.Second},
		"late":              {[]int64{1061}, nil, time.Minute},
		"a pause":           {nil, []int64{1030}, 30 * time.Second},
		"a late pause":      {nil, []int64{1100}, time.Minute},
		"the first of both": {[]int64{1050}, []int64{900, 1045, 1035, 1040}, 35 * time.Second},
		"quiet first":       {[]int64{1005}, []int64{1045}, 5 * time.Second},
	} {
		m := New(Config{})
		for i, until := range c.pause {
			m.memory.recall(fmt.Sprint(i), pause{until: at(until)})
		}
		s := cluster.Snapshot{}
		for _, end := range c.quiet {
			s.Nodes = append(s.Nodes, &cluster.Node{ConsolidatableAt: end})
		}
		r := round{now: at(1000), snapshot: cluster.New(s), pools: map[string]*karpenterv1.NodePool{}}
		if got := m.untilNext(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
