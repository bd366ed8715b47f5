package oracle

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// The question has the placed pods and nothing without a part in the answer. A plan that places a pod twice is
// refused.
func TestAsk(t *testing.T) {
	t.Parallel()
	s, err := scenario.Make("one-more-pod-20", 1)
	if err != nil {
		t.Fatal(err)
	}
	pod := s.Pending[0].Namespace + "/" + s.Pending[0].Name
	launch := outcome.Launch{Type: s.Nodes[0].Type, Zone: s.Nodes[0].Zone, CapacityType: s.Nodes[0].CapacityType,
		Pods: []string{pod}}
	q, err := ask(s, outcome.Outcome{Launches: []outcome.Launch{launch}})
	if err != nil || len(q.Pods) != 1 || len(q.Launched) != 1 || len(q.Nodes) != 0 ||
		q.Placed[pod] != q.Launched[0].Name {
		t.Errorf("a pod on a new node: %d pods, %d new nodes, %d old ones, %v, %v", len(q.Pods), len(q.Launched),
			len(q.Nodes), q.Placed, err)
	}
	node := s.Nodes[3]
	q, err = ask(s, outcome.Outcome{Existing: map[string][]string{node.Name: {pod}}})
	if err != nil || len(q.Nodes) != 1 || len(q.Pods) != 1+len(node.Pods) {
		t.Errorf("a pod on an old node: %d nodes, %d pods, %v; want that node with its pods", len(q.Nodes),
			len(q.Pods), err)
	}
	_, err = ask(s, outcome.Outcome{Launches: []outcome.Launch{launch}, Existing: map[string][]string{
		node.Name: {pod},
	}})
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a pod placed twice: %v", err)
	}
	if err := Find("no-such-program"); err == nil || !strings.Contains(err.Error(), "make oraclecheck") {
		t.Errorf("no program: %v", err)
	}
}
