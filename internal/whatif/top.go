package whatif

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Top is what joinerctl top shows (U-05): the nodes with what they have and cost, what waits, and the pools. Its names
// in JSON are an API (U-29).
type Top struct {
	APIVersion string `json:"apiVersion"` // APIVersion
	Kind       string `json:"kind"`       // "NodeList"
	// Items are the nodes that were asked for, in the order that was asked for, and Totals what they come to.
	Items  []TopNode `json:"items"`
	Totals TopTotals `json:"totals"`
	// Waiting are the pods that wait, by cause in the order of Status, and Pools the NodePools, by name.
	Waiting []TopWaiting `json:"waiting"`
	Pools   []TopPool    `json:"pools"`
	// Status is what joinerctl status says.
	Status Status `json:"status"`
}

// TopNode is a node, or a NodeClaim without one.
type TopNode struct {
	// Name is that of the node or, while there is none, of the NodeClaim.
	Name  string `json:"name"`
	Claim string `json:"nodeClaim,omitempty"`
	Pool  string `json:"pool,omitempty"`
	// Types, Zones and CapacityTypes are those of the machine: more than one while they are open, none where nobody
	// knows.
	Types         []string `json:"types,omitempty"`
	Zones         []string `json:"zones,omitempty"`
	CapacityTypes []string `json:"capacityTypes,omitempty"`
	PricePerHour  *Dollars `json:"pricePerHour"` // nil when nobody knows, or there is no machine
	// Use is what its pods ask for of what it has for pods, for each resource that was asked for.
	Use []Use `json:"use"`
	// Pods counts the pods that are bound to it, nil when pods could not be read; Planned those that are expected on
	// it.
	Pods    *int `json:"pods"`
	Planned int  `json:"planned,omitempty"`
	// Created is when it was made, and Since when it came to its state; nil when that is not known.
	Created *time.Time     `json:"created,omitempty"`
	State   view.NodeState `json:"state"`
	Since   *time.Time     `json:"since,omitempty"`
	// Standing is why it stays though something wants it gone, or what holds it at its state; nil when nothing does.
	Standing *view.Explanation `json:"standing,omitempty"`

	node *cluster.Node
}

// Use is how much of a resource is asked for.
type Use struct {
	Resource string `json:"resource"`
	// Used is what pods ask for, and Of what nodes have for pods; "" when nobody knows, and Percent is nil then, or
	// when there is none of it.
	Used    string `json:"used,omitempty"`
	Of      string `json:"of,omitempty"`
	Percent *int   `json:"percent"`

	used, of int64
}

// TopTotals are those of a number of nodes.
type TopTotals struct {
	// Nodes counts them, and All all that the cluster has.
	Nodes int `json:"nodes"`
	All   int `json:"all"`
	// States counts them by state, in the order of a node's life; Stay those that are to go and stay.
	States []TopState `json:"states"`
	Stay   int        `json:"stay,omitempty"`
	// Pods counts the pods that are bound to them, nil when pods could not be read.
	Pods *int `json:"pods"`
	// Use leaves out nodes of which nobody knows what they have.
	Use []Use `json:"use"`
	// PricePerHour is of the machines whose price is known, and Unpriced counts the others; Unmanaged nodes are in
	// neither.
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
	Unmanaged    int     `json:"unmanaged,omitempty"`
}

// TopState is a number of nodes in a state.
type TopState struct {
	State view.NodeState `json:"state"`
	Nodes int            `json:"nodes"`
}

// TopWaiting are the pods that wait for a cause.
type TopWaiting struct {
	CauseCount
	// Text is what is said of the first of them, Remedies what can be done, ByItself what ends it without anybody.
	Text     string   `json:"text"`
	Remedies []string `json:"remedies,omitempty"`
	ByItself string   `json:"byItself,omitempty"`
	// Since is when the first began to wait; nil when that is not known.
	Since *time.Time `json:"since,omitempty"`
	// Pods are all of them, namespace/name.
	Pods []string `json:"pods"`
}

// TopPool is a NodePool.
type TopPool struct {
	PoolStatus
	Limits []view.Bound `json:"limits,omitempty"`
	// Budgets are those of spec.disruption.budgets, in their order, and Going how many nodes count against them.
	Budgets []TopBudget `json:"budgets,omitempty"`
	Going   int         `json:"going,omitempty"`
}

