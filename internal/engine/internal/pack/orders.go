package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file plans twice where pods with constraints on others meet pods that only need room: once with the first of them
// in front, once with the second. The first get a small node each when nothing is there yet, and the others then large
// ones, in which the first would have had room. In the other order they go into that room; but where they open many
// nodes themselves, the others should fill those. No order is the cheaper one always.

// cheapestOf plans in both orders, and takes the plan that costs less.
func cheapestOf(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	p := Solve(snapshot, pods)
	if len(p.Launches) < 2 || len(pods) > evenPods || !mixed(pods) {
		return p
	}
	other := try(snapshot, pods, mix.Solve, trial{plainFirst: true})
	if lost(other, p) || costs(snapshot, other) >= costs(snapshot, p) {
		return p
	}
	return other
}

// mixed reports whether there are pods with constraints on others, and pods without any.
func mixed(pods []*cluster.Pod) bool {
	tied := func(pod *cluster.Pod) bool {
		return pod.Shape.Tied()
	}
	return slices.ContainsFunc(pods, tied) && slices.ContainsFunc(pods, func(pod *cluster.Pod) bool { return !tied(pod) })
}
