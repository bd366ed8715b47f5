package engine_test

import (
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
)

// L-41: the order is total, so that two controllers choose the same nodes. A snapshot lists nodes by name already, so
// only the comparison itself shows that the name decides among equals.
func TestTheTrimOrderEndsWithTheName(t *testing.T) {
	t.Parallel()
	a, b := &cluster.Node{Claim: "a"}, &cluster.Node{Claim: "b"}
	if engine.CompareTrim(a, b) >= 0 || engine.CompareTrim(b, a) <= 0 || engine.CompareTrim(a, a) != 0 {
		t.Error("of two nodes that differ in nothing else the first by name goes first")
	}
}

// L-41: which of two nodes goes first does not depend on the order of the comparison. Pods are counted one by one only
// if they cost the same.
func TestTheTrimOrderIsTheSameFromBothSides(t *testing.T) {
	t.Parallel()
	pods := func(priorities ...int32) (list []*cluster.Pod) {
		for _, priority := range priorities {
			list = append(list, &cluster.Pod{Priority: priority})
		}
		return list
	}
	for name, c := range map[string]struct{ first, second *cluster.Node }{
		"one vital pod after two others": {&cluster.Node{Claim: "b", Pods: pods(0, 0)}, &cluster.Node{Claim: "a",
			Pods: pods(1e9)}},
		"two worthless before one other": {&cluster.Node{Claim: "b", Pods: pods(-1e9, -1e9)}, &cluster.Node{Claim: "a",
			Pods: pods(0)}},
		"empty before one worthless": {&cluster.Node{Claim: "b"}, &cluster.Node{Claim: "a", Pods: pods(-1e9)}},
	} {
		if engine.CompareTrim(c.first, c.second) >= 0 || engine.CompareTrim(c.second, c.first) <= 0 {
			t.Errorf("%s: %d and %d", name, engine.CompareTrim(c.first, c.second),
				engine.CompareTrim(c.second, c.first))
		}
	}
}

// L-13, L-31: every node with a claim of the pool stays or leaves. One that is being replaced counts as leaving unless
// its replacement is being deleted. Nodes without a claim are another's.
func TestWhichNodesLeave(t *testing.T) {
	t.Parallel()
	marked, deleted, elsewhere, unmanaged := ready("marked"), ready("deleted"), ready("elsewhere"), ready("unmanaged")
	marked.Disrupting, deleted.Deleting, elsewhere.Pool, unmanaged.Claim = true, true, "other", ""
	comes, given := ready("comes"), ready("given")
	comes.Replaces = []string{"replaced-claim"}
	given.Replaces, given.Deleting = []string{"kept-claim"}, true
	staying, leaving := engine.Leaving(
		snapshotOf(marked, deleted, elsewhere, unmanaged, comes, given, ready("replaced"), ready("kept"),
			ready("other")), "default")
	names := func(nodes []*cluster.Node) (list []string) {
		for _, node := range nodes {
			list = append(list, node.Name)
		}
		return list
	}
	if got, want := names(staying), []string{"comes", "kept", "other"}; !slices.Equal(got, want) {
		t.Errorf("%v stay, want %v", got, want)
	}
	if got, want := names(leaving), []string{"deleted", "given", "marked", "replaced"}; !slices.Equal(got, want) {
		t.Errorf("%v leave, want %v", got, want)
	}
}

// L-40, D-12: the bound of a static pool is the lower one of its replicas and its limit; the limit when both are
// equal.
func TestWhichBoundIsExceeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		replicas, soft int64
		want           string
	}{
		{2, limit.None, "5 nodes, 2 replicas"}, {2, 3, "5 nodes, 2 replicas"}, {3, 3, "5 nodes, limit 3 (soft limit)"},
		{4, 3, "5 nodes, limit 3 (soft limit)"},
	} {
		pool := &cluster.Pool{Static: true, Replicas: c.replicas, Limits: limit.Limits{SoftNodes: c.soft,
			HardNodes: limit.None}}
		if _, text := engine.Excessive(pool, 5); text != c.want {
			t.Errorf("%d replicas, limit %d: %q, want %q", c.replicas, c.soft, text, c.want)
		}
	}
}
