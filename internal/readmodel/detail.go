package readmodel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Page bounds the pods of an answer.
const Page = 500

// Amount is the requested amount of a resource, as text.
type Amount struct {
	Resource string `json:"resource"`
	Amount   string `json:"amount"`
}

// PodLine is a pod in a list.
type PodLine struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Code, Pool and Text say why it waits; "" for a running pod.
	Code string `json:"code,omitempty"`
	Pool string `json:"pool,omitempty"`
	Text string `json:"text,omitempty"`
	// Daemon is the DaemonSet that owns it.
	Daemon string `json:"daemon,omitempty"`
	// Terminating says that it is ending.
	Terminating bool `json:"terminating,omitempty"`
}

// PodList is a page of pods. Total counts the pods of all pages. Next is the index at which the next page begins; 0
// for none.
type PodList struct {
	Version uint64    `json:"version"`
	Total   int       `json:"total"`
	Next    int       `json:"next,omitempty"`
	Pods    []PodLine `json:"pods"`
}

// page returns a page of a list, and the index of the next one.
func page[T any](list []T, from int) (cut []T, next int) {
	from = min(max(from, 0), len(list))
	end := min(from+Page, len(list))
	if end < len(list) {
		next = end
	}
	return list[from:end], next
}

// WaitingPods lists pods that wait, filtered by cause, pool and namespace as far as these are given, and by a part of
// namespace/name.
func WaitingPods(in Input, cause, pool, namespace, part string, from int) PodList {
	type waiter struct {
		pod   *cluster.Pod
		group view.PodGroup
	}
	var found []waiter
	for _, group := range view.PodGroups(in.Snapshot, in.Plan) {
		code := string(group.Cause)
		if code == "" {
			code = string(unplanned)
		}
		if cause != "" && cause != code || pool != "" && pool != group.Pool {
			continue
		}
		for _, pod := range group.Pods {
			if (namespace == "" || pod.Namespace == namespace) && strings.Contains(pod.Ref(), part) {
				found = append(found, waiter{pod, group})
			}
		}
	}
	list := PodList{Version: in.Snapshot.Version, Total: len(found), Pods: []PodLine{}}
	cut, next := page(found, from)
	list.Next = next
	for _, w := range cut {
		c := w.group.Explain(w.pod).Cause
		list.Pods = append(list.Pods, PodLine{Namespace: w.pod.Namespace, Name: w.pod.Name, Code: string(c.Code),
			Pool: w.group.Pool, Text: c.Text})
	}
	return list
}

// PodDetail is one pod.
type PodDetail struct {
	Version     uint64           `json:"version"`
	Namespace   string           `json:"namespace"`
	Name        string           `json:"name"`
	Node        string           `json:"node,omitempty"`
	Priority    int32            `json:"priority"`
	Requests    []Amount         `json:"requests"`
	Explanation view.Explanation `json:"explanation"`
}

// PodOf explains why a pod waits, or where it runs. It returns false if the snapshot has no such pod.
func PodOf(in Input, namespace, name string) (PodDetail, bool) {
	s := in.Snapshot
	is := func(pod *cluster.Pod) bool { return pod.Namespace == namespace && pod.Name == name }
	d := PodDetail{Version: s.Version, Namespace: namespace, Name: name}
	if i := slices.IndexFunc(s.Pending, func(pod *cluster.Pod) bool { return is(pod) && pod.Node == "" }); i >= 0 {
		d.add(s, s.Pending[i])
		ref := plan.PodRef{Namespace: namespace, Name: name, UID: s.Pending[i].UID}
		onNode := func(name string) bool {
			return slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
		}
		d.Explanation = view.Placed(in.Plan, ref, true, onNode)
		return d, true
	}
	for _, node := range s.Nodes {
		if i := slices.IndexFunc(node.Pods, is); i >= 0 {
			d.add(s, node.Pods[i])
			d.Node, d.Explanation = node.ID(), view.Stands("it is bound to node "+node.ID())
			return d, true
		}
	}
	return d, false
}

func (d *PodDetail) add(s *cluster.Snapshot, pod *cluster.Pod) {
	d.Priority, d.Requests = pod.Priority, []Amount{}
	for i, amount := range pod.Shape.Requests {
		if amount > 0 && s.Names[i] != pods {
			d.Requests = append(d.Requests, Amount{s.Names[i], s.Names.FormatOne(i, amount)})
		}
	}
}

