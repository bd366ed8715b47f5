package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file is the one table of why nodes go. Whoever chooses a node, judges a chosen one, or says why one stays, asks
// the table. A new method is a row here, a verb that chooses, and a script; see [Judge].

// rule is a row: what holds for removals of one reason.
type rule struct {
	reason plan.DisruptionReason
	// when says in words what due decides.
	when string
	// due says why a node is not due for this reason, or not any more; the zero value when it is. nil where somebody
	// else counts or measures that.
	due func(subject) Standing
	// kept is what keeps a node that is due. aside is the part of it that does not count while a
	// terminationGracePeriod ends the drain.
	kept, aside keeper
	room        room
	budget      purse
	// poolless rules do not ask the node's NodePool.
	poolless bool
}

// table is in the order in which a round asks its rows; what other controllers do comes last.
var table = []rule{
	{reason: plan.NodeLimitExceeded,
		when: "its NodePool has more nodes than its limit, and it comes first in the order of L-41",
		kept: byNode | byPods | byGuards, budget: ifGentle, poolless: true},
	{reason: plan.ReplicasExceeded,
		when: "its static NodePool has more nodes than replicas, and it comes first in the order of L-41",
		kept: byNode | byPods | byGuards, budget: ifGentle, poolless: true},
	{reason: plan.ReplacementAbandoned, when: "it was launched to replace nodes that stay, and no pod runs on it",
		due: dueAbandoned, kept: byNode | byPods | byGuards | byPromise, budget: ownLater, poolless: true},
	{reason: plan.Empty, when: "no pod on it would have to move, and its quiet time is over",
		due: dueEmpty, kept: byReplaced | byNode | byPods | byGuards | byPromise | byFloor, budget: own},
	{reason: plan.Expired, when: "it is older than expireAfter, and its NodePool asks for budgets to be kept",
		due: dueExpired, kept: byReplaced | byNode | byPods | byGuards | byPromise, room: anyPrice, budget: own},
	{reason: plan.Drifted, when: "it is not what its NodePool would make any more",
		due: dueDrifted, kept: byReplaced | byNode | byPods | byGuards | byPromise, aside: byPods | byGuards,
		room: anyPrice, budget: own},
	{reason: plan.Underutilized,
		when: "its NodePool consolidates nodes in use, its quiet time is over and its price is known",
		due:  dueUnderutilized, kept: byReplaced | byNode | byPods | byGuards | byPromise, room: lessMoney,
		budget: own},
	{reason: plan.Unhealthy,
		when: "a condition of its provider's repair policies holds for longer than it is tolerated",
		kept: byNode, room: ifAny, budget: own, poolless: true},
}

// Reasons returns the reasons for which nodes are marked to go, in the order in which a round asks about them.
func Reasons() []plan.DisruptionReason {
	var list []plan.DisruptionReason
	for _, r := range table {
		list = append(list, r.reason)
	}
	return list
}

// Method is a way to choose nodes that go.
type Method struct {
	Name   string
	Reason plan.DisruptionReason
	Plan   func(*cluster.Snapshot, Terms) plan.Plan
}

// Methods returns the methods of which one acts at a time, in the order in which a round asks them. [Trim] comes
// before them.
func Methods() []Method {
	return []Method{
		{"emptiness", plan.Empty, func(s *cluster.Snapshot, t Terms) plan.Plan {
			return Emptiness(s, t.Now, t.Budgets)
		}},
		{"expire", plan.Expired, Expire},
		{"drift", plan.Drifted, Drift},
		{"consolidate", plan.Underutilized, Consolidate},
	}
}

// ruleOf returns the row of a reason; nil when there is none.
func ruleOf(reason plan.DisruptionReason) *rule {
	for i := range table {
		if table[i].reason == reason {
			return &table[i]
		}
	}
	return nil
}

// room is what has to be there for the pods of nodes that go.
type room uint8

const (
	noRoom    room = iota // none: there are no such pods, or nobody asks
	anyPrice              // places that are there, or that are launched at whatever price
	lessMoney             // the same for less than the nodes cost
	ifAny                 // places that are launched first, where that can be: the nodes go all the same
)

// purse is which budget a removal takes from.
type purse uint8

const (
	own      purse = iota // that of its reason; beyond it the node stays
	ownLater              // that of its reason; beyond it the node stays marked, and goes later
	ifGentle              // none, unless the pool is gentle: then that of empty nodes, or of those whose pods move
)

// takes returns the reason whose budgets bound a removal; false for none. gentle is whether the node's pool is.
func (r *rule) takes(node *cluster.Node, gentle bool) (plan.DisruptionReason, bool) {
	if r.budget != ifGentle {
		return r.reason, true
	}
	return trimBudget(node), gentle
}

