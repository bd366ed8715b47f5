package pack

import (
	"maps"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// unreachable returns floors that make the next round place differently, when no order of binding leads to this plan;
// nil when one does. The scheduler sees all planned nodes at once, the empty ones among them: what was placed before a
// node was opened may not be bound any more once it stands there. So the pods are bound here once more, as the scheduler
// would with every node in place, and the spread constraints of those that get stuck are taken at their strictest: with a
// minimum of 0, what fits can be bound in any order.
func (s *solver) unreachable(known topology.Floors) topology.Floors {
	if !s.topology.Late() {
		return nil
	}
	stuck := s.rehearse()
	if len(stuck) == 0 {
		return nil
	}
	floors := s.topology.Strictest(stuck)
	maps.DeleteFunc(floors, func(i int, _ int32) bool {
		floor, set := known[i]
		return set && floor == 0 // did not help
	})
	if len(floors) == 0 {
		return nil
	}
	return floors
}

// place is a placed pod and its bin.
type place struct {
	pod *cluster.Pod
	bin int
}

// rehearse binds the placed pods in passes and returns the shapes of those that cannot be bound.
func (s *solver) rehearse() []*cluster.Shape {
	var shapes []*cluster.Shape
	t := topology.New(s.tied, s.snapshot.Namespaces)
	where := map[string]place{}
	for number, b := range s.bins {
		s.stand(t, b)
		for _, pod := range b.pods {
			where[pod.UID] = place{pod, number}
		}
	}
	var now, later []place
	for _, uid := range s.order {
		switch p := where[uid]; {
		case len(t.Rules(p.pod.Shape).Keys) == 0:
		case s.leaving(p.pod):
			later = append(later, p)
		default:
			now = append(now, p)
		}
	}
	s.standAgain(t)
	stuck := s.bindAgain(t, now)
	s.letGo(t)
	for _, p := range append(stuck, s.bindAgain(t, later)...) {
		shapes = append(shapes, p.pod.Shape)
	}
	return shapes
}

// bindAgain binds pods in passes, those that run after they have left, and returns those that cannot be bound.
func (s *solver) bindAgain(t *topology.Tracker, waiting []place) []place {
	for {
		var still []place
		for _, p := range waiting {
			gone := s.leave(t, p.pod)
			if t.AllowedIn(p.pod.Shape, p.bin) {
				t.Place(p.pod.Shape, p.bin, topology.Placed)
				continue
			}
			if gone {
				s.back(t, p.pod)
			}
			still = append(still, p)
		}
		if len(still) == 0 || len(still) == len(waiting) {
			return still
		}
		waiting = still
	}
}

// standAgain lets the leavers run where they do, as a fresh tracker has it.
func (s *solver) standAgain(t *topology.Tracker) {
	if len(s.leavers) > 0 {
		t.Shrink()
	}
	for _, l := range s.leavers {
		if l.left {
			l.left = false
			s.bins[l.bin].staying++
		}
	}
}
