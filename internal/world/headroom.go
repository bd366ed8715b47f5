package world

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file keeps the room of NodePools' headroom (K-54). Like CapacityBuffers it consists of pods that exist for
// planning only. They depend on what runs on a pool's nodes, so each snapshot computes them anew, from counts that the
// events keep.

// headroom is the room of one NodePool.
type headroom struct {
	asked  *translate.Headroom // nil when no room is kept, or the pool's words cannot be understood
	room   translate.HeadroomRoom
	until  time.Time // when it changes by time alone; zero for never
	shapes []*cluster.Shape
	pods   []*cluster.Pod
}

// askHeadroom stores the headroom that a pool asks for, nil for none.
func (s *Store) askHeadroom(pool string, asked *translate.Headroom) {
	h := s.headrooms[pool]
	switch {
	case h == nil && asked == nil:
		return
	case h == nil:
		h = &headroom{}
		s.headrooms[pool] = h
		s.buffered.Add(1)
	case asked == nil:
		s.shapesOfHeadroom(h, nil)
		delete(s.headrooms, pool)
		s.buffered.Add(-1)
		s.buffers.stale = true
		s.changed()
		return
	case h.asked.String() == asked.String():
		return
	}
	h.asked = asked
	s.changed()
}

// shapesOfHeadroom replaces the shapes of headroom by those of parts, and returns them interned.
func (s *Store) shapesOfHeadroom(h *headroom, parts []translate.Running) []*cluster.Shape {
	var fresh []*cluster.Shape
	for _, part := range parts {
		fresh = append(fresh, s.shapes.Intern(part.Shape))
	}
	for _, old := range h.shapes {
		s.shapes.Release(old)
	}
	h.shapes = fresh
	return fresh
}

// rebuildHeadroom recomputes what room to keep at now.
func (s *Store) rebuildHeadroom(now time.Time) {
	for name, h := range s.headrooms {
		asked := h.asked
		in, next := asked.InForce(now)
		if !in {
			asked = nil
		}
		before := h.room
		var taints []corev1.Taint
		if e := s.pools[name]; e != nil {
			taints = e.object.Spec.Template.Spec.Taints
		}
		h.room = before.Next(s.space, name, taints, asked, s.runningIn(name), now)
		h.until = next
		if until := h.room.Until; !until.IsZero() && (next.IsZero() || until.Before(next)) {
			h.until = until
		}
		if !h.until.IsZero() {
			s.wakeAt(h.until)
		}
		if !slices.EqualFunc(before.Parts, h.room.Parts, func(a, b translate.Running) bool {
			return a.Pods == b.Pods && a.Shape.Key() == b.Shape.Key()
		}) {
			s.placeHeadroom(name, h)
		}
	}
}

// placeHeadroom creates the pods that represent the room of a pool.
func (s *Store) placeHeadroom(name string, h *headroom) {
	s.buffers.stale = true
	uid := name
	if e := s.pools[name]; e != nil {
		uid = string(e.object.UID)
	}
	shapes := s.shapesOfHeadroom(h, h.room.Parts)
	h.pods = nil
	for i, part := range h.room.Parts {
		for range part.Pods {
			number := len(h.pods)
			h.pods = append(h.pods, &cluster.Pod{
				UID: fmt.Sprintf("%s/headroom/%d", uid, number), Namespace: cluster.HeadroomNamespace,
				Name: fmt.Sprintf("%s-%d", name, number), Shape: shapes[i], Priority: math.MinInt32,
			})
		}
	}
}

// runningIn returns the pods on the nodes of a pool for which headroom keeps room, by shape.
func (s *Store) runningIn(pool string) (list []translate.Running) {
	for shape, pods := range s.running.movable[pool] {
		list = append(list, translate.Running{Shape: shape, Pods: pods})
	}
	return list
}

// expireHeadroom notes which room changes by time alone.
func (s *Store) expireHeadroom(now time.Time) {
	for _, h := range s.headrooms {
		switch {
		case h.until.IsZero():
		case now.Before(h.until):
			s.wakeAt(h.until)
		default:
			h.until = time.Time{}
			s.changed()
		}
	}
}

// Headroom returns for how many pods the headroom of a pool keeps room, and whether it is in force now. At other
// times, and in pools without headroom, it keeps none.
func (s *Store) Headroom(pool string) (pods int, on bool) {
	now := s.config.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.headrooms[pool]
	if h == nil {
		return 0, false
	}
	on, _ = h.asked.InForce(now)
	return len(h.pods), on
}