// keepers is what keeps the node from going for this reason. gentle is whether its pool is.
func (r *rule) keepers(node *cluster.Node, gentle bool) keeper {
	switch {
	case r.budget == ifGentle && !gentle:
		return 0
	case node.DrainEnds:
		return r.kept &^ r.aside
	}
	return r.kept
}

// subject is a node, with what rules need to say whether it is due.
type subject struct {
	node *cluster.Node
	pool *cluster.Pool // never nil, unless the rule is poolless
	now  int64
	// chosen is set when the node was chosen before: what was weighed then is not asked again.
	chosen bool
}

// What is said in several places.
const (
	gateOff  = "the feature gate StaticCapacity is off"
	poolGone = "its NodePool is gone"
)

// no is a Standing that has no code, since Why never meets it.
func no(text string) Standing { return Standing{Text: text} }

func dueEmpty(x subject) Standing {
	if found := inUse(x.node); found.Text != "" {
		return found
	}
	return notIdle(x)
}

// inUse says why a node is not empty.
func inUse(node *cluster.Node) Standing {
	switch {
	case node.Name == "" || !node.Initialized:
		return no("it is not initialized")
	case slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool { return !p.Fixed }):
		return no("it is not empty any more")
	}
	return Standing{}
}

// notIdle says why a node, or any of its pool, does not go to save money now.
func notIdle(x subject) Standing {
	switch pool := x.pool.Name; {
	case x.pool.Static:
		return Standing{Cause: cause.StaticPoolNode,
			Text: fmt.Sprintf("NodePool %s keeps %s, also empty ones", pool, nodesText(int(x.pool.Replicas)))}
	case x.node.ConsolidatableAt == cluster.Never:
		return Standing{Cause: cause.ConsolidationOff, Text: "NodePool " + pool + " never removes nodes to save money"}
	case x.node.ConsolidatableAt > x.now:
		return Standing{Cause: cause.QuietTime, Until: x.node.ConsolidatableAt,
			Text: "pods came or went, and NodePool " + pool + " waits for its consolidateAfter"}
	}
	return Standing{}
}

func dueUnderutilized(x subject) Standing {
	found := notIdle(x)
	switch onlyEmpty := x.pool.Consolidates == cluster.WhenEmpty; {
	case found.Cause == cause.StaticPoolNode, x.node.ConsolidatableAt == cluster.Never && !x.chosen:
		return found
	case onlyEmpty:
		_, pods := DisruptionCost(x.node)
		return Standing{Cause: cause.ConsolidationOff,
			Text: fmt.Sprintf("NodePool %s removes empty nodes only, and on this one %s", x.pool.Name, podsRun(pods))}
	case x.chosen:
		return Standing{}
	case found.Text == "" && x.node.Price == resources.Unpriced:
		return Standing{Cause: cause.PriceUnknown, Text: "its price is not known, so nothing can be called cheaper"}
	}
	return found
}

func dueDrifted(x subject) Standing {
	if !x.node.Drifted {
		return no("it is not drifted any more")
	}
	return Standing{}
}

func dueExpired(x subject) Standing {
	if !x.node.Expired || !x.pool.ExpiresGracefully {
		return no("it is not to be replaced for its age any more")
	}
	return Standing{}
}

func dueAbandoned(x subject) Standing {
	if slices.ContainsFunc(x.node.Pods, func(p *cluster.Pod) bool { return !p.Fixed }) {
		return no("pods run on it")
	}
	return Standing{}
}

// hearing is for questions to rules about one snapshot at one time. What they have in common is looked up once.
type hearing struct {
	s      *cluster.Snapshot
	now    int64
	coming map[string]*cluster.Pod // by the node or claim that they were promised: the first pod
	floors map[string]int          // by pool: see spare
	round  *disruption             // see bare
}

// bare returns a round without buffers, in which the pending pods have their places. It is made once: that takes a
// plan for all of them.
func (h *hearing) bare() *disruption {
	if h.round == nil {
		bare := h.s.WithoutBuffers()
		h.round = beginFrom(bare, bare, Terms{})
	}
	return h.round
}

// hear begins a hearing.
func hear(s *cluster.Snapshot, now int64) *hearing { return &hearing{s: s, now: now} }

// comingTo returns a pod that is to come to the node, nil when there is none: one that kube-scheduler is about to bind
// there, or a pending one that was promised a place. kube-scheduler finds another node for the first when this one is
// not ready, so it does not keep such a node.
func (h *hearing) comingTo(node *cluster.Node) *cluster.Pod {
	if len(node.Coming) > 0 && !node.NotReady {
		return node.Coming[0]
	}
	if h.coming == nil {
		h.coming = map[string]*cluster.Pod{}
		for _, pod := range h.s.Pending {
			if pod.Promised != "" && h.coming[pod.Promised] == nil {
				h.coming[pod.Promised] = pod
			}
		}
	}
	return cmp.Or(h.coming[node.Name], h.coming[node.Claim])
}

