package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file gives pods a second chance that found no place because of a limit (P-04, L-10). Pods that are tied to others and
// free to choose their zone come before pods that a volume binds to one. Where the limit allows one more node, that may then
// stand in the wrong zone. So the pods without a place come first in a second try. It counts only if nobody loses a place by it.

// firstOf returns the pods, by UID, that a limit kept from a node of their own while the plan launches nodes under it; nil
// when there are none, or when no pod is tied to others, so that the order matters little.
func firstOf(p plan.Plan, pods []*cluster.Pod) map[string]bool {
	tied := func(pod *cluster.Pod) bool {
		return pod.Shape.Tied()
	}
	if !slices.ContainsFunc(pods, tied) {
		return nil
	}
	launches := map[string]bool{}
	for _, l := range p.Launches {
		launches[l.Pool] = true
	}
	if len(launches) == 0 {
		return nil
	}
	limited := func(r plan.PoolRefusal) bool {
		return launches[r.Pool] && len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].Demand == plan.ByLimit
	}
	var first map[string]bool
	for _, u := range p.Unplaced {
		if slices.ContainsFunc(u.Pools, limited) {
			if first == nil {
				first = map[string]bool{}
			}
			first[u.Pod.UID] = true
		}
	}
	return first
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
