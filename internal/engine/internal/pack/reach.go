package pack

import (
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// unreachable returns floors that make the next round place differently, if no order of binding leads to this plan;
// nil if one does. The scheduler sees all planned nodes at once, including the empty ones. So a pod placed before a
// node was opened may not be bindable once that node is there. The pods are bound here once more as the scheduler
// would, with every node in place. The spread constraints of pods that get stuck are then taken at their strictest:
// with a minimum of 0, pods that fit can be bound in any order.
func (s *solver) unreachable(known topology.Floors) topology.Floors {
	if s.topology.Late() == nil || s.topology.LateIsStrict() {
		return nil
	}
	stuck := s.rehearse(false)
	if len(stuck) == 0 {
		return nil
	}
	floors := s.topology.Strictest(shapesOf(stuck))
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
	pod   *cluster.Pod
	bin   int
	bound bool
}

// rehearsal binds the placed pods once more, with every planned node in place.
type rehearsal struct {
	solver  *solver
	tracker *topology.Tracker
	places  map[string]*place           // by UID: of pods that some constraint concerns
	byShape map[*cluster.Shape][]*place // the same, in the order of placing
	order   []string                    // UIDs of pods, as they were bound
	trading bool
	traded  bool
}

// rehearse binds the placed pods in passes and returns those that cannot be bound. If all can be bound once some pods
// of one shape have swapped places, the plan keeps these swaps. With daemons, the DaemonSet pods that nodes still wait
// for come before all others. So they do in a cluster: they tolerate a node that is not ready yet.
func (s *solver) rehearse(daemons bool) []*cluster.Pod {
	stuck := s.rehearseOnce(daemons, false)
	if len(stuck) > 0 && len(s.rehearseOnce(daemons, true)) == 0 {
		return nil
	}
	return stuck
}

func (s *solver) rehearseOnce(daemons, trading bool) []*cluster.Pod {
	r := &rehearsal{solver: s, trading: trading, tracker: topology.New(s.tied, s.snapshot.Namespaces),
		places: map[string]*place{}, byShape: map[*cluster.Shape][]*place{}}
	for _, n := range s.existing {
		s.stand(r.tracker, n)
	}
	for _, n := range s.planned {
		r.tracker.Occupy(r.tracker.AddBin(n.labelValue, s.counts(&n.outlook)))
	}
	where := s.placedAt()
	var now, later []*place
	for _, uid := range s.order {
		p := where[uid]
		concerned := len(r.tracker.Rules(p.pod.Shape).Keys) > 0
		if concerned {
			r.places[uid] = p
			r.byShape[p.pod.Shape] = append(r.byShape[p.pod.Shape], p)
		}
		switch {
		case s.leaving(p.pod):
			later = append(later, p) // whether or not a constraint concerns it, its node counts until it has left
		case concerned:
			now = append(now, p)
		default:
			r.order = append(r.order, uid)
		}
	}
	if daemons {
		s.await(r.tracker)
	}
	s.standAgain(r.tracker)
	stuck := r.bind(now)
	s.letGo(r.tracker)
	stuck = append(stuck, r.bind(later)...)
	if len(stuck) == 0 && r.traded {
		r.keepTrades()
	}
	var pods []*cluster.Pod
	for _, p := range stuck {
		pods = append(pods, p.pod)
	}
	return pods
}

// placedAt returns the places of the plan by the UIDs of their pods.
func (s *solver) placedAt() map[string]*place {
	where := map[string]*place{}
	for i := range s.bins() {
		for _, pod := range s.bin(i).pods {
			where[pod.UID] = &place{pod: pod, bin: i}
		}
	}
	return where
}

func shapesOf(pods []*cluster.Pod) []*cluster.Shape {
	var shapes []*cluster.Shape
	for _, pod := range pods {
		if !slices.Contains(shapes, pod.Shape) {
			shapes = append(shapes, pod.Shape)
		}
	}
	return shapes
}

// bind binds pods in passes and returns those that cannot be bound. Pods that run leave their nodes first.
func (r *rehearsal) bind(waiting []*place) []*place {
	s, t := r.solver, r.tracker
	for {
		var still []*place
		for _, p := range waiting {
			gone := s.leave(t, p.pod)
			if t.AllowedIn(p.pod.Shape, p.bin) || r.trade(p) {
				t.Place(p.pod.Shape, p.bin, topology.Placed)
				p.bound = true
				r.order = append(r.order, p.pod.UID)
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

// trade swaps a pod's place with that of another pod of its shape that is still to be bound, if the pod may be bound
// there at once. For nodes two such pods are the same. Only the order in which they come differs.
func (r *rehearsal) trade(p *place) bool {
	if !r.trading || p.pod.Promised != "" {
		return false
	}
	refused := map[int]bool{p.bin: true}
	for _, other := range r.byShape[p.pod.Shape] {
		if other.bound || other.pod.Promised != "" || refused[other.bin] {
			continue
		}
		if r.passedOver(p.pod, other.bin) || r.passedOver(other.pod, p.bin) {
			continue
		}
		if !r.tracker.AllowedIn(p.pod.Shape, other.bin) {
			refused[other.bin] = true
			continue
		}
		p.bin, other.bin = other.bin, p.bin
		r.traded = true
		return true
	}
	return false
}

// passedOver reports whether a bin is a node that the scheduler has passed over for the pod.
func (r *rehearsal) passedOver(pod *cluster.Pod, bin int) bool {
	nodes := r.solver.existing
	return bin < len(nodes) && passedOver(nodes[bin], pod)
}

// keepTrades makes the places of the rehearsal those of the plan.
func (r *rehearsal) keepTrades() {
	s := r.solver
	for i := range s.bins() {
		b := s.bin(i)
		b.pods = slices.DeleteFunc(b.pods, func(pod *cluster.Pod) bool { return len(r.byShape[pod.Shape]) > 0 })
	}
	for _, uid := range r.order {
		if p := r.places[uid]; p != nil {
			b := s.bin(p.bin)
			b.pods = append(b.pods, p.pod)
		}
	}
	s.order = r.order
}

// standAgain puts the leavers back where they run, as a fresh tracker counts them.
func (s *solver) standAgain(t *topology.Tracker) {
	if len(s.leavers) > 0 {
		t.Shrink()
	}
	for _, l := range s.leavers {
		if l.left {
			l.left = false
			s.existing[l.bin].staying++
		}
	}
}