// mayGo reports whether a node may be chosen to go for a reason, apart from room and budgets. One that is not ready is
// left to repair, unless it is empty. Then nothing is lost with it, and while repair holds back it would keep the
// place of one that works.
func (h *hearing) mayGo(node *cluster.Node, reason plan.DisruptionReason) bool {
	code := unfit(h.s, node)
	return (code == "" || code == cause.NodeNotReady && reason == plan.Empty) &&
		h.objection(ruleOf(reason), node, false) == ""
}

// objection says why a node does not go by a rule, apart from room and budgets; "" when nothing speaks against it.
// chosen is set for one that was chosen before.
func (h *hearing) objection(r *rule, node *cluster.Node, chosen bool) string {
	pool := h.s.Pool(node.Pool)
	if why := h.notDue(r, node, chosen); why != "" {
		return why
	}
	if !r.poolless && pool.Dormant {
		return gateOff
	}
	return h.kept(node, r.keepers(node, pool != nil && pool.Gentle))
}

// notDue says why a node is not due by a rule, whatever keeps it; "" when it is.
func (h *hearing) notDue(r *rule, node *cluster.Node, chosen bool) string {
	pool := h.s.Pool(node.Pool)
	switch {
	case pool == nil && !r.poolless:
		return poolGone
	case r.due == nil:
		return ""
	}
	return r.due(subject{node, pool, h.now, chosen}).Text
}

// wanted returns the first of these reasons for which a node is due, whatever keeps it; "" when there is none.
func (h *hearing) wanted(node *cluster.Node, reasons ...plan.DisruptionReason) plan.DisruptionReason {
	for _, reason := range reasons {
		if h.notDue(ruleOf(reason), node, false) == "" {
			return reason
		}
	}
	return ""
}

// renewal returns the reason to replace a node at any price, Drifted or Expired; "" when there is none.
func renewal(s *cluster.Snapshot, node *cluster.Node) plan.DisruptionReason {
	return hear(s, 0).wanted(node, plan.Drifted, plan.Expired)
}

// unfit returns why no method looks at a node; "" when they do.
func unfit(s *cluster.Snapshot, node *cluster.Node) cause.Code {
	return cmp.Or(unfitItself(node), unfitYet(s, node))
}

// unfitItself is about nodes that are not ours, and those that go already.
func unfitItself(node *cluster.Node) cause.Code {
	switch {
	case node.Claim == "":
		return cause.NotManaged
	case node.Deleting:
		return cause.Draining
	case node.Rebooting:
		return cause.Rebooting
	case node.Disrupting:
		return cause.ReplacementOnTheWay
	}
	return ""
}

// unfitYet is about the others: those whose pool is gone, and those that do not work yet, or not now.
func unfitYet(s *cluster.Snapshot, node *cluster.Node) cause.Code {
	switch {
	case s.Pool(node.Pool) == nil:
		return cause.PoolGone
	case node.Name == "" || !node.Initialized:
		return cause.NotInitialized
	case node.NotReady:
		return cause.NodeNotReady
	}
	return ""
}

// Table returns the table in words, a line for each reason.
func Table() string {
	var b strings.Builder
	for _, r := range table {
		fmt.Fprintf(&b, "%s: when %s; kept by %s; room: %s; budget: %s\n", r.reason, r.when, r.keptWords(),
			[]string{"none", "at whatever price", "for less than it costs",
				"at whatever price, and it goes without, too"}[r.room],
			[]string{"its own", "its own, and it waits for it",
				"none, or of a gentle pool that of " + string(plan.Empty) + " or " +
					string(plan.Underutilized)}[r.budget])
	}
	return b.String()
}

// keptWords says what keeps nodes from going by the rule.
func (r *rule) keptWords() string {
	var list []string
	for _, k := range []struct {
		by   keeper
		word string
	}{{byReplaced, "what it replaces"}, {byNode, "do-not-disrupt of node and claim"},
		{byPods, "do-not-disrupt of pods"}, {byGuards, "PodDisruptionBudgets"}, {byPromise, "pods to come"},
		{byFloor, "joiner.sh/min-nodes"}} {
		if r.kept&k.by == 0 {
			continue
		}
		word := k.word
		if r.aside&k.by != 0 {
			word += " (unless its drain ends)"
		}
		list = append(list, word)
	}
	words := strings.Join(list, ", ")
	if r.budget == ifGentle {
		words += ", in gentle pools only"
	}
	return words
}
