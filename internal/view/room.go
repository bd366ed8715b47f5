package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Room is how much of the room requested by a CapacityBuffer, or by the headroom of a NodePool, a plan finds (K-36,
// K-54).
type Room struct {
	// Numbers of pods: There have room on initialized nodes, Coming on nodes on their way, and Planned on nodes that
	// the plan launches. Missing have none.
	There, Coming, Planned, Missing int
	// Cause and Text say why room is missing, for the first pod without room; "" when none is missing.
	Cause cause.Code
	Text  string
}

// Asked returns for how many pods the buffer requests room.
func (r Room) Asked() int { return r.There + r.Coming + r.Planned + r.Missing }

// Says describes how much of the room for all pods there is.
func (r Room) Says(all int) string {
	pods := fmt.Sprintf("%d pods", all)
	if all == 1 {
		pods = "1 pod"
	}
	if r.There == all {
		return "there is room for " + pods
	}
	text := fmt.Sprintf("there is room for %d of %s", r.There, pods)
	if coming := r.Coming + r.Planned; coming > 0 {
		text += fmt.Sprintf(", for %d it is on its way", coming)
	}
	if r.Missing > 0 {
		text += fmt.Sprintf(", for %d there is none: %s", r.Missing, r.Text)
	}
	return text
}

// Rooms returns what a plan has for each buffer of s, by namespace/name.
func Rooms(s *cluster.Snapshot, p plan.Plan) map[string]Room {
	of := make(map[string]string, len(s.Buffers))
	all := map[string]Room{}
	for _, pod := range s.Buffers {
		of[pod.UID] = pod.Shape.Buffer
		all[pod.Shape.Buffer] = Room{}
	}
	count := func(pod plan.PodRef, change func(*Room)) {
		if name, known := of[pod.UID]; known {
			now := all[name]
			change(&now)
			all[name] = now
		}
	}
	there := map[string]bool{}
	for _, node := range s.Nodes {
		there[node.ID()] = node.Initialized
	}
	for _, place := range p.Buffers.Places {
		count(place.Pod, func(now *Room) {
			if there[place.Node] {
				now.There++
			} else {
				now.Coming++
			}
		})
	}
	for _, l := range p.Launches {
		for _, pod := range l.Buffers {
			count(pod, func(now *Room) { now.Planned++ })
		}
	}
	for _, u := range p.Buffers.Unplaced {
		count(u.Pod, func(now *Room) {
			if now.Missing++; now.Missing == 1 {
				why := NotPlaced(ofItsPool(u, of[u.Pod.UID])).Cause
				now.Cause, now.Text = why.Code, why.Headline()
			}
		})
	}
	return all
}

// ofItsPool keeps only the NodePool's own refusal of its headroom: that another pool is paused is no reason for
// missing headroom.
func ofItsPool(u plan.Unplaced, buffer string) plan.Unplaced {
	pool, headroom := strings.CutPrefix(buffer, cluster.HeadroomNamespace+"/")
	if !headroom {
		return u
	}
	i := slices.IndexFunc(u.Pools, func(r plan.PoolRefusal) bool { return r.Pool == pool })
	if i < 0 {
		return u
	}
	u.Pools = u.Pools[i : i+1]
	return u
}

// RoomState is a CapacityBuffer, or the headroom of a NodePool (cluster.HeadroomNamespace), and a state of its room.
type RoomState struct{ Namespace, Buffer, State string }

// States of room.
const (
	RoomThere   = "there"
	RoomComing  = "coming"
	RoomMissing = "missing"
)

// roomNumbers counts pods by buffer and state. Each buffer has all states.
func roomNumbers(s *cluster.Snapshot, p plan.Plan) map[RoomState]int {
	numbers := map[RoomState]int{}
	for name, room := range Rooms(s, p) {
		namespace, buffer, _ := strings.Cut(name, "/")
		numbers[RoomState{namespace, buffer, RoomThere}] = room.There
		numbers[RoomState{namespace, buffer, RoomComing}] = room.Coming + room.Planned
		numbers[RoomState{namespace, buffer, RoomMissing}] = room.Missing
	}
	return numbers
}
