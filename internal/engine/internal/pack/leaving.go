package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// This file counts what runs on nodes that go (P-03, P-04, D-09). kube-scheduler counts it until it is gone, so pods
// that wait now are placed beside it. The pods on such nodes move one after another. A pod under a PodDisruptionBudget
// leaves when those before it run elsewhere, and is placed beside those that have not left yet. Pods under none all
// leave at once. A node is gone once the last of them has left. So a plan that places them all is an order in which
// they can move.

// leaver is a pod to place that runs on a node which goes.
type leaver struct {
	bin     int
	guarded bool
	left    bool
}

// addLeaving adds closed nodes, on which nothing is placed but what runs there counts: those that go, and those that a
// what-if has closed. A node of ours that no pod has to leave any more will be gone in a moment, and counts for
// nothing. When a node without a claim goes is unknown. Until then kube-scheduler counts it, if only as an empty
// domain.
func (s *solver) addLeaving(pods []*cluster.Pod) {
	if !s.topology.Constrained() {
		return
	}
	placing := map[string]bool{}
	add := func(node *cluster.Node) {
		n := 0
		for _, pod := range node.Pods {
			if !pod.Fixed && !pod.Terminating {
				n++
			}
		}
		if n == 0 && node.Claim != "" && (node.Deleting || node.Disrupting) {
			return
		}
		if len(placing) == 0 {
			for _, pod := range pods {
				placing[pod.UID] = true
			}
		}
		s.addNode(&existing{node: node, closed: true, staying: n}, false)
		for _, pod := range node.Pods {
			if placing[pod.UID] && !pod.Fixed && !pod.Terminating {
				s.leavers[pod.UID] = &leaver{bin: len(s.existing) - 1}
			}
		}
	}
	for _, node := range s.snapshot.Nodes {
		if node.Deleting || node.Disrupting {
			add(node)
		}
	}
	for _, node := range s.snapshot.Leaving {
		add(node)
	}
	for _, node := range s.snapshot.Closed {
		add(node)
	}
	if len(s.leavers) > 0 {
		s.topology.Shrink()
		s.guard(pods)
	}
}

// guard finds out which leavers go one after another: those under a budget that does not let all of them go at once.
func (s *solver) guard(pods []*cluster.Pod) {
	if len(s.snapshot.Guards) == 0 {
		return
	}
	by, count := map[*cluster.Shape]int{}, make([]int, len(s.snapshot.Guards))
	for _, pod := range pods {
		if s.leavers[pod.UID] == nil {
			continue
		}
		at, known := by[pod.Shape]
		if !known {
			at = slices.IndexFunc(s.snapshot.Guards, func(g cluster.Guard) bool {
				return g.Namespace == pod.Namespace && g.Pods.Matches(pod.Shape.Labels)
			})
			by[pod.Shape] = at
		}
		if at >= 0 {
			count[at]++
		}
	}
	for _, pod := range pods {
		if l := s.leavers[pod.UID]; l != nil {
			at := by[pod.Shape]
			l.guarded = at >= 0 && count[at] > s.snapshot.Guards[at].AtOnce
		}
	}
}

// letGo takes away those pods that all leave at once.
func (s *solver) letGo(t *topology.Tracker) {
	for _, b := range s.existing {
		if !b.closed {
			continue
		}
		for _, pod := range b.node.Pods {
			if l := s.leavers[pod.UID]; l != nil && !l.guarded {
				s.leave(t, pod)
			}
		}
	}
}

// leave takes a pod away from where it runs, and its node when it was the last. It reports false for a pod that runs
// nowhere, or has left already.
func (s *solver) leave(t *topology.Tracker, pod *cluster.Pod) bool {
	l := s.leavers[pod.UID]
	if l == nil || l.left {
		return false
	}
	l.left = true
	b := s.existing[l.bin]
	t.Leave(pod.Shape, l.bin, topology.Running)
	if b.staying--; b.staying == 0 && b.node.Claim != "" {
		for _, other := range b.node.Pods {
			if other.Fixed || other.Terminating {
				t.Leave(other.Shape, l.bin, standingOf(other))
			}
		}
		t.Vanish(l.bin)
	}
	return true
}

// back undoes leave.
func (s *solver) back(t *topology.Tracker, pod *cluster.Pod) {
	l := s.leavers[pod.UID]
	l.left = false
	b := s.existing[l.bin]
	if b.staying++; b.staying == 1 && b.node.Claim != "" {
		t.Occupy(l.bin)
		for _, other := range b.node.Pods {
			if other.Fixed || other.Terminating {
				t.Place(other.Shape, l.bin, standingOf(other))
			}
		}
	}
	t.Place(pod.Shape, l.bin, topology.Running)
}

// packLeaving is [solver.packLiked] for pods of which some may run. A node that goes counts no more once the last of
// them has left it.
func (s *solver) packLeaving(pods []*cluster.Pod) []*cluster.Pod {
	rest := s.packLiked(pods)
	if len(s.leavers) == 0 {
		return rest
	}
	waiting := map[string]bool{}
	for _, pod := range rest {
		waiting[pod.UID] = true
	}
	for _, pod := range pods {
		if !waiting[pod.UID] {
			s.leave(s.topology, pod)
		}
	}
	return rest
}

// leaving reports whether the pod runs on a node that goes, in the way of some constraint.
func (s *solver) leaving(pod *cluster.Pod) bool { return s.leavers[pod.UID] != nil }

// placeOne places a pod on a node that is there or planned, or on a new one. A pod that runs leaves its node for that.
func (s *solver) placeOne(pod *cluster.Pod) bool {
	if s.thrifty {
		return s.moved(pod, func(info *shape) bool { return s.placeThriftily(pod, info) })
	}
	return s.moved(pod, func(info *shape) bool { return s.placeInBins(pod, info) || s.open(pod, info) })
}

// moved takes a pod from where it runs while it is placed, and puts it back there when that fails.
func (s *solver) moved(pod *cluster.Pod, place func(*shape) bool) bool {
	gone := s.leave(s.topology, pod)
	if place(s.info(pod.Shape)) {
		return true
	}
	if gone {
		s.back(s.topology, pod)
	}
	return false
}