// TopBudget is a budget of disruption.
type TopBudget struct {
	Nodes   string   `json:"nodes"`
	Reasons []string `json:"reasons,omitempty"` // none means every reason
	// InForce says that it counts now, and Allows how many nodes may be going then.
	InForce bool `json:"inForce"`
	Allows  int  `json:"allows"`
}

// TopInput is a top's input in addition to the objects of the World.
type TopInput struct {
	StatusInput
	// PodsUnread says that pods could not be read, so that their requests are not known.
	PodsUnread bool
	// Pool is the NodePool whose nodes are requested, "" for all. Selector selects nodes by their labels; nil selects
	// all.
	Pool     string
	Selector labels.Selector
	// Resources are those whose use is shown. Sort is the order of nodes, see [Top.Sort].
	Resources []string
	Sort      string
}

// Top returns the nodes of the cluster, with totals, pools and what waits.
func (w *World) Top(in TopInput) Top {
	st := w.status(in.StatusInput)
	w.planned() // so that later users of this World need not make it
	t := Top{APIVersion: APIVersion, Kind: "NodeList", Items: []TopNode{}, Waiting: st.waitsByCause(), Status: st.out}
	claims := map[string]*karpenterv1.NodeClaim{}
	for _, o := range w.objects {
		if claim, is := o.Object.(*karpenterv1.NodeClaim); is {
			claims[claim.Name] = claim
		}
	}
	for _, node := range st.s.Nodes {
		if in.Pool != "" && node.Pool != in.Pool ||
			in.Selector != nil && !in.Selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		t.Items = append(t.Items, st.topNode(node, claims[node.Claim], in))
	}
	t.Totals = totalsOf(t.Items, in, len(st.s.Nodes), st.s.Names)
	t.Pools = st.topPools(in.Pool)
	t.Sort(in.Sort)
	return t
}

// Clean reports whether nothing needs attention.
func (t Top) Clean() bool { return t.Status.Clean() }

// Names returns the objects that need attention.
func (t Top) Names() []string { return t.Status.Names() }

// topNode returns a node with what is known of it.
func (st *stater) topNode(node *cluster.Node, claim *karpenterv1.NodeClaim, in TopInput) TopNode {
	n := TopNode{Name: node.ID(), Claim: node.Claim, Pool: node.Pool, State: view.StateOf(node), node: node,
		Types:         openOf(node, string(catalog.LabelInstanceType)),
		Zones:         openOf(node, string(catalog.LabelZone)),
		CapacityTypes: openOf(node, string(catalog.LabelCapacityType)),
		Planned:       len(st.w.planned().NominationsOf(node.ID())), Use: []Use{}}
	if node.Claim != "" && (node.Launched || node.Initialized) && node.Price != resources.Unpriced {
		price := Dollars(node.Price)
		n.PricePerHour = &price
	}
	if node.Created > 0 {
		created := time.Unix(node.Created, 0).UTC()
		n.Created = &created
	}
	if !in.PodsUnread {
		pods := len(node.Pods)
		n.Pods = &pods
	}
	for _, name := range in.Resources {
		n.Use = append(n.Use, useOf(st.s.Names, name, node, in.PodsUnread))
	}
	n.Since = sinceOf(n.State, claim)
	n.Standing = st.standing(node, n.State)
	return n
}

