package engine

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// At its hard limit a pool that is not static replaces nothing (L-30). One that asks for it, by the annotation
// joiner.sh/terminate-first, lets a node go before what replaces it comes (K-48): one at a time, and the next when nobody waits
// for the pool any more. Nothing is launched for that, as with any node that needs no replacement (L-32), so the limit holds
// whatever happens; the pods wait while the machine goes and another one comes.
//
// That is for want of room alone. The pool may launch; the pods would have places once the node is gone, by a plan with its
// slot; and its drain ends.

// letsGoFirst reports whether a node of the pool may go before what replaces it comes, where its hard limit leaves no room.
func letsGoFirst(pool *cluster.Pool) bool {
	return pool.TerminateFirst && !pool.Static && pool.Limits.HardNodes != limit.None
}

// whyFirst says of such a node why nothing replaces it before.
func whyFirst(pool *cluster.Pool) string {
	return fmt.Sprintf("NodePool %s has no room for a replacement below its hard limit of %s, and its annotation "+
		"joiner.sh/terminate-first lets one node go before", pool.Name, nodesText(int(pool.Limits.HardNodes)))
}

// goFirst lets a node go of each pool that asks for it, and of which no node could be replaced. Nodes are in the order in
// which they are due.
func (d *disruption) goFirst(nodes []*cluster.Node, reason plan.DisruptionReason) {
	for _, pool := range d.origin.Pools {
		if !letsGoFirst(pool) || d.left(pool.Name, reason) == 0 || d.poolHolds(pool, nil) != "" ||
			slices.ContainsFunc(d.chosen, func(c command) bool { return c.nodes[0].Pool == pool.Name }) {
			continue
		}
		tries := 0
		for _, node := range nodes {
			if node.Pool != pool.Name || tries == maxTries {
				continue
			}
			lead, lacking := d.nodeHolds(pool, d.now(node))
			if lead == "" && lacking == nil {
				d.stays = slices.DeleteFunc(d.stays, func(s plan.Stay) bool { return s.Claim == node.Claim })
				d.choose(command{nodes: []*cluster.Node{node}, reason: reason, why: whyFirst(pool), first: true})
				break
			}
			tries++
			if lacking != nil {
				d.stays = slices.DeleteFunc(d.stays, func(s plan.Stay) bool { return s.Claim == node.Claim })
				d.stay(node, lead, *lacking)
			}
		}
	}
}

// poolHolds says why no node, or none but this one, goes first in a pool; "" when one may.
func (d *disruption) poolHolds(pool *cluster.Pool, but *cluster.Node) string {
	if pool.Blocked != "" {
		return "NodePool " + pool.Name + " launches nothing: " + pool.Blocked
	}
	for _, node := range d.origin.Nodes {
		switch {
		case node.Pool != pool.Name || node.Claim == "" || but != nil && node.Claim == but.Claim:
		case node.Deleting || node.Disrupting:
			return "node " + node.ID() + " goes first"
		case !node.Initialized:
			return "node " + node.ID() + " is on its way"
		}
	}
	if pod := d.waitingFor(pool); pod != "" {
		return "pod " + pod + " waits for a place in the pool"
	}
	return ""
}

// waitingFor names a pod that waits for a place in a pool, or for its hard limit; "" when none does.
func (d *disruption) waitingFor(pool *cluster.Pool) string {
	for _, n := range d.coming.Nominations {
		if slices.ContainsFunc(d.origin.Nodes, func(node *cluster.Node) bool {
			return node.Pool == pool.Name && (node.Name == n.Node || node.Claim == n.Node)
		}) {
			return n.Pod.String()
		}
	}
	for _, l := range d.coming.Launches {
		if l.Pool == pool.Name && len(l.Pods) > 0 {
			return l.Pods[0].String()
		}
	}
	for _, u := range d.coming.Unplaced {
		if limited(u, pool) {
			return u.Pod.String()
		}
	}
	return ""
}

// limited reports whether the hard limit of a pool is what keeps a pod from a node of it.
func limited(u plan.Unplaced, pool *cluster.Pool) bool {
	return slices.ContainsFunc(u.Pools, func(r plan.PoolRefusal) bool {
		return r.Pool == pool.Name && r.Last().Cause == cause.HardLimitNodes
	})
}

// nodeHolds says why a node, which is one of the future, does not go first: a pod of it that would find no place, and what is to be
// said before that. A node whose pods have places, or what replaces it has room, is not one that goes first either.
func (d *disruption) nodeHolds(pool *cluster.Pool, node *cluster.Node) (lead string, lacking *plan.Unplaced) {
	staged := d.future.Without(node).WithoutBuffers()
	unplaced := pack.Solve(staged, staged.Pending).Unplaced
	at := slices.IndexFunc(unplaced, func(u plan.Unplaced) bool { return limited(u, pool) })
	if at < 0 {
		if len(unplaced) > 0 {
			return "", &unplaced[0]
		}
		return "what replaces it has room", nil
	}
	freed := staged.Freed(node)
	if unplaced = pack.Solve(freed, freed.Pending).Unplaced; len(unplaced) > 0 {
		return "", &unplaced[0]
	}
	if node.DrainEnds {
		return "", nil
	}
	if lead, found := d.stuck(node, nil); lead != "" {
		return lead, &found
	}
	return "", nil
}

