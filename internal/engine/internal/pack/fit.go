package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Fit places pods, which are among the snapshot's pending ones, on the snapshot's nodes and launches nothing. It returns
// which pods each node gets, or false when some pod finds no place.
func Fit(snapshot *cluster.Snapshot, pods []*cluster.Pod) (map[*cluster.Node][]*cluster.Pod, bool) {
	closed := *snapshot
	closed.Pools = nil
	s := newSolver(&closed, pods, nil)
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
