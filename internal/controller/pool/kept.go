package pool

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// This file reports what a pool keeps: a minimum of nodes, and room for pods to come (K-54).

// Reasons of the conditions MinNodes and Headroom.
const (
	reasonKept       = "Kept"
	reasonIgnored    = "Ignored" // the annotation has no effect
	reasonOnTheWay   = "OnTheWay"
	reasonLimit      = "LimitReached"
	reasonPaused     = "PoolPaused"
	reasonMissing    = "Missing"
	reasonNotNow     = "NotNow" // by its schedule
	reasonNotPlanned = "NotPlanned"
)

// Headroom is the state of the room that a pool keeps free.
type Headroom struct {
	// On says that room is kept now. Pods is for how many pods.
	On   bool
	Pods int
	// Room is the last plan's result for it; zero until a plan has seen it.
	Room view.Room
}

// keeps reports the state of the pool's floor and headroom. If the pool asks for neither, it reports nothing.
func (c *Controller) keeps(pool *karpenterv1.NodePool) (values []condition.Value) {
	for _, of := range []struct {
		kind string
		says func(*karpenterv1.NodePool) (condition.Value, bool)
	}{{karpenterv1.ConditionTypeMinNodes, c.floor}, {karpenterv1.ConditionTypeHeadroom, c.headroom}} {
		if value, some := of.says(pool); some {
			values = append(values, value)
		} else {
			condition.Clear(&pool.Status.Conditions, of.kind)
		}
	}
	return values
}

// ignored reports that an annotation has no effect, in an event and, if that is new, in the log.
func (c *Controller) ignored(pool *karpenterv1.NodePool, kind string, err error) condition.Value {
	c.config.Events.Event(pool, event.Warning, event.IgnoredField, err.Error())
	if before, _ := condition.Get(pool.Status.Conditions, kind); before.Message != err.Error() {
		c.config.Log.Info("an annotation has no effect", "pool", pool.Name, "reason", err.Error())
	}
	return condition.False(kind, reasonIgnored, err.Error())
}

// floor reports whether the pool has its minimum of nodes.
func (c *Controller) floor(pool *karpenterv1.NodePool) (condition.Value, bool) {
	const kind = karpenterv1.ConditionTypeMinNodes
	least, found, err := translate.MinNodes(pool)
	switch {
	case !found:
		return condition.Value{}, false
	case err != nil:
		return c.ignored(pool, kind, err), true
	}
	s := c.config.Picture.Snapshot()
	known := s.Pool(pool.Name)
	if known == nil || known.MinNodes != least {
		return condition.Unknown(kind, reasonNotPlanned, "its watch is on its way"), true
	}
	lacks, step := engine.WhyFloor(s, known)
	text := fmt.Sprintf("it has %d of the %d nodes that it always keeps", int(least)-lacks, least)
	switch {
	case lacks == 0:
		return condition.True(kind, reasonKept, text), true
	case step.Cause == "":
		return condition.False(kind, reasonOnTheWay, text+"; the others are launched"), true
	}
	return condition.False(kind, reasonFor(step.Cause), text+": "+step.Detail), true
}

// reasonFor returns the condition's reason for the cause of something missing.
func reasonFor(code cause.Code) string {
	switch {
	case slices.Contains(cause.LimitCodes(), code):
		return reasonLimit
	case code == cause.PoolPaused:
		return reasonPaused
	}
	return reasonMissing
}

// headroom reports whether the room that the pool keeps free exists.
func (c *Controller) headroom(pool *karpenterv1.NodePool) (condition.Value, bool) {
	const kind = karpenterv1.ConditionTypeHeadroom
	asked, err := translate.HeadroomOf(pool)
	switch {
	case err != nil:
		return c.ignored(pool, kind, err), true
	case asked == nil:
		return condition.Value{}, false
	}
	var now Headroom
	if c.config.Headroom != nil {
		now = c.config.Headroom(pool.Name)
	}
	lead, room := asked.String()+": ", now.Room
	switch {
	case !now.On:
		return condition.False(kind, reasonNotNow, lead+"no room is kept at this time"), true
	case now.Pods == 0:
		return condition.True(kind, reasonKept, lead+"no pods run that there could be a share of"), true
	case room.Asked() != now.Pods: // the next plan will show it
		if before, found := condition.Get(pool.Status.Conditions, kind); found &&
			before.Status != metav1.ConditionUnknown {
			return condition.Value{Type: kind, Status: before.Status, Reason: before.Reason, Message: before.Message},
				true
		}
		return condition.Unknown(kind, reasonNotPlanned, lead+"no plan has been made for it yet"), true
	case room.There == now.Pods:
		return condition.True(kind, reasonKept, lead+room.Says(now.Pods)), true
	case room.Missing > 0:
		return condition.False(kind, reasonFor(room.Cause), lead+room.Says(now.Pods)), true
	}
	return condition.False(kind, reasonOnTheWay, lead+room.Says(now.Pods)), true
}
