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
	shape *cluster.Shape
	bin   int
}

// rehearse binds the placed pods in passes and returns the shapes of those that cannot be bound.
func (s *solver) rehearse() []*cluster.Shape {
	var shapes []*cluster.Shape
	t := topology.New(s.tied, s.snapshot.Namespaces)
	where := map[string]place{}
	for number, b := range s.bins {
		s.stand(t, b)
		for _, pod := range b.pods {
			where[pod.UID] = place{pod.Shape, number}
		}
	}
	var waiting []place
	for _, uid := range s.order {
		if p := where[uid]; len(t.Rules(p.shape).Keys) > 0 {
			waiting = append(waiting, p)
		}
	}
	for {
		var still []place
		for _, p := range waiting {
			if !t.AllowedIn(p.shape, p.bin) {
				still = append(still, p)
				continue
			}
			t.Place(p.shape, p.bin, topology.Placed)
		}
		if len(still) == 0 || len(still) == len(waiting) {
			for _, p := range still {
				shapes = append(shapes, p.shape)
			}
			return shapes
		}
		waiting = still
	}
}
