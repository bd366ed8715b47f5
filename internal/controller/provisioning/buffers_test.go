package provisioning_test

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// room adds buffer pods of 1.5 cores to a scene.
func (s *scene) room(pods int) {
	shape := &cluster.Shape{Namespace: "shop", Requests: resources.Vector{1500}, Buffer: "shop/room"}
	for i := range pods {
		name := string(rune('a' + i))
		s.buffers = append(s.buffers, &cluster.Pod{UID: "room-" + name, Namespace: "shop", Name: "room-" + name,
			Shape: shape})
	}
}

// P-35, K-37: nodes for a CapacityBuffer come once. That no pod comes onto them is not in vain, and more room may be
// requested at any time. If they cannot have the room after all, they are launched more and more rarely.
func TestK37_NodesForBuffersAreNotInVain(t *testing.T) {
	t.Parallel()
	s := newScene(t, 0)
	s.room(2)
	s.want("room for two", 0, 2)
	for range 5 {
		s.want("it is there", time.Minute, 0)
	}
	s.room(1)
	s.want("room for a third", 0, 1)
	s.want("it is there too", time.Minute, 0)
	if said := s.brake.Message("default"); said != "" {
		t.Errorf("held back: %s", said)
	}
	taken := s.buffers
	s.buffers = nil
	s.want("nobody asks for room", time.Minute, 0)
	s.nodes, s.buffers, s.taint = nil, taken[:2], "example.com/surprise"
	s.want("nodes that turn out not to have it", time.Minute, 2)
	s.want("once more", 0, 2)
	s.want("held back", 0, 0)
	if said := s.brake.Message("default"); said == "" {
		t.Error("two rounds were in vain, and the pool says nothing")
	}
	s.want("a try after a minute", time.Minute, 1)
	s.want("it was in vain", 0, 0)
	for _, node := range s.nodes { // 5 by now
		node.Taints = nil
	}
	s.room(6)
	s.want("they have it after all, and what else is wanted is launched in the same plan", 0, 3)
}
