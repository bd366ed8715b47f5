package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Status is how a cluster stands, on one screen (U-24). Its names in JSON are an API (U-29).
type Status struct {
	APIVersion string `json:"apiVersion"` // APIVersion
	Kind       string `json:"kind"`       // "Status"
	// Controller is who decides; nil where nobody could tell.
	Controller *Controller `json:"controller,omitempty"`
	// Pause is set while nothing is disrupted that budgets bound; PauseKnown says whether anybody could tell.
	Pause      *Pause `json:"pause,omitempty"`
	PauseKnown bool   `json:"pauseKnown"`
	// Pools are the NodePools, by name.
	Pools []PoolStatus `json:"pools"`
	// Unmanaged counts nodes of no NodePool that is planned for.
	Unmanaged int `json:"unmanaged,omitempty"`
	// Waiting counts the pods that wait, by cause, and Kept the nodes that are to go and stay: first the causes that
	// hold until somebody does something, of those the most frequent.
	Waiting []CauseCount `json:"waiting"`
	Kept    []CauseCount `json:"kept"`
	// Going counts the nodes that would be chosen to go now.
	Going int `json:"going"`
	// PricePerHour is of the nodes whose price is known; Unpriced counts the others. Estimated: see Result.
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
	Estimated    bool    `json:"estimated,omitempty"`
	// Commitments are what is paid for anyway, and how much of it nodes use (K-55). What they pay is in PricePerHour.
	Commitments []view.Commitment `json:"commitments,omitempty"`
	// Attention is what somebody has to look at, most urgent first; Next is the command to begin with.
	Attention []Attention `json:"attention"`
	Next      string      `json:"next,omitempty"`
	// Notes are what could not be understood, or is not planned for; NotChecked kinds that could not be read.
	Notes      []string `json:"notes,omitempty"`
	NotChecked []string `json:"notChecked,omitempty"`

	now time.Time
}

// PoolStatus is how a NodePool stands.
type PoolStatus struct {
	Name string `json:"name"`
	// Nodes counts all of the pool's: those OnTheWay, which are not initialized, and those Leaving among them.
	Nodes    int `json:"nodes"`
	OnTheWay int `json:"onTheWay"`
	Leaving  int `json:"leaving"`
	// Limit is the limit that binds first, in words: "200 hard".
	Limit string `json:"limit,omitempty"`
	// Ready is the condition of the pool: True, False or Unknown.
	Ready string `json:"ready"`
	// Waiting counts the pods that this pool is nearest to taking.
	Waiting      int      `json:"waiting"`
	PricePerHour *Dollars `json:"pricePerHour"`
	Unpriced     int      `json:"unpriced,omitempty"`
}

// CauseCount is how many pods or nodes have a cause.
type CauseCount struct {
	Code string `json:"code"`
	// State is Held, or Coming where it ends without anybody.
	State view.State `json:"state"`
	Count int        `json:"count"`
	// Example is one of them.
	Example About `json:"example"`
}

// Attention is what somebody has to look at.
type Attention struct {
	Code string `json:"code"`
	// Object is what it is about; Pool is the NodePool that it is told with, "" for none.
	Object About  `json:"object"`
	Pool   string `json:"pool,omitempty"`
	Text   string `json:"text"`
	// Next is a command that says more.
	Next string `json:"next,omitempty"`
}

// Codes of attention that are no causes.
const (
	codeBudgetUnread = "BudgetUnreadable"
	codePauseUnread  = "PauseUnreadable"
)

// StatusInput is a status's input in addition to the objects of the World.
type StatusInput struct {
	// Surroundings are the objects about the controller.
	Surroundings Surroundings
	// PodsWaiting and Draining are how long something may take before it needs attention.
	PodsWaiting, Draining time.Duration
	// NotChecked are kinds that could not be read.
	NotChecked []string
}

// stater builds a Status.
type stater struct {
	w     *World
	in    StatusInput
	s     *cluster.Snapshot
	out   Status
	pools map[string]*PoolStatus
	// waits are the waiting pods with a cause, by namespace and name. stands are the explanations of nodes that are to
	// go, by Node.ID.
	waits  []waits
	stands map[string]view.Explanation
}

