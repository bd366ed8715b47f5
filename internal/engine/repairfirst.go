package engine

import (
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// An unhealthy node whose pods may still run goes once its replacement is there, if it can have one (K-49). It waits
// for nothing else, and not for long. If a limit, the market or a failed launch leaves it without one, its pods are no
// worse off than on a broken node.

const (
	// repairWaits is how long an unhealthy node waits for its replacement. Machines take a minute or two.
	repairWaits = 5 * time.Minute
	// repairBegins is how long after the mark a missing launch proves nothing: another controller launches.
	repairBegins = 10 * time.Second
)

// ReplaceFirst plans what has to come before an unhealthy node of ours goes: the plan marks the node, and launches its
// replacement. If the node goes at once, the plan is empty, and why says the reason in words.
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

// begins reports whether nodes were marked a moment ago, so that their replacements may not have been launched yet.
func (m *move) begins(now int64) bool {
	return len(m.replacements) == 0 && slices.ContainsFunc(m.intents, func(i Intent) bool {
		return i.Since != 0 && now >= i.Since && now-i.Since < int64(repairBegins/time.Second)
	})
}

// inVain reports whether an unhealthy node waits no longer: a replacement failed or has been on its way for too long,
// or the node itself is not ready any more.
func (m *move) inVain(now int64) bool {
	if lost, _ := m.lost(); lost > 0 {
		return true
	}
	return slices.ContainsFunc(m.intents, func(i Intent) bool { return i.Node.NotReady }) ||
		slices.ContainsFunc(m.replacements, func(n *cluster.Node) bool {
			return (!n.Initialized || n.NotReady) && now-n.Created > int64(repairWaits/time.Second)
		})
}