// misfitFirst says why a marked node of a pool does not go first after all; the zero value when it does.
func (j *judging) misfitFirst(pool *cluster.Pool, m *move) refusal {
	d := beginFrom(j.s, j.s, Terms{})
	if why := d.poolHolds(pool, m.intents[0].Node); why != "" {
		return refusal{"nothing was launched that replaces it, and it does not go first: " + why, GroundScheduling}
	}
	if len(m.intents) > 1 {
		return refusal{"nothing was launched that replaces it, and one node of its NodePool goes first at a time", GroundScheduling}
	}
	lead, lacking := d.nodeHolds(pool, d.now(m.intents[0].Node))
	if lacking != nil {
		lead += homeless(*lacking)
	}
	if lead != "" {
		return refusal{"nothing was launched that replaces it, and it does not go first: " + lead, GroundScheduling}
	}
	return refusal{}
}

// BlockedRoll is why nodes of a pool that are drifted or expired are not replaced, where its hard limit is the reason.
type BlockedRoll struct {
	Waiting int // nodes that are due
	Reason  plan.DisruptionReason
	Hard    int64
	// Why says what holds up the next node although the pool lets nodes go first; "" where it does not.
	Why string
}

// WhyRollBlocked says why a pool replaces none of the nodes that are due, if its hard limit leaves too little room; false when it
// does not, when nothing is due, or when one of them is going.
func WhyRollBlocked(s *cluster.Snapshot, terms Terms, name string) (BlockedRoll, bool) {
	pool := s.Pool(name)
	if pool == nil || pool.Static || pool.Limits.HardNodes == limit.None {
		return BlockedRoll{}, false
	}
	h, blocked, may := hear(s, terms.Now), BlockedRoll{Hard: pool.Limits.HardNodes}, false
	for _, node := range s.Nodes {
		if node.Pool != name || node.Claim == "" {
			continue
		}
		reason := h.wanted(node, plan.Drifted, plan.Expired)
		switch {
		case reason == "":
		case node.Deleting || node.Disrupting:
			return BlockedRoll{}, false
		default:
			blocked.Waiting++
			may = may || h.objection(ruleOf(reason), node, false) == ""
			if blocked.Reason == "" {
				blocked.Reason = reason
			}
		}
	}
	if blocked.Waiting == 0 || !may && !letsGoFirst(pool) { // what users forbid is said of each node
		return BlockedRoll{}, false
	}
	p := renew(s, terms, blocked.Reason)
	if slices.ContainsFunc(p.Removes, func(r plan.Remove) bool { return r.Pool == name }) {
		return BlockedRoll{}, false
	}
	if pool.Used.Nodes < pool.Limits.HardNodes &&
		!slices.ContainsFunc(p.Stays, func(stay plan.Stay) bool { return limited(stay.Homeless, pool) }) {
		return BlockedRoll{}, false
	}
	if letsGoFirst(pool) {
		blocked.Why = whyNoneFirst(s, terms, pool, blocked.Reason, p)
	}
	return blocked, true
}

// Text says it of the pool.
func (b BlockedRoll) Text() string {
	what := fmt.Sprintf("%s due to be replaced (%s), and the hard limit of %s leaves no room for what replaces one",
		map[bool]string{true: "1 node is", false: fmt.Sprint(b.Waiting, " nodes are")}[b.Waiting == 1], b.Reason, nodesText(int(b.Hard)))
	if b.Why == "" {
		return what + `: raise spec.hardLimits.nodes, or let one node at a time go before what replaces it comes: ` +
			`annotation joiner.sh/terminate-first: "true" on the NodePool`
	}
	return what + "; by annotation joiner.sh/terminate-first one may go before, and none does now: " + b.Why
}

// whyNoneFirst says why none of the nodes that are due goes first, of which p is the plan.
func whyNoneFirst(s *cluster.Snapshot, terms Terms, pool *cluster.Pool, reason plan.DisruptionReason, p plan.Plan) string {
	d := begin(s, terms)
	if why := d.poolHolds(pool, nil); why != "" {
		return why
	}
	if found, held := WhyBudget(pool.Name, Allowed(terms.Budgets[pool.Name], reason), Taken(s)[pool.Name], reason); held {
		return found.Text
	}
	h := hear(s, terms.Now)
	for _, node := range s.Nodes {
		if node.Pool != pool.Name || h.notDue(ruleOf(reason), node, false) != "" {
			continue
		}
		if why := h.objection(ruleOf(reason), node, false); why != "" {
			return "node " + node.ID() + ": " + why
		}
		for _, stay := range p.Stays {
			if stay.Claim == node.Claim {
				return "node " + node.ID() + ": " + stay.Why
			}
		}
	}
	return "no node that is due may go"
}