// waits is a pod without a node, and why.
type waits struct {
	about About
	view.Explanation
	since *time.Time // nil when that is not known
}

// Status returns the state of the cluster.
func (w *World) Status(in StatusInput) Status { return w.status(in).out }

func (w *World) status(in StatusInput) *stater {
	st := &stater{w: w, in: in, s: w.store.Snapshot(), pools: map[string]*PoolStatus{},
		stands: map[string]view.Explanation{},
		out: Status{APIVersion: APIVersion, Kind: "Status", Pools: []PoolStatus{},
			Waiting: []CauseCount{}, Kept: []CauseCount{}, Attention: []Attention{}, Estimated: w.estimated,
			Notes: w.Notes, NotChecked: in.NotChecked, now: w.now}}
	st.controller()
	st.countNodes()
	st.out.Commitments = view.CommitmentsOf(st.s)
	st.conditions()
	st.waiting()
	st.draining()
	st.kept()
	for _, name := range slices.Sorted(maps.Keys(st.pools)) {
		st.out.Pools = append(st.out.Pools, *st.pools[name])
	}
	for _, a := range st.out.Attention {
		if st.out.Next == "" {
			st.out.Next = a.Next
		}
	}
	return st
}

// Clean reports whether nothing needs attention.
func (s Status) Clean() bool { return len(s.Attention) == 0 }

// Names returns the objects that need attention.
func (s Status) Names() []string {
	var names Names
	for _, a := range s.Attention {
		names.Add(a.Object.Kind, a.Object.Namespace, a.Object.Name)
	}
	return names.List()
}

func (st *stater) attend(a Attention) { st.out.Attention = append(st.out.Attention, a) }

// countNodes counts nodes and their cost.
func (st *stater) countNodes() {
	for _, o := range st.w.objects {
		if pool, is := o.Object.(*karpenterv1.NodePool); is {
			st.pools[pool.Name] = &PoolStatus{Name: pool.Name, Limit: limitOf(pool),
				Ready: string(readyOf(pool).Status)}
		}
	}
	for _, node := range st.s.Nodes {
		if node.Claim == "" {
			st.out.Unmanaged++
			continue
		}
		pool := st.pools[node.Pool]
		if pool == nil {
			pool = &PoolStatus{Name: node.Pool, Ready: "-"}
			st.pools[node.Pool] = pool
		}
		pool.Nodes++
		switch {
		case node.Leaves():
			pool.Leaving++
		case !node.Initialized:
			pool.OnTheWay++
		}
		switch {
		case !node.Launched && !node.Initialized: // there is no machine yet
		case node.Price == resources.Unpriced:
			pool.Unpriced++
			st.out.Unpriced++
		default:
			if pool.PricePerHour == nil {
				pool.PricePerHour = new(Dollars)
			}
			*pool.PricePerHour += Dollars(node.Price)
			st.out.PricePerHour += Dollars(node.Price)
		}
	}
}

// nodesLimit is the key of the limit on nodes.
const nodesLimit = "nodes"

// limitOf returns the limit of a pool that applies first: that on nodes, or else the first on a resource.
func limitOf(pool *karpenterv1.NodePool) string {
	if pool.Spec.Replicas != nil {
		return fmt.Sprintf("%d static", *pool.Spec.Replicas)
	}
	if most, has := pool.Spec.HardLimits[nodesLimit]; has {
		return most.String() + " hard"
	}
	if most, has := pool.Spec.Limits[nodesLimit]; has {
		return most.String() + " soft"
	}
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		most := pool.Spec.Limits[name]
		return most.String() + " " + string(name)
	}
	return ""
}

