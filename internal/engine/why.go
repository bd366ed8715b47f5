package engine

import (
	"fmt"
	"iter"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Standing is how a node stands: it goes, or it stays for a cause (U-04).
type Standing struct {
	// Goes is why the node would be chosen to go now, or was; "" when it stays.
	Goes plan.DisruptionReason
	// Wanted is what it would go for, if nothing kept it; "" when nothing wants it gone.
	Wanted plan.DisruptionReason
	// Cause is what keeps it; "" when it goes.
	Cause cause.Code
	// Text says it in words.
	Text string
	// Pod is the pod that the cause is about, Homeless why it would find no place, and Lead the text before that; zero
	// where there is none.
	Pod      plan.PodRef
	Homeless plan.Unplaced
	Lead     string
	// Claim is the NodeClaim to look at: what is on its way, or the node's own; "" where neither explains more.
	Claim string
	// Until is when the cause ends by itself, in Unix seconds; 0 when no time ends it.
	Until int64
	// Launches are what would replace the node, where that is the cause.
	Launches []plan.Launch
}

// Why says how a node of s stands. It asks what the methods of disruption ask, in their order, so it names what they
// would meet first. It does not know what the process remembers: pauses, and commands that failed.
func Why(s *cluster.Snapshot, terms Terms, node *cluster.Node) Standing {
	for _, look := range []func(*cluster.Snapshot, Terms, *cluster.Node) (Standing, bool){whyGoing, whyNotReady} {
		if found, done := look(s, terms, node); done {
			return found
		}
	}
	for _, look := range []func(*cluster.Snapshot, Terms, *cluster.Node) (Standing, bool){whyForbidden, whyChosen,
		whyDue, whyQuiet} {
		if found, done := look(s, terms, node); done {
			return found.although(s, terms, node, beginFrom(s, s, terms))
		}
	}
	return whyNotCheaper(beginFrom(s, s, terms), node)
}

// although adds what the node would go for. A node that is expected to fill up is not wanted gone.
func (found Standing) although(s *cluster.Snapshot, terms Terms, node *cluster.Node, future *disruption) Standing {
	if found.Goes != "" || found.Cause == cause.IsReplacement || found.Cause == cause.PodsComing {
		return found
	}
	if reason := wanted(s, terms, node, future); reason != "" {
		found.Wanted = reason
	}
	return found
}

func stays(code cause.Code, format string, args ...any) (Standing, bool) {
	return Standing{Cause: code, Text: fmt.Sprintf(format, args...)}, true
}

// staysFor is stays with a NodeClaim to look at.
func staysFor(code cause.Code, claim, text string) (Standing, bool) {
	return Standing{Cause: code, Text: text, Claim: claim}, true
}

// whyGoing is about nodes that are not ours, and those that go already.
func whyGoing(s *cluster.Snapshot, _ Terms, node *cluster.Node) (Standing, bool) {
	switch unfitItself(node) {
	case cause.NotManaged:
		return stays(cause.NotManaged, "it has no NodeClaim: Joiner does not touch it")
	case cause.Draining:
		for _, pod := range node.Pods {
			if !pod.Fixed {
				return Standing{Cause: cause.Draining, Text: "it is being removed, and waits for pod " + pod.Ref(),
					Pod: ref(pod), Claim: node.Claim}, true
			}
		}
		return staysFor(cause.Draining, node.Claim, "it is being removed: its pods are gone, the machine ends")
	case cause.Rebooting:
		return staysFor(cause.Rebooting, node.Claim, "its machine is rebooted to repair it, and takes no pods meanwhile")
	case cause.ReplacementOnTheWay:
		for _, other := range s.Nodes {
			if other.Claim != "" && slices.Contains(other.Replaces, node.Claim) {
				stage := "is launching"
				switch {
				case other.Initialized:
					stage = "is there"
				case other.Registered:
					stage = "has joined, and is not initialized yet"
				case other.Launched:
					stage = "is launched, and has not joined yet"
				}
				return staysFor(cause.ReplacementOnTheWay, other.Claim,
					"it was chosen to go, and waits for NodeClaim "+other.Claim+", which "+stage)
			}
		}
		return staysFor(cause.ReplacementOnTheWay, node.Claim, "it was chosen to go, and is about to")
	}
	return Standing{}, false
}

// whyNotReady is about nodes that no method looks at.
func whyNotReady(s *cluster.Snapshot, terms Terms, node *cluster.Node) (Standing, bool) {
	switch code := unfitYet(s, node); {
	case code == cause.PoolGone:
		return stays(code, "its NodePool %s is gone", node.Pool)
	case code == "", code == cause.NodeNotReady && hear(s, terms.Now).mayGo(node, plan.Empty):
		return Standing{}, false
	case code == cause.NodeNotReady:
		return stays(code, "it is not Ready")
	case !node.Initialized && !node.Launched:
		return staysFor(code, node.Claim, "its machine is not launched yet")
	case node.Name == "" || !node.Registered:
		return staysFor(code, node.Claim,
			"its machine has not joined yet; one that has not after 15 minutes is given up")
	}
	return staysFor(cause.NotInitialized, node.Claim,
		"it has joined, and is not initialized: a startup taint is still on it, or a resource is not reported yet")
}

// whyForbidden returns the first thing that keeps a node from going for any reason.
func whyForbidden(s *cluster.Snapshot, _ Terms, node *cluster.Node) (Standing, bool) {
	for found := range forbidding(s, node) {
		return found, true
	}
	return Standing{}, false
}

// forbidding yields all that keeps a node from going for any reason. A drifted node has to go whatever its pods say,
// if its drain ends.
func forbidding(s *cluster.Snapshot, node *cluster.Node) iter.Seq[Standing] {
	reason := plan.Underutilized
	if node.Drifted {
		reason = plan.Drifted
	}
	return hear(s, 0).keeping(node, ruleOf(reason).keepers(node, false))
}

// whyChosen is about nodes that one of the methods removes, in the order in which a round asks them.
func whyChosen(s *cluster.Snapshot, terms Terms, node *cluster.Node) (Standing, bool) {
	for _, method := range Methods() {
		for _, r := range method.Plan(s, terms).Removes {
			if r.Claim == node.Claim {
				return Standing{Goes: r.Reason, Text: "it goes now"}, true
			}
		}
	}
	return Standing{}, false
}

// whyDue is about nodes that are drifted or expired: they are to go whatever they cost.
func whyDue(s *cluster.Snapshot, terms Terms, node *cluster.Node) (Standing, bool) {
	return whyDueBy(s, terms, node, func(reason plan.DisruptionReason) plan.Plan {
		if reason == plan.Expired {
			return Expire(s, terms)
		}
		return Drift(s, terms)
	}, rollBlocks(s, terms))
}

// whyDueBy is whyDue; method returns the plan of the method for a reason, and blocked is [WhyRollBlocked].
func whyDueBy(s *cluster.Snapshot, terms Terms, node *cluster.Node, method func(plan.DisruptionReason) plan.Plan,
	blocked func(pool string) (BlockedRoll, bool)) (Standing, bool) {
	reason := renewal(s, node)
	if reason == "" {
		return Standing{}, false
	}
	if found, held := budgeted(s, terms, node, reason); held {
		found.Wanted = reason
		return found, true
	}
	for _, stay := range method(reason).Stays {
		if stay.Claim == node.Claim {
			return WhyStay(stay, reason), true
		}
	}
	if found, is := blocked(node.Pool); is {
		return Standing{Wanted: reason, Cause: cause.NoReplacement, Text: "NodePool " + node.Pool + ": " +
			found.Text()}, true
	}
	return Standing{Wanted: reason, Cause: cause.OthersFirst, Text: "others are replaced first"}, true
}

// WhyStay returns the Standing of a node that the method for a reason looked at and left.
func WhyStay(stay plan.Stay, reason plan.DisruptionReason) Standing {
	return Standing{Wanted: reason, Cause: cause.PodFitsNowhereElse, Text: stay.Why, Pod: stay.Homeless.Pod,
		Homeless: stay.Homeless, Lead: stay.Lead}
}

// budgeted reports whether the budgets keep the node from going for a reason.
func budgeted(s *cluster.Snapshot, terms Terms, node *cluster.Node, reason plan.DisruptionReason) (Standing, bool) {
	return WhyBudget(node.Pool, Allowed(terms.Budgets[node.Pool], reason), beside(Taken(s), node), reason)
}

// WhyBudget says why the budgets of a pool let no further node go for a reason: allowed is how many may go at once,
// and taken how many are going or not ready. It is false when they do.
func WhyBudget(pool string, allowed, taken int, reason plan.DisruptionReason) (Standing, bool) {
	switch {
	case allowed == 0:
		return stays(cause.BudgetClosed, "the budgets of NodePool %s let no node be disrupted now for the reason %s",
			pool, reason)
	case taken >= allowed:
		return stays(cause.BudgetUsedUp,
			"the budgets of NodePool %s allow %d at a time for the reason %s, and %d are going or not ready",
			pool, allowed, reason, taken)
	}
	return Standing{}, false
}

// whyQuiet is about what keeps a node from going to save money, before anybody asks what it would save.
func whyQuiet(s *cluster.Snapshot, terms Terms, node *cluster.Node) (Standing, bool) {
	x, reason, due := subject{node: node, pool: s.Pool(node.Pool), now: terms.Now}, plan.Underutilized,
		dueUnderutilized
	if _, pods := DisruptionCost(node); pods == 0 { // pods that are ending may be there still
		reason, due = plan.Empty, notIdle
	}
	if found := due(x); found.Text != "" {
		if reason == plan.Empty && found.Cause == cause.QuietTime {
			found.Wanted = reason
		}
		return found, true
	}
	if reason == plan.Empty {
		if text := hear(s, terms.Now).floorKeeps(node); text != "" {
			return stays(cause.MinNodes, "%s", text)
		}
	}
	if found, held := budgeted(s, terms, node, reason); held {
		return found, true
	}
	if reason == plan.Empty {
		if name := roomFor(s, node); name != "" {
			if pool, is := cluster.PoolOfHeadroom(name); is {
				return stays(cause.KeepsRoom, "it has room for the headroom of NodePool %s, and nothing else needs it",
					pool)
			}
			return stays(cause.KeepsRoom, "it has room for CapacityBuffer %s, and nothing else needs it", name)
		}
		return stays(cause.PodsComing, "pods that wait are planned onto it")
	}
	return Standing{}, false
}

// roomFor names a CapacityBuffer for which the node has room, and for no pod that waits; "" for none.
func roomFor(s *cluster.Snapshot, node *cluster.Node) string {
	if len(s.Buffers) == 0 {
		return ""
	}
	p := Provision(s)
	places := p.PlacesOf(node.ID())
	if len(places) == 0 || len(p.NominationsOf(node.ID())) > 0 {
		return ""
	}
	at := slices.IndexFunc(s.Buffers, func(pod *cluster.Pod) bool { return pod.UID == places[0].Pod.UID })
	return s.Buffers[at].Shape.Buffer
}

// whyNotCheaper is about nodes that could go and do not, since that saves nothing, or not enough. In future, pending
// pods have their places.
func whyNotCheaper(future *disruption, node *cluster.Node) Standing {
	terms := future.terms
	moved := future.movedFrom(node)
	if len(moved.Unplaced) > 0 {
		u := moved.Unplaced[0]
		return Standing{Cause: cause.PodFitsNowhereElse, Text: homeless(u), Pod: u.Pod, Homeless: u}
	}
	price, needs, beside := future.cost(node), moved.Cost(future.base.Overhead), ""
	if price != node.Price || needs != moved.Price() {
		beside = ", with what nodes cost beside their price"
	}
	if len(future.base.Commitments) > 0 {
		beside += ", without what commitments pay"
	}
	found := Standing{Launches: moved.Launches}
	floor := future.heard.floorKeeps(node)
	switch saving := price - needs; {
	case len(future.base.Commitments) > 0 && price <= 0:
		found.Cause, found.Text = cause.NothingCheaper, "a commitment pays for it, and no other node would use that"
	case len(moved.Launches) == 0 && floor != "":
		found.Cause, found.Text = cause.MinNodes, floor
	case len(moved.Launches) == 0:
		found.Cause, found.Text = future.whyNotDeleted(node)
	case saving <= 0:
		found.Cause, found.Text = cause.NothingCheaper,
			fmt.Sprintf("its pods would cost $%s/h elsewhere, and the node costs $%s/h%s", needs, price, beside)
	case capacityType(node) == catalog.Spot && !terms.SpotToSpot && slices.ContainsFunc(moved.Launches, onSpot):
		found.Cause, found.Text = cause.SpotToSpotOff,
			fmt.Sprintf(
				"its pods would cost $%s/h less on another spot node%s, and a spot node is not replaced by a spot node",
				saving, beside)
	case saving < terms.least(price):
		found.Cause, found.Text = cause.SavingTooSmall,
			fmt.Sprintf("replacing it would save $%s/h of $%s/h%s, less than is worth a move", saving, price, beside)
	case onlyMore(future.future, []*cluster.Node{node}, price, moved.Launches):
		found.Cause, found.Text = cause.SavingTooSmall, fmt.Sprintf(
			"replacing it by %s would save $%s/h of $%s/h%s, less than fewer nodes may cost beyond the cheapest",
			nodesText(len(moved.Launches)), saving, price, beside)
	case node.ReplaceableAt() > terms.Now:
		found.Cause, found.Until = cause.JustReplaced, node.ReplaceableAt()
		found.Text = fmt.Sprintf("replacing it would save $%s/h of $%s/h%s, and it has just replaced other nodes",
			saving, price, beside)
	case len(future.hungry) > 0:
		found.Cause, found.Text = cause.WaitingPodsFirst,
			"pods are waiting that no NodePool may launch a node for: nothing is replaced to save money meanwhile"
	default:
		code, why := future.holds([]*cluster.Node{future.now(node)}, moved.Launches, saving)
		if why = "and " + why; code == "" {
			code, why = future.whyNotReplaced(node)
		}
		found.Cause, found.Text = code, fmt.Sprintf("replacing it would save $%s/h%s, %s", saving, beside, why)
	}
	return found
}

// whyNotDeleted is about a node whose pods fit on others.
func (d *disruption) whyNotDeleted(node *cluster.Node) (cause.Code, string) {
	group := []*cluster.Node{d.now(node)}
	if code, why := d.holds(group, nil, d.cost(node)); code != "" {
		return code, fmt.Sprintf("its pods fit elsewhere, which would save $%s/h, and %s", d.cost(node), why)
	}
	if _, fit := d.fitElsewhere(group); !fit {
		return cause.NothingCheaper, "its pods fit elsewhere only if each comes where it is planned; otherwise some " +
			"need a node that saves too little, or find none"
	}
	return cause.OthersFirst, "its pods fit elsewhere, and other nodes go first"
}

// whyNotReplaced is about a node whose replacement would save enough.
func (d *disruption) whyNotReplaced(node *cluster.Node) (cause.Code, string) {
	group := []*cluster.Node{d.now(node)}
	if _, found := d.replacementOf(group, anyLaunches); found {
		return cause.OthersFirst, "and other nodes go first"
	}
	price := d.cost(group...)
	launches, found := d.replacement(group, price-d.minSaving(price, 1))
	switch {
	case found && allSpot(group) && slices.ContainsFunc(launches, onSpot):
		return cause.NothingCheaper, fmt.Sprintf("but a spot node is replaced by a spot node only if at least %d "+
			"cheaper instance types take its pods", enoughTypes)
	case found:
		if text := d.dear(group, launches); text != "" {
			return cause.NothingCheaper, text
		}
	}
	return cause.NothingCheaper, "but only if each pod comes where it is planned"
}

func onSpot(l plan.Launch) bool { return l.Cheapest.CapacityType == catalog.Spot }

func ref(pod *cluster.Pod) plan.PodRef {
	return plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}
