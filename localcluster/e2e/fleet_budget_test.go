package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// budgetMoment is what one event tells about a pool's budget.
type budgetMoment struct {
	revision uint64 // of etcd: it orders claims and nodes together
	node     string // name; "" for a claim without a node
	claim    bool   // the event is about a NodeClaim, else about a Node
	// Of a claim: whether it is going. Of a node: whether it exists, and is initialized.
	going, exists, initialized bool
}

// budgetOf reads an event about a NodeClaim or a Node.
func budgetOf(kind watch.EventType, resource schema.GroupVersionResource, object *unstructured.Unstructured) (
	budgetMoment, error) {
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return budgetMoment{}, fmt.Errorf("%s %s: its resourceVersion is no revision of etcd: %w", resource.Resource,
			object.GetName(), err)
	}
	m := budgetMoment{revision: revision, claim: resource == claimResource, exists: kind != watch.Deleted}
	if !m.claim {
		m.node, m.initialized = object.GetName(), object.GetLabels()[karpenterv1.NodeInitializedLabelKey] == "true"
		return m, nil
	}
	m.node, _, _ = unstructured.NestedString(object.Object, "status", "nodeName")
	m.going = m.exists && going(object)
	return m, nil
}

// going reports whether a NodeClaim is chosen to go, or goes.
func going(claim *unstructured.Unstructured) bool {
	status, _, _ := conditionIn(claim, karpenterv1.ConditionTypeDisruptionReason)
	return claim.GetDeletionTimestamp() != nil || status == "True"
}

// overBudget replays the events in the order of their revisions. It returns a line for each claim that was chosen to
// go after the revision since although the budget, in percent of the initialized nodes, was used up. A node that is
// gone uses up nothing, though its claim may last a little longer: nothing runs there (D-08).
func overBudget(moments []budgetMoment, since uint64, percent int) (lines []string) {
	moments = slices.Clone(moments)
	slices.SortStableFunc(moments, func(a, b budgetMoment) int { return cmp.Compare(a.revision, b.revision) })
	leaving, nodes := map[string]bool{}, map[string]bool{} // by name of the node; nodes: whether it is initialized
	for _, m := range moments {
		switch {
		case !m.claim && !m.exists:
			delete(nodes, m.node)
			continue
		case !m.claim:
			nodes[m.node] = m.initialized
			continue
		case !m.going:
			delete(leaving, m.node)
			continue
		case leaving[m.node] || m.node == "":
			continue
		}
		leaving[m.node] = true
		taken, size := 0, 0
		for name, initialized := range nodes {
			if leaving[name] {
				taken++
			}
			if initialized {
				size++
			}
		}
		if most := (size*percent + 99) / 100; m.revision > since && taken > most {
			lines = append(lines, fmt.Sprintf("at revision %d, with node %s, %d of %d nodes are going; "+
				"the budget of %d %% allows %d", m.revision, m.node, taken, size, percent, most))
		}
	}
	return lines
}

// D-08, the judge itself: a claim whose node is gone uses up nothing, and events count in the order of revisions,
// whichever watch is ahead.
func TestOverBudget(t *testing.T) {
	t.Parallel()
	var moments []budgetMoment
	for i := range 10 { // a budget of 20 %: two of ten
		moments = append(moments, budgetMoment{revision: 1, node: fmt.Sprint("n", i), exists: true, initialized: true})
	}
	goes := func(revision uint64, node string) budgetMoment {
		return budgetMoment{revision: revision, node: node, claim: true, exists: true, going: true}
	}
	gone := func(revision uint64, node string) budgetMoment { return budgetMoment{revision: revision, node: node} }
	cases := []struct {
		what  string
		more  []budgetMoment
		since uint64
		lines int
	}{
		{"two go", []budgetMoment{goes(2, "n0"), goes(3, "n1")}, 1, 0},
		{"three go", []budgetMoment{goes(2, "n0"), goes(3, "n1"), goes(4, "n2")}, 1, 1},
		{"three go, before it counts", []budgetMoment{goes(2, "n0"), goes(3, "n1"), goes(4, "n2")}, 4, 0},
		{"a node is gone before", []budgetMoment{goes(2, "n0"), goes(3, "n1"), gone(4, "n0"), goes(5, "n2")}, 1, 0},
		{"a node is gone after", []budgetMoment{goes(2, "n0"), goes(3, "n1"), gone(5, "n0"), goes(4, "n2")}, 1, 1},
		{"one is taken back", []budgetMoment{goes(2, "n0"), goes(3, "n1"),
			{revision: 4, node: "n0", claim: true, exists: true}, goes(5, "n2")}, 1, 0},
		{"said twice", []budgetMoment{goes(2, "n0"), goes(3, "n1"), goes(4, "n1")}, 1, 0},
	}
	for _, c := range cases {
		if lines := overBudget(append(slices.Clone(moments), c.more...), c.since, 20); len(lines) != c.lines {
			t.Errorf("%s: %d lines, want %d: %q", c.what, len(lines), c.lines, lines)
		}
	}
}
