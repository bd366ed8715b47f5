package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file gives pods a second chance that found no place because of a limit (P-04, L-10). Pods that are tied to others and
// free to choose their zone come before pods that a volume binds to one. Where the limit allows one more node, that may then
// stand in the wrong zone. So the pods without a place come first in a second try. It counts only if nobody loses a place by it.
// The same holds for a try without commitments.

// firstOf returns the pods, by UID, that a limit kept from a node of their own while the plan launches nodes under it; nil
// when there are none, or when no pod is tied to others, so that the order matters little.
func firstOf(p plan.Plan, pods []*cluster.Pod) map[string]bool {
	tied := func(pod *cluster.Pod) bool {
		return pod.Shape.Tied()
	}
	if !slices.ContainsFunc(pods, tied) {
		return nil
	}
	var first map[string]bool
	for _, u := range limited(p, func(plan.Launch) bool { return true }) {
		if first == nil {
			first = map[string]bool{}
		}
		first[u.Pod.UID] = true
	}
	return first
}

// crowded reports whether nodes on commitments, which are as small as commitments are, may use up what the limits leave, so that pods
// have no place which larger ones would have taken (K-55).
func crowded(p plan.Plan) bool {
	return len(limited(p, func(l plan.Launch) bool { return l.Cheapest.Commitment.Name != "" })) > 0
}

// limited returns the pods that a limit of a pool keeps from a node of their own, where the plan launches such nodes in it.
func limited(p plan.Plan, such func(plan.Launch) bool) (list []plan.Unplaced) {
	launches := map[string]bool{}
	for _, l := range p.Launches {
		if such(l) {
			launches[l.Pool] = true
		}
	}
	for _, u := range p.Unplaced {
		if slices.ContainsFunc(u.Pools, func(r plan.PoolRefusal) bool {
			return launches[r.Pool] && len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].Demand == plan.ByLimit
		}) {
			list = append(list, u)
		}
	}
	return list
}

// better reports whether a plan places all pods that the other one does, and more.
func better(p, than plan.Plan) bool {
	if len(p.Unplaced) >= len(than.Unplaced) {
		return false
	}
	had := map[string]bool{}
	for _, u := range than.Unplaced {
		had[u.Pod.UID] = true
	}
	return !slices.ContainsFunc(p.Unplaced, func(u plan.Unplaced) bool { return !had[u.Pod.UID] })
}

// placeFirst places those pods of the order that come first in this try, and returns the others, and those without a place.
func (s *solver) placeFirst(order []*cluster.Pod) (rest, failed []*cluster.Pod) {
	if len(s.first) == 0 {
		return order, nil
	}
	var first []*cluster.Pod
	for _, pod := range order {
		if s.first[pod.UID] {
			first = append(first, pod)
		} else {
			rest = append(rest, pod)
		}
	}
	return rest, s.runClass(first)
}