// openOf returns the values that a label of a node has, or may get.
func openOf(node *cluster.Node, label string) []string {
	if value := node.Labels[label]; value != "" {
		return []string{value}
	}
	if !node.Open.Holds(requirement.Key(label)) {
		return nil
	}
	values, finite := node.Open.Get(requirement.Key(label)).Values()
	if !finite {
		return nil
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}

// useOf returns what the pods of a node request of a resource. It leaves out a node that has not joined: it uses
// nothing yet.
func useOf(names resources.Names, resource string, node *cluster.Node, unread bool) Use {
	use := Use{Resource: resource}
	at := slices.Index(names, resource)
	if at < 0 || node.Name == "" || node.Allocatable.At(at) <= 0 {
		return use
	}
	use.of = node.Allocatable.At(at)
	use.Of = names.FormatOne(at, use.of)
	if unread {
		return use
	}
	use.used = node.Used.At(at)
	use.Used = names.FormatOne(at, use.used)
	use.measure()
	return use
}

func (u *Use) measure() {
	percent := int(float64(u.used) * 100 / float64(u.of))
	u.Percent = &percent
}

// sinceOf returns when a node came to its state, according to its claim.
func sinceOf(state view.NodeState, claim *karpenterv1.NodeClaim) *time.Time {
	if claim == nil {
		return nil
	}
	kind := ""
	switch state {
	case view.NodeLaunching:
		return timeOf(claim.CreationTimestamp.Time)
	case view.NodeDraining:
		if claim.DeletionTimestamp == nil {
			return nil
		}
		return timeOf(claim.DeletionTimestamp.Time)
	case view.NodeJoining:
		kind = karpenterv1.ConditionTypeLaunched
	case view.NodeInitializing:
		kind = karpenterv1.ConditionTypeRegistered
	case view.NodeChosen:
		kind = karpenterv1.ConditionTypeDisruptionReason
	default:
		return nil
	}
	since, _ := condition.Since(claim.Status.Conditions, kind)
	return timeOf(since)
}

// standing returns the explanation of a node that does not simply run; nil if it does.
func (st *stater) standing(node *cluster.Node, state view.NodeState) *view.Explanation {
	switch state {
	case view.NodeReady:
		if e, is := st.stands[node.ID()]; is {
			return &e
		}
		return nil
	case view.NodeLaunching, view.NodeJoining:
		if e, err := st.w.ExplainClaim(node.Claim); err == nil {
			return &e.Explanation
		}
	}
	found := st.w.remembered(node.Pool, []engine.Standing{engine.Why(st.s, engine.Terms{Now: st.w.now.Unix()}, node)})
	e := view.Standing(found[0], node.Pool)
	return &e
}

// Stays reports whether something wants the node gone and something else keeps it.
func (n TopNode) Stays() bool {
	return n.State == view.NodeReady && n.Standing != nil && n.Standing.Cause != nil
}

// Label returns a label of the node, "" if it does not have it.
func (n TopNode) Label(key string) string { return n.node.Labels[key] }

// PodNames returns the pods that are bound to the node, namespace/name, sorted.
func (n TopNode) PodNames() []string {
	var names []string
	for _, pod := range n.node.Pods {
		names = append(names, pod.Ref())
	}
	slices.Sort(names)
	return names
}

// totalsOf returns the totals of nodes.
func totalsOf(nodes []TopNode, in TopInput, all int, names resources.Names) TopTotals {
	t := TopTotals{Nodes: len(nodes), All: all, States: []TopState{}, Use: []Use{}}
	states := map[view.NodeState]int{}
	pods := 0
	for _, name := range in.Resources {
		t.Use = append(t.Use, Use{Resource: name})
	}
	for _, n := range nodes {
		states[n.State]++
		if n.Stays() && n.Standing.State == view.Held {
			t.Stay++
		}
		pods += len(n.node.Pods)
		for i, use := range n.Use {
			t.Use[i].used, t.Use[i].of = resources.Sum(t.Use[i].used, use.used), resources.Sum(t.Use[i].of, use.of)
		}
		switch {
		case n.State == view.NodeUnmanaged:
			t.Unmanaged++
		case n.PricePerHour != nil:
			t.PricePerHour += *n.PricePerHour
		case n.node.Launched || n.node.Initialized:
			t.Unpriced++
		}
	}
	for i := range t.Use {
		use := &t.Use[i]
		if at := slices.Index(names, use.Resource); at >= 0 && use.of > 0 {
			if use.Of = names.FormatOne(at, use.of); !in.PodsUnread {
				use.Used = names.FormatOne(at, use.used)
				use.measure()
			}
		}
	}
	if !in.PodsUnread {
		t.Pods = &pods
	}
	for _, state := range append(view.NodeStates(), view.NodeUnmanaged) {
		if states[state] > 0 {
			t.States = append(t.States, TopState{State: state, Nodes: states[state]})
		}
	}
	return t
}

// waitsByCause returns the waiting pods, in the groups of the status.
func (st *stater) waitsByCause() []TopWaiting {
	groups := []TopWaiting{}
	for _, counted := range st.out.Waiting {
		group := TopWaiting{CauseCount: counted, Pods: []string{}}
		for _, pod := range st.waits {
			if string(pod.Cause.Code) != counted.Code {
				continue
			}
			if len(group.Pods) == 0 {
				group.Text, group.Remedies, group.ByItself = pod.Cause.Text, pod.Cause.Remedies, pod.Cause.ByItself
			}
			group.Pods = append(group.Pods, pod.about.Namespace+"/"+pod.about.Name)
			if pod.since != nil && (group.Since == nil || pod.since.Before(*group.Since)) {
				group.Since = pod.since
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// topPools returns the pools of the status with limits and budgets; with only, just that pool.
func (st *stater) topPools(only string) []TopPool {
	pools, sizes, taken := []TopPool{}, engine.Sizes(st.s), engine.Taken(st.s)
	for _, status := range st.out.Pools {
		if only != "" && status.Name != only {
			continue
		}
		pool := TopPool{PoolStatus: status, Going: taken[status.Name]}
		if value := st.s.Pool(status.Name); value != nil {
			pool.Limits = view.Bounds(st.s, value)
		}
		if object := st.w.pool(status.Name); object != nil {
			for _, budget := range object.Spec.Disruption.Budgets {
				pool.Budgets = append(pool.Budgets, st.budget(object, budget, sizes[status.Name]))
			}
		}
		pools = append(pools, pool)
	}
	return pools
}

// budget returns what one budget allows now. An unreadable budget allows nothing.
func (st *stater) budget(pool *karpenterv1.NodePool, budget karpenterv1.Budget, nodes int) TopBudget {
	alone := *pool
	alone.Spec.Disruption.Budgets = []karpenterv1.Budget{budget}
	b := TopBudget{Nodes: budget.Nodes.String()}
	for _, reason := range budget.Reasons {
		b.Reasons = append(b.Reasons, string(reason))
	}
	active, _ := translate.ActiveBudgets(&alone, st.w.now, nodes) //nolint:errcheck // status tells what cannot be read
	if b.InForce = len(active) > 0; b.InForce {
		b.Allows = active[0].Max
	}
	return b
}

// Orders of nodes other than by a label.
const (
	SortPrice = "price"
	SortFree  = "free"
	SortAge   = "age"
	SortName  = "name"
)

// Sort sorts the nodes: by price (highest first), free capacity (most first), age (oldest first), name, or the value
// of a label. Unknown values come last.
func (t Top) Sort(by string) { SortNodes(t.Items, by) }

// SortNodes is [Top.Sort] for nodes.
func SortNodes(nodes []TopNode, by string) {
	slices.SortFunc(nodes, func(a, b TopNode) int {
		first := 0
		switch by {
		case "", SortPrice:
			first = unknownLast(a.PricePerHour == nil, b.PricePerHour == nil)
			if a.PricePerHour != nil && b.PricePerHour != nil {
				first = cmp.Compare(*b.PricePerHour, *a.PricePerHour)
			}
		case SortFree:
			one, other := fullest(a.Use), fullest(b.Use)
			first = cmp.Or(unknownLast(one < 0, other < 0), cmp.Compare(one, other))
		case SortAge:
			first = unknownLast(a.Created == nil, b.Created == nil)
			if a.Created != nil && b.Created != nil {
				first = a.Created.Compare(*b.Created)
			}
		case SortName:
		default:
			one, other := a.Label(by), b.Label(by)
			first = cmp.Or(unknownLast(one == "", other == ""), strings.Compare(one, other))
		}
		return cmp.Or(first, strings.Compare(a.Name, b.Name), strings.Compare(a.Claim, b.Claim))
	})
}

// unknownLast sorts unknown values last.
func unknownLast(a, b bool) int { return boolean(a) - boolean(b) }

// fullest returns the highest percentage of use of any resource, -1 if none is known.
func fullest(use []Use) int {
	most := -1
	for _, u := range use {
		if u.Percent != nil {
			most = max(most, *u.Percent)
		}
	}
	return most
}
