package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Commands that cannot stand together are given up from the last on, an eighth at a time and at least one, until the
// rest can. Each check sees the cluster without their nodes and with their launches, and with no others.
func TestCommandsAreGivenUpUntilTheRestStandTogether(t *testing.T) {
	t.Parallel()
	for most, want := range map[int][]int{5: {16, 14, 12, 10, 8, 7, 6, 5}, 16: {16},
		0: {16, 14, 12, 10, 8, 7, 6, 5, 4, 3,
			2, 1}} {
		var nodes []*cluster.Node
		d := &disruption{}
		for i := range 16 {
			node := &cluster.Node{Name: fmt.Sprintf("n%02d", i), Claim: fmt.Sprintf("c%02d", i), Pool: "default"}
			nodes = append(nodes, node)
			d.chosen = append(d.chosen, command{nodes: []*cluster.Node{node}, launches: []plan.Launch{{Pool: "default",
				Slot: i}}})
		}
		d.base = cluster.New(cluster.Snapshot{Nodes: nodes})
		var asked []int
		d.dropUntilTogether(func(s *cluster.Snapshot, launches []plan.Launch) bool {
			n := len(launches)
			if left := len(s.Nodes); left != 16-n || n > 0 && launches[n-1].Slot != n-1 {
				t.Errorf("%d launches are asked about beside %d nodes, want the first and as many nodes gone", n, left)
			}
			asked = append(asked, n)
			return n <= most
		})
		if !slices.Equal(asked, want) || len(d.chosen) != most {
			t.Errorf("asked about %v, want %v; %d are left, want %d", asked, want, len(d.chosen), most)
		}
	}
}
