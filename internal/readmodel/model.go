package readmodel

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// APIVersion is the version of the read model.
const APIVersion = "view.joiner.sh/v1"

// Input is the input of a model.
type Input struct {
	Snapshot *cluster.Snapshot
	// Plan is the last plan for the waiting pods.
	Plan plan.Plan
	// Terms are the current ones, for details of a node or a pool.
	Terms engine.Terms
	// Stays has the standing of nodes that should go, by ID; nil until it has been asked for.
	Stays map[string]engine.Standing
	// Remembered returns what is remembered of a pool.
	Remembered func(pool string) view.Memory
	// Paused says what pauses voluntary disruption; "" when nothing does.
	Paused string
}

// Model is the state of a cluster.
type Model struct {
	APIVersion string `json:"apiVersion"`
	// Version is that of the engine's snapshot.
	Version   uint64      `json:"version"`
	Totals    Totals      `json:"totals"`
	Attention []Attention `json:"attention"`
	Pools     []Pool      `json:"pools"`
	Nodes     []Node      `json:"nodes"`
	Waiting   []Waiting   `json:"waiting"`
}

// Totals are the sums over a cluster.
type Totals struct {
	Nodes int `json:"nodes"`
	// States counts the nodes by state; a state without a node is left out.
	States map[view.NodeState]int `json:"states"`
	// PricePerHour is the price of the machines with a known price, in dollars; Unpriced counts the others (U-21).
	PricePerHour float64 `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced"`
	// Running counts pods on nodes, and Waiting those without one.
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	// CPU (milli-cores) and Memory (bytes) are what is requested and what is allocatable on all existing nodes.
	CPU    [2]int64 `json:"cpu"`
	Memory [2]int64 `json:"memory"`
	// Staying counts nodes that should go and stay. Going counts nodes that nothing keeps. Both are known if
	// StaysKnown.
	Staying    int    `json:"staying"`
	Going      int    `json:"going"`
	StaysKnown bool   `json:"staysKnown"`
	Paused     string `json:"paused,omitempty"`
}

// Attention is something that somebody has to look at. Lists of it have the most urgent first.
type Attention struct {
	// What is pods, pool or nodes; Count counts them.
	What  string `json:"what"`
	Count int    `json:"count"`
	Code  string `json:"code"`
	Pool  string `json:"pool,omitempty"`
	Text  string `json:"text"`
}

// Waiting is a group of pods that wait for the same reason.
type Waiting struct {
	Key   string     `json:"key"`
	Code  cause.Code `json:"code"`
	Pool  string     `json:"pool,omitempty"`
	State view.State `json:"state"`
	Pods  int        `json:"pods"`
	// Cause is the cause of the first pod, and Examples are the first pods.
	Cause    view.Cause `json:"cause"`
	Examples []string   `json:"examples"`
}

// examples is how many pods of a group are named.
const examples = 3

// unplanned is the code of pods that are newer than the plan.
const unplanned = cause.NotMarkedUnschedulable

// Of makes the model of an input.
func Of(in Input) Model {
	b := builder{in: in, m: Model{APIVersion: APIVersion, Version: in.Snapshot.Version, Attention: []Attention{},
		Pools: []Pool{}, Nodes: []Node{}, Waiting: []Waiting{}}, pools: map[string]*tally{}}
	b.m.Totals = Totals{States: map[view.NodeState]int{}, StaysKnown: in.Stays != nil, Paused: in.Paused}
	for _, pool := range in.Snapshot.Pools {
		b.pools[pool.Name] = &tally{}
	}
	b.nodes()
	b.waiting()
	b.addPools()
	b.attend()
	return b.m
}

// builder makes a model.
type builder struct {
	in    Input
	m     Model
	pools map[string]*tally
	price resources.Money
}

// waiting groups the waiting pods. Groups that wait for somebody to act come first, then larger groups.
func (b *builder) waiting() {
	for _, group := range view.PodGroups(b.in.Snapshot, b.in.Plan) {
		w := Waiting{Key: string(group.Cause) + "/" + group.Pool, Code: cmp.Or(group.Cause, unplanned),
			Pool: group.Pool, State: group.Explanation.State, Pods: len(group.Pods), Cause: *group.Explanation.Cause}
		for _, pod := range group.Pods[:min(examples, len(group.Pods))] {
			w.Examples = append(w.Examples, pod.Ref())
		}
		b.m.Totals.Waiting += w.Pods
		if pool := b.pools[group.Pool]; pool != nil {
			pool.waiting += w.Pods
		}
		b.m.Waiting = append(b.m.Waiting, w)
	}
	slices.SortFunc(b.m.Waiting, func(a, b Waiting) int {
		// Held comes after Coming in the alphabet.
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Key, b.Key))
	})
}

// attend lists what somebody has to look at: held pods, pools that may launch nothing, nodes that are not Ready, and
// last nodes that should go and are kept.
func (b *builder) attend() {
	for _, w := range b.m.Waiting {
		if w.State == view.Held && w.Cause.Code != unplanned {
			b.m.Attention = append(b.m.Attention, Attention{What: "pods", Count: w.Pods, Code: string(w.Code),
				Pool: w.Pool, Text: w.Cause.Text})
		}
	}
	for _, pool := range b.m.Pools {
		told := func(a Attention) bool {
			return pool.Cause != nil && a.Pool == pool.Name && a.Code == string(pool.Cause.Code)
		}
		if pool.Cause != nil && !slices.ContainsFunc(b.m.Attention, told) {
			b.m.Attention = append(b.m.Attention, Attention{What: "pool", Count: 1, Code: string(pool.Cause.Code),
				Pool: pool.Name, Text: pool.Cause.Text})
		}
	}
	for _, list := range [][]*Attention{b.nodeGroups(true), b.nodeGroups(false)} {
		for _, a := range list {
			b.m.Attention = append(b.m.Attention, *a)
		}
	}
}

// nodeGroups groups the held nodes: those that are not Ready, or those that stay.
func (b *builder) nodeGroups(notReady bool) []*Attention {
	at, list := map[view.CauseOfPool]*Attention{}, []*Attention{}
	for i := range b.m.Nodes {
		node := &b.m.Nodes[i]
		if node.Stays == nil || node.Stays.State != view.Held || node.State != view.NodeReady && !notReady ||
			notReady != (node.State == view.NodeNotReady || node.Stays.Code == cause.PoolGone) {
			continue
		}
		key := view.CauseOfPool{Cause: node.Stays.Code, Pool: node.Pool}
		if at[key] == nil {
			at[key] = &Attention{What: "nodes", Code: string(node.Stays.Code), Pool: node.Pool, Text: node.Stays.Text}
			list = append(list, at[key])
		}
		at[key].Count++
	}
	slices.SortStableFunc(list, func(a, b *Attention) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