// waiting checks every pod without a node, with one plan for all.
func (st *stater) waiting() {
	counts, overdue := counter{}, late{}
	for _, name := range slices.Sorted(maps.Keys(st.w.known)) {
		pod := st.w.known[name]
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || translate.Finished(pod) || ofDaemonSet(pod) {
			continue
		}
		e := st.w.explain(pod, false)
		if e.Cause == nil {
			continue
		}
		about := About{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
		pool := st.poolOf(e.Cause.Object)
		if known := st.pools[pool]; known != nil {
			known.Waiting++
		}
		counts.add(string(e.Cause.Code), about, e.State)
		since, known := waitsSince(pod)
		st.waits = append(st.waits, waits{about: about, Explanation: e, since: timeOf(since)})
		if e.Cause.Code == cause.NodeOnTheWay || known && st.w.now.Sub(since) < st.in.PodsWaiting ||
			!known && e.State != view.Held {
			continue
		}
		overdue.add(pool, e, about)
	}
	st.out.Attention = append(st.out.Attention, overdue.attention()...)
	st.out.Waiting = counts.sorted()
}

// late are the pods that wait for too long, by pool and cause.
type late map[[2]string]*lateGroup

type lateGroup struct {
	Attention
	pods  int
	state view.State
}

func (l late) add(pool string, e view.Explanation, about About) {
	key := [2]string{pool, string(e.Cause.Code)}
	if l[key] == nil {
		l[key] = &lateGroup{state: e.State, Attention: Attention{Code: key[1], Object: about, Pool: pool,
			Text: e.Cause.Text,
			Next: "joinerctl explain pod " + about.Namespace + "/" + about.Name}}
	}
	l[key].pods++
}

// attention sorts what ends by itself last, then by number of pods.
func (l late) attention() []Attention {
	groups := slices.SortedFunc(maps.Values(l), func(a, b *lateGroup) int {
		return cmp.Or(cmp.Compare(b.state, a.state), cmp.Compare(b.pods, a.pods), cmp.Compare(a.Pool, b.Pool),
			cmp.Compare(a.Code, b.Code))
	})
	list := make([]Attention, 0, len(groups))
	for _, group := range groups {
		group.Text = count(group.pods, "pod waits", "pods wait") + ": " + group.Text
		list = append(list, group.Attention)
	}
	return list
}

// poolOf returns the pool that a cause is about, "" for none.
func (st *stater) poolOf(object view.Object) string {
	if object.Kind == "NodePool" {
		return object.Name
	}
	for _, node := range st.s.Nodes {
		if object.Kind == "NodeClaim" && node.Claim == object.Name ||
			object.Kind == "Node" && node.Name == object.Name {
			return node.Pool
		}
	}
	return ""
}

func ofDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// waitsSince returns since when kube-scheduler has found no place, or else when the pod was created. It is unknown for
// a pod that no cluster has seen.
func waitsSince(pod *corev1.Pod) (time.Time, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time, true
		}
	}
	return pod.CreationTimestamp.Time, !pod.CreationTimestamp.IsZero()
}

// timeOf returns an object's time, nil if the object has none.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() || t.Unix() == 0 {
		return nil
	}
	return &t
}

// kept checks the nodes that are to go but stay.
func (st *stater) kept() {
	terms, err := st.w.terms(st.s)
	if err != nil {
		st.attend(Attention{Code: codeBudgetUnread, Text: err.Error()})
	}
	kept, going := engine.Kept(st.s, terms)
	counts := counter{}
	for _, k := range slices.Concat(kept, going) {
		stands := st.w.remembered(k.Node.Pool, []engine.Standing{k.Standing})[0]
		e := view.Standing(stands, k.Node.Pool)
		st.stands[k.Node.ID()] = e
		if stands.Goes != "" {
			st.out.Going++
		} else if e.State == view.Held {
			counts.add(string(stands.Cause), About{Kind: "Node", Name: k.Node.ID()}, e.State)
		}
	}
	st.out.Kept = counts.sorted()
}

// counter counts by cause.
type counter map[string]*CauseCount

func (c counter) add(code string, about About, state view.State) {
	if c[code] == nil {
		c[code] = &CauseCount{Code: code, State: state, Example: about}
	}
	c[code].Count++
}

func (c counter) sorted() []CauseCount {
	list := make([]CauseCount, 0, len(c))
	for _, entry := range c {
		list = append(list, *entry)
	}
	slices.SortFunc(list, func(a, b CauseCount) int {
		// Held comes after Coming in the alphabet.
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	return list
}
