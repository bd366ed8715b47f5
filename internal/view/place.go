package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// TypesShown is how many instance types a sentence names; the others are counted.
const TypesShown = 2

// Some joins the first entries of a list, and counts the others.
func Some(list []string, most int) string {
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s|+%d", strings.Join(list[:most], "|"), more)
	}
	return strings.Join(list, "|")
}

// Zones joins zones, and omits the common prefix of all but the first: us-east-1a|b|c.
func Zones(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "|")
	}
	common := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	if slices.Contains(names, common) {
		return strings.Join(names, "|")
	}
	short := []string{names[0]}
	for _, name := range names[1:] {
		short = append(short, name[len(common):])
	}
	return strings.Join(short, "|")
}

// Placed explains what a plan does with a waiting pod; with all, also what each pool says. onNode reports whether a
// node of that name exists.
func Placed(p plan.Plan, pod plan.PodRef, all bool, onNode func(string) bool) Explanation {
	for _, n := range p.Nominations {
		if n.Pod.UID == pod.UID {
			return Nominated(n.Node, onNode(n.Node))
		}
	}
	for _, l := range p.Launches {
		if slices.ContainsFunc(l.Pods, func(other plan.PodRef) bool { return other.UID == pod.UID }) {
			return launched(l)
		}
	}
	for _, u := range p.Unplaced {
		if u.Pod.UID == pod.UID {
			e := NotPlaced(u)
			if all {
				e.Also = Further(u)
			}
			return e
		}
	}
	return unplanned()
}

func launched(l plan.Launch) Explanation {
	return WaitsFor(cause.LaunchPlanned, fmt.Sprintf("a node of pool %s would be launched for it: %s in %s", l.Pool,
		Some(l.Types, TypesShown), Zones(l.Zones)), "", l.Pool)
}

func unplanned() Explanation {
	return WaitsFor(cause.NotMarkedUnschedulable, "no plan is made for it", "", "")
}

// saying is what a plan says about a pod: the group in which it is counted, and the full explanation.
type saying struct {
	group   CauseOfPool
	explain func() Explanation
}

// sayings returns what a plan says, by the UID of the pod. each, if not nil, is called for pods without a place, once
// for pods that are alike.
func sayings(s *cluster.Snapshot, p plan.Plan, each func(plan.Unplaced, CauseOfPool)) map[string]saying {
	there, pools := map[string]bool{}, map[string]string{}
	for _, node := range s.Nodes {
		there[node.Name], pools[node.Claim], pools[node.Name] = true, node.Pool, node.Pool
	}
	said := make(map[string]saying, len(s.Pending))
	for _, n := range p.Nominations {
		explain := func() Explanation { return Nominated(n.Node, there[n.Node]) }
		said[n.Pod.UID] = saying{CauseOfPool{explain().Cause.Code, pools[n.Node]}, explain}
	}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			said[pod.UID] = saying{CauseOfPool{cause.LaunchPlanned, l.Pool}, func() Explanation { return launched(l) }}
		}
	}
	type shared struct {
		first *plan.PoolRefusal
		pools int
	}
	told := map[shared]CauseOfPool{} // pods that are alike share the refusals of pools
	for _, u := range p.Unplaced {
		key := shared{pools: len(u.Pools)}
		if key.pools > 0 {
			key.first = &u.Pools[0]
		}
		group, known := told[key]
		if !known {
			group = groupOf(u)
			told[key] = group
			if each != nil {
				each(u, group)
			}
		}
		said[u.Pod.UID] = saying{group, func() Explanation { return NotPlaced(u) }}
	}
	return said
}

// PodGroup is a group of pods that wait for the same reason: the groups that Numbers counts. The cause is "" for pods
// that are newer than the plan.
type PodGroup struct {
	CauseOfPool
	// Explanation is that of the first pod; the numbers in its sentence may differ for other pods.
	Explanation Explanation
	Pods        []*cluster.Pod

	said map[string]saying
}

// Explain returns the explanation of a pod of the group.
func (g PodGroup) Explain(pod *cluster.Pod) Explanation {
	if found, known := g.said[pod.UID]; known {
		return found.explain()
	}
	return unplanned()
}

// PodGroups groups the pods without a node by cause and pool, in the order of their first pods.
func PodGroups(s *cluster.Snapshot, p plan.Plan) []PodGroup {
	said, at, groups := sayings(s, p, nil), map[CauseOfPool]int{}, []PodGroup{}
	for _, pod := range s.Pending {
		if pod.Node != "" {
			continue
		}
		key := said[pod.UID].group
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			group := PodGroup{CauseOfPool: key, said: said}
			group.Explanation = group.Explain(pod)
			groups = append(groups, group)
		}
		groups[i].Pods = append(groups[i].Pods, pod)
	}
	return groups
}

func groupOf(u plan.Unplaced) CauseOfPool {
	w := Waits(u)
	if w.Cause.Object.Kind != "NodePool" {
		return CauseOfPool{Cause: w.Cause.Code}
	}
	return CauseOfPool{w.Cause.Code, w.Cause.Object.Name}
}
