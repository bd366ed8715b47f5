package engine_test

import (
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// coming is a pool of nodes of one size, first, second and third, none of them open. Some pods were promised a place
// on the first one: two that keep apart, and two of 3 cores that do not. It also returns the nodes.
func coming(t *testing.T) (s *cluster.Snapshot, nodes []*cluster.Node) {
	t.Helper()
	parsed, err :=
		enginetest.Parse("type t cpu=8 mem=32Gi od=0.4\npool default\npod a0 cpu=1 mem=1Gi labels=app=a apart=host\n" +
			"pod b0 cpu=1 mem=1Gi labels=app=b apart=host\npod free-0..1 cpu=3 mem=1Gi labels=app=c\n")
	if err != nil {
		t.Fatal(err)
	}
	parts := *parsed
	for _, name := range []string{"first", "second", "third"} {
		nodes = append(nodes, &cluster.Node{Name: name, Claim: name, Pool: "default",
			Allocatable: parts.Pools[0].Catalog.Types[0].Allocatable})
	}
	parts.Nodes = nodes
	for _, pod := range parts.Pending {
		pod.Promised = "first"
	}
	return cluster.New(parts), nodes
}

func namesToKeep(s *cluster.Snapshot, node string, opens map[string]bool, now int64) (names []string) {
	for _, pod := range engine.PlacesToKeep(s, node, node, opens, now) {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// B-16: the places of pods that keep apart are kept on a node that opens while others of its plan are on their way,
// and on none that opens last.
func TestPlacesOfPodsThatKeepApartAreKept(t *testing.T) {
	t.Parallel()
	s, nodes := coming(t)
	if got := namesToKeep(s, "first", nil, 0); !slices.Equal(got, []string{"a0", "b0"}) {
		t.Errorf("keeps the places of %v on the first node, want a0 and b0", got)
	}
	for _, node := range []string{"second", "gone"} {
		if got := namesToKeep(s, node, nil, 0); len(got) > 0 {
			t.Errorf("keeps the places of %v on node %s, where nobody was promised one", got, node)
		}
	}
	if got := namesToKeep(s, "first", nil, engine.UnderWay); len(got) > 0 {
		t.Errorf("keeps the places of %v although the other nodes do not come", got)
	}
	if got := namesToKeep(s, "first", map[string]bool{"second": true, "third": true}, 0); len(got) > 0 {
		t.Errorf("keeps the places of %v although the other nodes open just now", got)
	}
	for _, node := range nodes[1:] {
		node.Initialized = true
		node.Used = node.Allocatable // and no room elsewhere
	}
	if got := namesToKeep(s, "first", nil, 0); len(got) > 0 {
		t.Errorf("keeps the places of %v although no other node is on its way", got)
	}
}

// B-16: no place is kept if all nodes that the plan counts on have one size, and the open ones have room for half of
// what waits.
func TestNoPlaceIsKeptWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	sized := func(n *cluster.Node, percent int64) { // in cores and memory
		n.Allocatable = slices.Clone(n.Allocatable)
		for _, r := range []int{resources.CPU, resources.Memory} {
			n.Allocatable[r] = n.Allocatable[r] * percent / 100
		}
	}
	cordoned := []cluster.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: cluster.NoSchedule}}
	uses := func(n *cluster.Node, r int, amount int64) {
		n.Initialized, n.Used = true, make(resources.Vector, len(n.Allocatable))
		n.Used[r] = amount
	}
	for what, row := range map[string]struct {
		change func(open, other *cluster.Node)
		opens  map[string]bool
		keeps  bool
	}{
		"none is open":          {func(*cluster.Node, *cluster.Node) {}, nil, true},
		"one opens just now":    {func(*cluster.Node, *cluster.Node) {}, map[string]bool{"second": true}, false},
		"4 of 8 cores are free": {func(open, _ *cluster.Node) { uses(open, resources.CPU, 4000) }, nil, false},
		"a little less":         {func(open, _ *cluster.Node) { uses(open, resources.CPU, 4001) }, nil, true},
		"2 of 32 GiB are free": {func(open, _ *cluster.Node) { uses(open, resources.Memory, 30<<30) }, nil,
			false},
		"less memory than that": {func(open, _ *cluster.Node) { uses(open, resources.Memory, 30<<30+1) }, nil,
			true},
		"the open one goes": {func(open, _ *cluster.Node) { open.Initialized, open.Deleting = true, true },
			nil, true},
		"the open one is cordoned": {func(open, _ *cluster.Node) { open.Initialized = true; open.Taints = cordoned },
			nil, true},
		"the open one is not ready": {func(open, _ *cluster.Node) { open.Initialized, open.NotReady = true, true },
			nil, true},
		"it is of another pool": {func(open, _ *cluster.Node) { open.Initialized, open.Pool = true, "other" },
			nil, true},
		"one to come is larger": {func(open, other *cluster.Node) { open.Initialized = true; sized(other, 120) },
			nil, true},
		"one to come is smaller": {func(open, other *cluster.Node) { open.Initialized = true; sized(other, 80) },
			nil, true},
		"it is nearly of that size": {func(open, other *cluster.Node) { open.Initialized = true; sized(other, 95) },
			nil, false},
		"the open one was not meant": {func(open, _ *cluster.Node) { open.Initialized = true; sized(open, 200) }, nil,
			false},
	} {
		s, nodes := coming(t)
		row.change(nodes[1], nodes[2])
		if got := namesToKeep(s, "first", row.opens, 0); (len(got) > 0) != row.keeps {
			t.Errorf("%s: keeps the places of %v, want some: %v", what, got, row.keeps)
		}
	}
}
