package disruption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// This file counts searches and begun commands (K-08), and reports moves that make the cluster cheaper (K-16).

// begun is a begun command of a plan: nodes that go together, and their replacements.
type begun struct {
	removes       []plan.Remove
	launches      []string // pool/type
	before, after bill
}

// prices returns what the nodes cost before and after.
func (b *begun) prices() string {
	return fmt.Sprintf("%s before, %s after", b.before.perHour(), b.after.perHour())
}

// bill is what nodes cost per hour.
type bill struct {
	known   resources.Money
	unknown int // nodes of unknown price
}

// add adds a node.
func (b *bill) add(price resources.Money) {
	if price.OfNode() == resources.Unpriced {
		b.unknown++
		return
	}
	b.known += price
}

// money returns the sum of the known prices, or that none is known.
func (b *bill) money() resources.Money {
	if b.known == 0 && b.unknown > 0 {
		return resources.Unpriced
	}
	return b.known
}

// perHour returns the bill as text. An unknown price is not nothing.
func (b *bill) perHour() string {
	switch {
	case b.unknown == 0:
		return b.known.String() + "/h"
	case b.money() == resources.Unpriced:
		return "an unknown price"
	}
	return fmt.Sprintf("%s/h and an unknown price", b.known)
}

// decision returns Karpenter's name for the command.
func (b *begun) decision() string {
	if len(b.launches) > 0 {
		return metrics.Replace
	}
	return metrics.Delete
}

// begunBy returns the begun commands of a plan, in its order.
func begunBy(p plan.Plan, outcome apply.Outcome) (commands []*begun) {
	groups := map[string]*begun{}
	for _, remove := range p.Removes {
		if !slices.Contains(outcome.Marked, remove.Claim) {
			continue
		}
		key := remove.Claim
		for _, l := range p.Launches {
			if slices.Contains(l.Replaces, remove.Claim) {
				key = strings.Join(l.Replaces, ",")
			}
		}
		if groups[key] == nil {
			groups[key] = &begun{}
			commands = append(commands, groups[key])
		}
		g := groups[key]
		g.removes = append(g.removes, remove)
		g.before.add(remove.Price)
	}
	for _, l := range p.Launches {
		if g := groups[strings.Join(l.Replaces, ",")]; g != nil {
			g.after.add(l.Cheapest.Price)
			g.launches = append(g.launches, l.Pool+"/"+l.Cheapest.Type)
		}
	}
	return commands
}

// evaluates measures a search for nodes to remove for a reason, until the returned function is called.
func (c *Controller) evaluates(reason plan.DisruptionReason) func() {
	begin := c.config.Now()
	c.config.Metrics.Plans.Running.Begin(metrics.Disrupter, 0, begin)
	return func() {
		took := c.config.Now().Sub(begin).Seconds()
		c.config.Metrics.Plans.Running.End(metrics.Disrupter)
		c.config.Metrics.Plans.Duration.WithLabelValues(metrics.Disrupter).Observe(took)
		kind := metrics.ConsolidationType(string(reason), 2)
		c.config.Metrics.Disruption.Evaluation.WithLabelValues(metrics.Reason(string(reason)), kind).Observe(took)
	}
}

// countCommand counts a command when it begins, in total and for each pool that loses a node.
func (c *Controller) countCommand(r round, g *begun) {
	reason := string(g.removes[0].Reason)
	label, kind := metrics.Reason(reason), metrics.ConsolidationType(reason, len(g.removes))
	decision := metrics.Delete
	if len(g.launches) > 0 {
		decision = metrics.Replace
	}
	if remove := g.removes[0]; decision == metrics.Delete && remove.First != "" {
		decision = metrics.TerminateFirst
		c.config.Metrics.Disruption.TerminateFirst.WithLabelValues(remove.Pool, label, string(remove.First)).Inc()
	}
	c.countDecision(decision, label, kind, g.removes)
	if g.removes[0].Reason == plan.Underutilized {
		c.countMoves(r, g.removes)
	}
}

// countMoves counts a move that makes the cluster cheaper, once for each pool that loses a node.
func (c *Controller) countMoves(r round, removes []plan.Remove) {
	counted := map[string]bool{}
	for _, remove := range removes {
		if !counted[remove.Pool] {
			counted[remove.Pool] = true
			c.config.Metrics.Disruption.Moves.WithLabelValues(metrics.Approved, remove.Pool, policyOf(r, remove)).Inc()
		}
	}
}

// countEmpty counts the empty nodes that a plan has chosen as one command.
func (c *Controller) countEmpty(p plan.Plan, outcome apply.Outcome) {
	removes := slices.DeleteFunc(slices.Clone(p.Removes), func(remove plan.Remove) bool {
		return !slices.Contains(outcome.Marked, remove.Claim)
	})
	if len(removes) > 0 {
		c.countDecision(metrics.Delete, metrics.Reason(string(plan.Empty)), metrics.Empty, removes)
	}
}

