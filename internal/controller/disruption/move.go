package disruption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// This file chooses nodes with pods for removal: first expired ones, then drifted ones and, if there are none, those
// whose removal makes the cluster cheaper (D-04, D-06). proceed.go carries it out.

// move plans the next commands and begins them. It treats commands under way as carried out, so a slow replacement
// delays nothing else: drift continues as far as budgets allow. A pool that is being consolidated is left alone until
// that is over. Its new nodes will be a better place for its pods than yet another node. rest is when to check again.
func (c *Controller) move(ctx context.Context, r round) (begun bool, rest time.Duration, err error) {
	terms := c.terms(r)
	done := c.evaluates(plan.Expired)
	p := engine.Expire(r.snapshot, terms)
	done()
	c.planned("expire", r, terms, p)
	c.reportDueBlocked(r, terms, p, plan.Expired, engine.Expire)
	c.reportStays(r, p, plan.Expired)
	if len(p.Removes) == 0 {
		done = c.evaluates(plan.Drifted)
		p = engine.Drift(r.snapshot, terms)
		done()
		c.planned("drift", r, terms, p)
		c.reportDueBlocked(r, terms, p, plan.Drifted, engine.Drift)
		c.reportStays(r, p, plan.Drifted)
	}
	if len(p.Removes) == 0 {
		terms = terms.Holding(r.moving, plan.Underutilized)
		asked := terms.Question(r.snapshot)
		if rest, terms.Again = c.memory.rest(asked, r.now); rest > 0 {
			return false, rest, nil
		}
		done = c.evaluates(plan.Underutilized)
		p = engine.Consolidate(r.snapshot, terms)
		done()
		c.planned("consolidate", r, terms, p)
		if !terms.Again {
			c.reportLimited(r, terms, p)
		}
		if len(p.Removes) == 0 {
			c.memory.fruitless(asked, terms.Again, r.now)
			c.reportUnconsolidatable(r, terms)
			return false, pollEvery, nil
		}
	}
	c.reportCandidates(p)
	outcome, err := c.begin(ctx, r, p)
	c.reportCommands(r, p, outcome)
	return len(outcome.Marked) > 0, proceedAfter, err
}

// terms returns the current terms. Pools that pause after a failed command have a zero budget.
func (c *Controller) terms(r round) engine.Terms {
	terms := engine.Terms{
		Now: r.now.Unix(), Budgets: map[string][]engine.Budget{},
		MinSaving: c.config.MinSaving, MinSavingPercent: c.config.MinSavingPercent, SpotToSpot: c.config.SpotToSpot,
	}
	terms.Passing, terms.Turn = c.memory.passingIn(r.snapshot, r.now), c.memory.turns()
	for name, budgets := range r.budgets {
		if c.memory.paused(name, r.now) {
			budgets = append(slices.Clone(budgets), engine.Budget{Max: 0})
		}
		terms.Budgets[name] = budgets
	}
	return terms
}

// reportCommands reports what was begun: each node, its replacement, and the price before and after (D-01).
func (c *Controller) reportCommands(r round, p plan.Plan, outcome apply.Outcome) {
	commands := begunBy(p, outcome)
	for _, g := range approvals(commands) {
		c.reportApproved(r, g)
	}
	for _, g := range commands {
		c.countCommand(r, g)
		for _, remove := range g.removes {
			text := fmt.Sprintf("The node is to go: %s: %s", remove.Reason, g.prices())
			if len(g.launches) > 0 {
				text += ", once " + strings.Join(g.launches, ", ") + " is there"
			}
			if len(g.launches) > 0 || !engine.ForMoney(remove.Reason) { // else the approval has reported it
				c.config.Events.Event(claimRef(remove), event.Normal, event.DisruptionLaunching, text)
			}
			c.config.Log.Info("disrupting", "event", "Disrupting", "claim", remove.Claim, "node", remove.Node, "pool",
				remove.Pool, "command-id", g.removes[0].Claim, "reason", remove.Reason, "decision", g.decision(),
				"disrupted-node-count", len(g.removes), "replacement-node-count", len(g.launches),
				"pricePerHourBefore", g.before.money().String(), "pricePerHourAfter", g.after.money().String())
		}
	}
}

// reportStays reports nodes that are due for replacement but cannot be replaced (D-02).
func (c *Controller) reportStays(r round, p plan.Plan, reason plan.DisruptionReason) {
	for _, stay := range p.Stays {
		c.config.Events.Event(claimRef(plan.Remove{Claim: stay.Claim, ClaimUID: stay.ClaimUID}), event.Normal,
			event.DisruptionBlocked, view.Standing(engine.WhyStay(stay, reason), poolOf(r, stay.Claim)).Event())
	}
}

// poolOf returns the name of a claim's pool.
func poolOf(r round, claim string) string {
	for _, node := range r.snapshot.Nodes {
		if node.Claim == claim {
			return node.Pool
		}
	}
	return ""
}

// full reports whether a hard limit leaves a pool no room for a replacement although its budgets allow one (L-30).
func full(r round, terms engine.Terms, pool *cluster.Pool, reason plan.DisruptionReason) bool {
	if pool.Limits.HardNodes == limit.None { // usual, and there are many pools
		return false
	}
	budget := min(engine.Allowed(terms.Budgets[pool.Name], reason), len(r.snapshot.Nodes)) -
		engine.Taken(r.snapshot)[pool.Name]
	answer := pool.Limits.Replacements(budget, pool.Used.Nodes)
	return answer.ByLimit && answer.Allowed == 0
}

// reportDueBlocked reports pools whose drifted or expired nodes stay because of their hard limit (L-34). It leaves no
// room, or less than the next node's replacement needs. For the latter, the plan is repeated without these limits.
func (c *Controller) reportDueBlocked(r round, terms engine.Terms, p plan.Plan, reason plan.DisruptionReason,
	again func(*cluster.Snapshot, engine.Terms) plan.Plan) {
	due, tight := map[string]bool{}, map[string]bool{}
	for _, node := range engine.Eligible(r.snapshot, r.now.Unix(), reason) {
		due[node.Pool] = true
	}
	for _, pool := range r.snapshot.Pools {
		if r.pools[pool.Name] == nil || pool.Static || pool.Limits.HardNodes == limit.None || !due[pool.Name] ||
			removesOf(p, pool.Name) {
			continue
		}
		if full(r, terms, pool, reason) {
			c.ReportHardLimit(r.pools[pool.Name], reason)
			continue
		}
		tight[pool.Name] = true
	}
	if len(tight) == 0 {
		return
	}
	free := again(unlimited(r.snapshot, tight), terms)
	for _, name := range slices.Sorted(maps.Keys(tight)) {
		if removesOf(free, name) {
			c.ReportHardLimit(r.pools[name], reason)
		}
	}
}

// removesOf reports whether a plan removes nodes of a pool.
func removesOf(p plan.Plan, pool string) bool {
	return slices.ContainsFunc(p.Removes, func(remove plan.Remove) bool { return remove.Pool == pool })
}
