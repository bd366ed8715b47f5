package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
)

// This file keeps consolidation from going in circles where there are buffers (K-39, D-15). kube-scheduler knows
// nothing of them, and likes nodes on which little runs. So a pod that has to move may well take the room of a buffer.
// Then that room would be launched again, the pod's new node would be wasteful, and so on for ever.

// roomStays reports whether all buffers that have room in s, a what-if of d, still have room once its pending pods are
// placed. It tries three placements: on quiet nodes first, on busy ones first, and as they are planned. It is true
// where there is no room for buffers.
func (d *disruption) roomStays(s *cluster.Snapshot) bool {
	if len(d.origin.Buffers) == 0 {
		return true
	}
	kept := map[string]bool{}
	var movers []*cluster.Pod
	for _, pod := range s.Pending {
		if pod.IsBuffer() {
			kept[pod.UID] = true
		} else {
			movers = append(movers, pod)
		}
	}
	bare, room := s.Unreserved()
	for _, pods := range room {
		for _, pod := range pods {
			kept[pod.UID] = true
		}
	}
	buffers := slices.DeleteFunc(slices.Clone(d.origin.Buffers), func(pod *cluster.Pod) bool { return !kept[pod.UID] })
	quiet := func(n *cluster.Node) bool { return len(room[n.ID()]) > 0 || unused(n) }
	for _, first := range []func(*cluster.Node) bool{
		quiet, func(n *cluster.Node) bool { return !quiet(n) }, func(*cluster.Node) bool { return true },
	} {
		if !roomAfter(bare, movers, buffers, first) {
			return false
		}
	}
	return true
}

// roomAfter places pods on the nodes that come first, then on the others, and reports whether the buffers have room
// after that.
func roomAfter(s *cluster.Snapshot, movers, buffers []*cluster.Pod, first func(*cluster.Node) bool) bool {
	placed, rest := pack.Room(s.Closing(func(n *cluster.Node) bool { return !first(n) }), movers)
	s = s.Bind(placed)
	if len(rest) > 0 {
		if placed, rest = pack.Room(s, rest); len(rest) > 0 {
			return false
		}
		s = s.Bind(placed)
	}
	placed, rest = pack.Room(s.Closing(unused), buffers) // as withBuffers does
	if len(rest) > 0 {
		_, rest = pack.Room(s.Bind(placed), rest)
	}
	return len(rest) == 0
}
