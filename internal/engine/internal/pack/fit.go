package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Fit places pods on the snapshot's nodes and launches nothing. The pods must be among the snapshot's pending ones. It
// returns which pods each node gets, or false when some pod finds no place. Pools count for where nodes could be, as
// always: pods are not moved out of a zone that is theirs to spread over.
func Fit(snapshot *cluster.Snapshot, pods []*cluster.Pod) (map[*cluster.Node][]*cluster.Pod, bool) {
	if _, blocked := able(pods); len(blocked) > 0 {
		return nil, false
	}
	s := within(snapshot, pods)
	if len(s.failed) > 0 || s.topology.Violated() != nil {
		return nil, false
	}
	return s.onNodes(), true
}

// Room is [Fit] for as many of the pods as have a place, and returns the others as rest. No pod has a place if
// the placement violates a spread constraint in the end.
func Room(snapshot *cluster.Snapshot,
	pods []*cluster.Pod) (placed map[*cluster.Node][]*cluster.Pod, rest []*cluster.Pod) {
	free, blocked := able(pods)
	s := within(snapshot, free)
	if s.topology.Violated() != nil {
		return nil, pods
	}
	return s.onNodes(), append(blocked, s.failed...)
}

// within places pods on the nodes that there are.
func within(snapshot *cluster.Snapshot, pods []*cluster.Pod) *solver {
	s := newSolver(snapshot, pods, nil)
	for _, p := range s.pools {
		p.closed = true
	}
	s.run(pods)
	return s
}

// onNodes returns which pods were placed on each node.
func (s *solver) onNodes() map[*cluster.Node][]*cluster.Pod {
	placed := map[*cluster.Node][]*cluster.Pod{}
	for _, n := range s.existing {
		if len(n.pods) > 0 {
			placed[n.node] = n.pods
		}
	}
	return placed
}
