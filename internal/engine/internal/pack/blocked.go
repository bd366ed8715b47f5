package pack

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// blockedRule: something must come first, such as a volume, before any node can be right for the pod. able takes such
// pods out before anything is placed.
type blockedRule struct {
	anyNode
	anyOffer
	untied
}

func (blockedRule) reads() []string { return []string{"Blocked", "BlockedBy"} }

func (blockedRule) opens(_ *solver, _ *pool, info *shape, ways []way) []way {
	if info.Blocked != "" {
		return nil
	}
	return ways
}

func (blockedRule) explains(_ *solver, e *explainer) bool {
	if e.shape.Blocked == "" {
		return true
	}
	return e.stop(plan.ByPod, cmp.Or(e.shape.BlockedBy, cause.PodMalformed), "", e.shape.Blocked)
}

// able takes out the pods for which no node can be right, whatever is launched. Planned with the others, they would
// only narrow what those get.
func able(pods []*cluster.Pod) (rest, blocked []*cluster.Pod) {
	is := func(pod *cluster.Pod) bool { return pod.Shape.Blocked != "" }
	if !slices.ContainsFunc(pods, is) {
		return pods, nil
	}
	for _, pod := range pods {
		if is(pod) {
			blocked = append(blocked, pod)
		} else {
			rest = append(rest, pod)
		}
	}
	return rest, blocked
}
