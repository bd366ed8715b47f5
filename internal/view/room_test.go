package view_test

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// K-54: the reason why a NodePool's headroom is missing comes from that pool, even if another one is nearer to
// launching: that the other one is paused is no reason. For a CapacityBuffer all pools count.
func TestK54_HeadroomIsMissingForAReasonOfItsPool(t *testing.T) {
	t.Parallel()
	refusals := []plan.PoolRefusal{
		{Pool: "other", Steps: []plan.Step{{Cause: cause.PoolPaused, Detail: "it is paused"}}},
		{Pool: "web", Steps: []plan.Step{{Before: 3, Cause: cause.PodTooLarge, Key: "cpu", Detail: "cpu=1000"}}},
	}
	for buffer, want := range map[string]cause.Code{cluster.HeadroomNamespace + "/web": cause.PodTooLarge,
		"default/web": cause.PoolPaused} {
		pod := &cluster.Pod{UID: "1", Shape: &cluster.Shape{Buffer: buffer}}
		s := &cluster.Snapshot{Buffers: []*cluster.Pod{pod}}
		room := view.Rooms(s, plan.Plan{Buffers: plan.Buffers{Unplaced: []plan.Unplaced{{Pod: plan.PodRef{UID: "1"},
			Pools: refusals}}}})[buffer]
		if room.Missing != 1 || room.Cause != want ||
			strings.Contains(room.Text, "web") != (want == cause.PodTooLarge) {
			t.Errorf("%s: %+v, want %s", buffer, room, want)
		}
	}
}
