package alerts

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// joinerMetrics registers those of joiner. Labels have all their values if these are a closed set, else some.
func joinerMetrics(registry *prometheus.Registry) {
	set, pool := metrics.New(registry), "default"
	metrics.NewRequests(registry).WithLabelValues("list", "Pod")
	row := func(family metrics.Family, labels ...string) metrics.Row {
		return metrics.Row{Family: family, Labels: labels}
	}
	rows := []metrics.Row{row(metrics.UnpricedNodes), row(metrics.Looked), row(metrics.MaxNodes),
		row(metrics.MaxNodesUsed), row(metrics.MaxClaims), row(metrics.MaxClaimsUsed)}
	for _, code := range append([]cause.Code{""}, slices.Concat(cause.WaitingCodes(), cause.StayingCodes())...) {
		rows = append(rows, row(metrics.PodsWaiting, string(code), pool),
			row(metrics.NodesStaying, pool, string(code)))
	}
	for _, state := range []string{view.RoomThere, view.RoomComing, view.RoomMissing} {
		rows = append(rows, row(metrics.BufferPods, "shop", "room", state))
	}
	for _, state := range append(view.NodeStates(), view.NodeUnmanaged) {
		rows = append(rows, row(metrics.NodesByState, pool, string(state)))
	}
	for _, which := range []string{view.LimitHardNodes, view.LimitSoftNodes, "cpu", "memory"} {
		rows = append(rows, row(metrics.NodepoolLimited, pool, which))
	}
	for _, capacity := range []string{"spot", "on-demand", "reserved"} {
		rows = append(rows, row(metrics.Price, pool, capacity))
	}
	for _, family := range []metrics.Family{metrics.Offerings, metrics.OfferingsUnavailable, metrics.HardLimit,
		metrics.HardLimitUsed, metrics.NodepoolReady, metrics.OldestDrain} {
		rows = append(rows, row(family, pool))
	}
	set.Own.Standing.Show(rows)
	for _, stage := range []string{metrics.StageLaunched, metrics.StageRegistered, metrics.StageInitialized} {
		set.Own.Stages.WithLabelValues(pool, stage)
	}
	for _, place := range []string{metrics.PlaceExpected, metrics.PlaceElsewhere} {
		set.Own.Bound.WithLabelValues(place)
	}
	set.Own.Decisions.WithLabelValues("launch", "Pending", "done")
	set.Own.Decisions.WithLabelValues("remove", "Empty", "planned")
	set.Own.Decisions.WithLabelValues("replace", "Drifted", "taken_back")
	for _, method := range []string{"Create", "Delete", "Get", "List", "GetInstanceTypes", "Notices"} {
		set.Cloud.Duration.WithLabelValues("nodeclaim.lifecycle", method, "kwok")
		for _, kind := range []string{"InsufficientCapacityError", "ThrottledError", "CreateError"} {
			set.Cloud.Errors.WithLabelValues("nodeclaim.lifecycle", method, "kwok", kind, "")
		}
	}
	set.Claims.Created.WithLabelValues("provisioned", pool, "false")
	set.Claims.Terminated.WithLabelValues(pool, "spot", "a")
	set.Claims.Disrupted.WithLabelValues("registration_timeout", pool, "spot", "", "forceful")
	set.Nodes.Created.WithLabelValues(pool, "a")
	set.Nodes.Drained.WithLabelValues(pool)
	set.Pods.Evictions.WithLabelValues("429")
	set.Pools.Limit.WithLabelValues("cpu", pool)
	set.Pools.Usage.WithLabelValues("cpu", pool)
	set.Pools.Allowed.WithLabelValues("empty", pool)
	set.Pools.Remaining.WithLabelValues("empty", pool)
	set.Pools.InVain.Add(0, pool)
	set.Pools.BlockedByLimit.Add(0, "drifted", pool)
	set.Own.Dropped.WithLabelValues("karpenter_pods_state")
	set.Own.EventsDropped.WithLabelValues("FailedScheduling")
}
