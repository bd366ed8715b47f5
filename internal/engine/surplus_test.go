package engine

import (
	"cmp"
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// L-42: which claims leave: those deleted, marked for whatever reason, or replaced by a claim that stays. Those that
// are marked as too many, and not deleted yet, may be taken back.
func TestWhichClaimsLeave(t *testing.T) {
	t.Parallel()
	claim := func(name string, intent plan.DisruptionReason, deleting bool, replaces ...string) CountedClaim {
		return CountedClaim{Name: name, Marked: intent != "", Intent: intent, Deleting: deleting, Replaces: replaces}
	}
	for name, c := range map[string]struct {
		claims  []CountedClaim
		marked  []string
		leaving int64
	}{
		"none":         {[]CountedClaim{claim("a", "", false)}, nil, 0},
		"too many":     {[]CountedClaim{claim("a", plan.NodeLimitExceeded, false)}, []string{"a"}, 1},
		"replicas":     {[]CountedClaim{claim("a", plan.ReplicasExceeded, false)}, []string{"a"}, 1},
		"another":      {[]CountedClaim{claim("a", plan.Drifted, false)}, nil, 1},
		"no reason":    {[]CountedClaim{{Name: "a", Marked: true}}, nil, 1},
		"taken back":   {[]CountedClaim{{Name: "a", Intent: plan.NodeLimitExceeded}}, nil, 0},
		"deleted":      {[]CountedClaim{claim("a", plan.NodeLimitExceeded, true)}, nil, 1},
		"just deleted": {[]CountedClaim{claim("a", "", true)}, nil, 1},
		"replaced":     {[]CountedClaim{claim("a", "", false), claim("b", "", false, "a")}, nil, 1},
		"no more":      {[]CountedClaim{claim("a", "", false), claim("b", "", true, "a")}, nil, 1},
	} {
		if marked, leaving := (Count{Claims: c.claims}).leaving(); !slices.Equal(marked, c.marked) ||
			leaving != c.leaving {
			t.Errorf("%s: marked %v, %d leave; want %v, %d", name, marked, leaving, c.marked, c.leaving)
		}
	}
}

// L-41, L-42: claims that the snapshot does not have yet come last in the trimming order, whatever their names. So
// their choice is taken back first; among themselves they go by name.
func TestWhatThePictureLacksIsLastInTheTrimmingOrder(t *testing.T) {
	t.Parallel()
	order := byTrimOrder(cluster.New(cluster.Snapshot{Nodes: []*cluster.Node{
		{Claim: "m"}, {Claim: "z", Launched: true}, {Name: "nobody's"},
	}}))
	want := []string{"m", "z", "", "a", "x"} // the picture has the first two
	for i, left := range want {
		for j, right := range want {
			if got := order(left, right); cmp.Compare(got, 0) != cmp.Compare(i, j) {
				t.Errorf("%q and %q compare as %d", left, right, got)
			}
		}
	}
}
