package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Fit places pods, which are among the snapshot's pending ones, on the snapshot's nodes and launches nothing. It returns
// which pods each node gets, or false when some pod finds no place. Pools count for where nodes could be, as always: pods are
// not moved out of a zone that is theirs to spread over.
func Fit(snapshot *cluster.Snapshot, pods []*cluster.Pod) (map[*cluster.Node][]*cluster.Pod, bool) {
	if _, blocked := able(pods); len(blocked) > 0 {
		return nil, false
	}
	s := newSolver(snapshot, pods, nil)
	for _, p := range s.pools {
		p.closed = true
	}
	s.run(pods)
	if len(s.failed) > 0 || s.topology.Violated() != nil {
		return nil, false
	}
	placed := map[*cluster.Node][]*cluster.Pod{}
	for _, b := range s.bins {
		if len(b.pods) > 0 {
			placed[b.node] = b.pods
		}
	}
	return placed, true
}