func (c *Controller) countDecision(decision, reason, kind string, removes []plan.Remove) {
	c.config.Metrics.Disruption.Decisions.WithLabelValues(decision, reason, kind).Inc()
	pools := map[string]bool{}
	for _, remove := range removes {
		if !pools[remove.Pool] {
			pools[remove.Pool] = true
			c.config.Metrics.Disruption.PoolDecisions.WithLabelValues(remove.Pool, decision, reason, kind).Inc()
		}
	}
}

// eligible counts, by reason, the nodes that a search can choose from now. It returns nil before the first round, as
// in a replica that does not lead.
func (c *Controller) eligible() map[string]int {
	owned := c.memory.ownedPools()
	if owned == nil {
		return nil
	}
	snapshot, now := c.config.Picture.Snapshot(), c.config.Now().Unix()
	count := map[string]int{}
	for _, reason := range []plan.DisruptionReason{plan.Empty, plan.Drifted, plan.Underutilized} {
		label := metrics.Reason(string(reason))
		count[label] = 0
		for _, node := range engine.Eligible(snapshot, now, reason) {
			if slices.Contains(owned, node.Pool) {
				count[label]++
			}
		}
	}
	return count
}

// reportCandidates reports nodes that a search found dearer than necessary (K-16).
func (c *Controller) reportCandidates(p plan.Plan) {
	all := apply.Outcome{}
	for _, remove := range p.Removes {
		all.Marked = append(all.Marked, remove.Claim)
	}
	for _, g := range begunBy(p, all) {
		for _, remove := range g.removes {
			if engine.ForMoney(remove.Reason) {
				c.tell(remove, event.ConsolidationCandidate, fmt.Sprintf("It may go: %s; %s", g.prices(), g.with()))
			}
		}
	}
}

// reportRejected reports the nodes of a consolidation command that stay after all.
func (c *Controller) reportRejected(v engine.Verdict, staying []engine.Intent) {
	if !engine.ForMoney(v.Intents[0].Reason) {
		return
	}
	var g begun
	for _, i := range staying {
		g.before.add(i.Node.Price)
	}
	if v.Act == engine.Undo { // else the replacements replace other nodes
		for _, n := range v.Replacements {
			g.launches = append(g.launches, n.ID())
			g.after.add(n.Price)
		}
	}
	for _, i := range staying {
		c.tell(removeBy(i), event.ConsolidationRejected, fmt.Sprintf("%s: it stays: %s; %s; %s", v.Ground, v.Why,
			g.prices(), g.with()))
	}
}

// reportWaits reports replacements that are being waited for, and the nodes that wait for them (K-16).
func (c *Controller) reportWaits(v engine.Verdict) {
	var names []string
	for _, i := range v.Intents {
		names = append(names, i.Node.ID())
	}
	for _, n := range v.Replacements {
		if !n.Initialized || n.NotReady {
			c.config.Events.Event(claimRef(plan.Remove{Claim: n.Claim, ClaimUID: n.ClaimUID}), event.Normal,
				event.DisruptionWaitingReadiness,
				fmt.Sprintf("NodeClaim %s has to be ready before %s goes", n.Claim, strings.Join(names, ", ")))
		}
	}
}

// with returns what replaces the nodes, as text.
func (b *begun) with() string {
	switch {
	case len(b.launches) > 0:
		return "replaced by " + strings.Join(b.launches, ", ")
	case len(b.removes) > 1:
		return "nothing replaces them"
	}
	return "nothing replaces it"
}

// approvals returns the commands as they are reported. A pool's nodes without a replacement were chosen together and
// go together, although each is its own command.
func approvals(commands []*begun) []*begun {
	var list []*begun
	unreplaced := map[string]*begun{} // by pool
	for _, g := range commands {
		pool := g.removes[0].Pool
		switch whole := unreplaced[pool]; {
		case !engine.ForMoney(g.removes[0].Reason):
		case len(g.launches) > 0:
			list = append(list, g)
		case whole == nil:
			copied := *g
			unreplaced[pool] = &copied
			list = append(list, &copied)
		default:
			whole.removes = append(slices.Clip(whole.removes), g.removes...)
			whole.before.known += g.before.known
			whole.before.unknown += g.before.unknown
		}
	}
	return list
}

// reportApproved reports nodes that go because that is cheaper (K-16). As in Karpenter, one node is reported on it and
// its claim, several that go together on their pools. Each node's price was reported when it was a candidate.
func (c *Controller) reportApproved(r round, g *begun) {
	var nodes, pools []string
	if len(g.removes) == 1 {
		c.tell(g.removes[0], event.ConsolidationApproved, fmt.Sprintf("It goes: %s; %s", g.prices(), g.with()))
		return
	}
	for _, remove := range g.removes {
		nodes = append(nodes, remove.Node)
		if !slices.Contains(pools, remove.Pool) {
			pools = append(pools, remove.Pool)
		}
	}
	for _, name := range pools {
		if pool := r.pools[name]; pool != nil {
			c.config.Events.Event(pool, event.Normal, event.ConsolidationApproved,
				fmt.Sprintf("%d nodes go together: %s; %s: %s", len(nodes), g.prices(), g.with(),
					strings.Join(nodes, ", ")))
		}
	}
}
