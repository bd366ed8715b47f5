package engine

import (
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// An unhealthy node whose pods may still run goes once what replaces it is there, where something can (K-49). It waits for
// nothing else, and not for long: a limit, a market or a launch that fails leaves the pods no worse than on a broken node.

const (
	// repairWaits is for how long an unhealthy node waits for what replaces it. Machines take a minute or two.
	repairWaits = 5 * time.Minute
	// repairBegins is how long after the mark nobody concludes that nothing was launched: that is done by another controller.
	repairBegins = 10 * time.Second
)

// ReplaceFirst plans what has to come before an unhealthy node of ours goes: the plan marks it, and launches what replaces it.
// The plan is empty where it goes at once, and why says in words for what reason.
func ReplaceFirst(s *cluster.Snapshot, terms Terms, claim string) (p plan.Plan, why string) {
	p = plan.Plan{BasedOn: s.Version, Names: s.Names}
	at := slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Claim == claim })
	if at < 0 {
		return p, "it is not known"
	}
	node := s.Nodes[at]
	pool := s.Pool(node.Pool)
	switch {
	case pool == nil || pool.Dormant:
		return p, "its NodePool launches nothing"
	case node.NotReady:
		return p, "it is not ready, so nothing runs there that could wait"
	case unfit(s, node) != "":
		return p, "it goes already"
	}
	d := begin(s, terms)
	if pool.Static {
		d.rollStatic(pool, []*cluster.Node{node}, plan.Unhealthy)
	} else {
		d.rollTogether([]*cluster.Node{d.now(node)}, plan.Unhealthy)
	}
	found := d.done(s)
	switch {
	case len(found.Launches) > 0:
		return found, ""
	case len(found.Stays) > 0:
		return p, WhyStay(found.Stays[0], plan.Unhealthy).Text
	case pool.Static:
		return p, "NodePool " + pool.Name + " launches nothing beside it"
	}
	return p, "its pods have places elsewhere"
}

// repaired judges an unhealthy node that is marked to go. Who measures its health, and knows who may keep it, says so.
func (j *judging) repaired(m *move) {
	lost, _ := m.lost()
	v := Verdict{Intents: m.intents, Replacements: m.replacements, Failed: lost > 0 || m.late(j.now) != ""}
	no := refusal{j.docket.Paused, GroundBudget}
	count := map[string]int{}
	for _, i := range m.intents {
		pool := i.Node.Pool
		if why := j.docket.Recovered[i.Node.Claim]; why != "" {
			no = refusal{why, GroundChurn}
		} else if why := j.beyond(pool, i.Reason, j.used[pool]+count[pool]); why != "" && no.why == "" {
			no = refusal{why, GroundBudget}
		}
		count[pool]++
	}
	if no.why != "" {
		v.Act, v.Why, v.Ground = Undo, no.why, no.ground
		j.verdicts = append(j.verdicts, v)
		for _, i := range m.intents {
			j.recount(i)
		}
		return
	}
	for _, i := range m.intents {
		j.used[i.Node.Pool]++
	}
	switch {
	case slices.ContainsFunc(m.intents, func(i Intent) bool { return !i.Tainted }):
		v.Act = Mark
	case m.begins(j.now):
		v.Act, v.Why = Wait, "it was marked a moment ago, and what replaces it is to be launched"
	case lost == 0 && m.waits() && !m.overdue(j.now):
		v.Act, v.Why = Wait, "what replaces it is on its way"
	default:
		v.Act = Delete
		j.leaving = append(j.leaving, m.nodes()...)
	}
	j.verdicts = append(j.verdicts, v)
}

// begins reports whether nodes were marked a moment ago, so that what replaces them may not have been launched yet.
func (m *move) begins(now int64) bool {
	return len(m.replacements) == 0 && slices.ContainsFunc(m.intents, func(i Intent) bool {
		return i.Since != 0 && now >= i.Since && now-i.Since < int64(repairBegins/time.Second)
	})
}

// overdue reports whether a replacement has been on its way for longer than an unhealthy node waits: not at all once it is not ready.
func (m *move) overdue(now int64) bool {
	return slices.ContainsFunc(m.intents, func(i Intent) bool { return i.Node.NotReady }) || slices.ContainsFunc(m.replacements, func(n *cluster.Node) bool {
		return (!n.Initialized || n.NotReady) && now-n.Created > int64(repairWaits/time.Second)
	})
}