// NodeDetail is one node with a page of its pods.
type NodeDetail struct {
	Node
	Taints []string `json:"taints"`
	// Replaces are the NodeClaims that this node replaces.
	Replaces    []string         `json:"replaces,omitempty"`
	Explanation view.Explanation `json:"explanation"`
	On          PodList          `json:"on"`
}

// NodeOf explains a node with everything that keeps it. It returns false if there is no node or claim of that name.
func NodeOf(in Input, name string, from int) (NodeDetail, bool) {
	s := in.Snapshot
	i := slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == name || n.Claim == name })
	if i < 0 {
		return NodeDetail{}, false
	}
	node := s.Nodes[i]
	b := builder{in: in}
	d := NodeDetail{Node: nodeOf(node, shown(s)), Taints: []string{}, Replaces: node.Replaces}
	b.standing(&d.Node, node)
	for _, taint := range node.Taints {
		d.Taints = append(d.Taints, taint.String())
	}
	standings := view.Remembered(node.Pool, engine.WhyAll(s, in.Terms, node), b.remembered(node.Pool))
	d.Explanation = view.Standings(standings, node.Pool)
	on := slices.SortedFunc(slices.Values(node.Pods), func(a, b *cluster.Pod) int {
		return strings.Compare(a.Ref(), b.Ref())
	})
	d.On = PodList{Version: s.Version, Total: len(on), Pods: []PodLine{}}
	cut, next := page(on, from)
	d.On.Next = next
	for _, pod := range cut {
		d.On.Pods = append(d.On.Pods, PodLine{Namespace: pod.Namespace, Name: pod.Name, Daemon: pod.Daemon,
			Terminating: pod.Terminating})
	}
	return d, true
}

// PoolDetail is one pool.
type PoolDetail struct {
	Pool
	Requirements []string `json:"requirements"`
	Taints       []string `json:"taints"`
	// Budgets are the current ones.
	Budgets []Budget `json:"budgets"`
	// Launches is how many nodes the pool would launch now.
	Launches    int              `json:"launches"`
	Demand      []Demand         `json:"demand"`
	Explanation view.Explanation `json:"explanation"`
}

// Budget is how many nodes may go at a time for these reasons; no reasons means all.
type Budget struct {
	Allowed int      `json:"allowed"`
	Reasons []string `json:"reasons"`
}

// Demand is a number of waiting pods, and what happens with them.
type Demand struct {
	Pods int    `json:"pods"`
	Text string `json:"text"`
}

// PoolOf explains what a pool launches, or why it launches nothing. It returns false if there is no such pool.
func PoolOf(in Input, name string) (PoolDetail, bool) {
	pool := in.Snapshot.Pool(name)
	if pool == nil {
		return PoolDetail{}, false
	}
	m := Of(in)
	i := slices.IndexFunc(m.Pools, func(p Pool) bool { return p.Name == name })
	d := PoolDetail{Pool: m.Pools[i], Requirements: []string{}, Taints: []string{}, Budgets: []Budget{},
		Demand: []Demand{}}
	for r := range pool.Requirements.All() {
		d.Requirements = append(d.Requirements, r.String())
	}
	for _, taint := range pool.Taints {
		d.Taints = append(d.Taints, taint.String())
	}
	for _, budget := range in.Terms.Budgets[name] {
		own := Budget{Allowed: budget.Max, Reasons: []string{}}
		for _, reason := range budget.Reasons {
			own.Reasons = append(own.Reasons, string(reason))
		}
		d.Budgets = append(d.Budgets, own)
	}
	standing := engine.WhyPool(in.Snapshot, pool)
	steps := standing.Causes
	if step, blocked := blocks(pool); blocked {
		steps = append([]plan.Step{step}, steps...)
	}
	d.Launches = len(standing.Launches)
	d.Explanation = view.Pool(name, launches(standing.Launches), steps)
	for _, demand := range standing.Demand {
		d.Demand = append(d.Demand, Demand{Pods: demand.Pods, Text: goes(demand)})
	}
	return d, true
}

// launches describes what a pool launches; "" for nothing.
func launches(list []plan.Launch) string {
	if len(list) == 0 {
		return ""
	}
	sum := 0
	for _, l := range list {
		sum += len(l.Pods)
	}
	return fmt.Sprintf("nodes: %d, for waiting pods: %d; first %s in %s", len(list), sum,
		view.Some(list[0].Types, view.TypesShown), view.Zones(list[0].Zones))
}

func goes(d engine.Demand) string {
	switch {
	case d.Waits:
		return "wait, and this pool says: " + string(d.Refuses)
	case d.Pool != "":
		return "go to pool " + d.Pool
	}
	return "go onto nodes that there are or that are on the way"
}
