package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// At its hard limit a pool that is not static replaces nothing (L-30). The annotation joiner.sh/terminate-first lets a
// node go before its replacement comes (K-48). One node goes at a time, and the next when nobody waits for the pool
// any more. Nothing is launched for it, as for any node that needs no replacement (L-32). So the limit always holds;
// the pods wait while the machine goes and another one comes.
//
// If a replacement only fits in the reservation that its node holds, the node goes first without the annotation,
// unless the gate TerminateFirstDrift is off. So does a node of a static pool at its limit (static.go).
//
// A node goes first for want of room only, never because a launch failed. The pool may launch. A plan with the room
// that the node leaves has places for its pods. Its drain ends.

// letsGoFirst reports whether a node of the pool may go before its replacement, where its hard limit leaves no room.
func letsGoFirst(pool *cluster.Pool) bool {
	return pool.TerminateFirst && !pool.Static && pool.Limits.HardNodes != limit.None
}

// whyFirst says in words why a node goes before its replacement, for a pool that is not static.
func whyFirst(pool *cluster.Pool, first plan.First) string {
	if first == plan.FirstForReservation {
		return whyVacates
	}
	return fmt.Sprintf("NodePool %s has no room for a replacement below its hard limit of %s, and its annotation "+
		"joiner.sh/terminate-first lets one node go before", pool.Name, nodesText(int(pool.Limits.HardNodes)))
}

// vacates reports whether a node may go before its replacement, to leave it the reservation: one that is used up.
func (d *disruption) vacates(pool *cluster.Pool, node *cluster.Node) bool {
	return !pool.NoneFirst && d.holdsLast(pool, node)
}

// holdsLast reports whether a node holds a reservation that is used up.
func (d *disruption) holdsLast(pool *cluster.Pool, node *cluster.Node) bool {
	if d.usedUp == nil {
		d.usedUp = pack.UsedUp(d.origin)
	}
	return d.usedUp(pool, node)
}

// whyVacates says why such a node goes before its replacement.
const whyVacates = "the reservation that it runs in is used up, and what replaces it only fits there, so it goes before"

// goFirst lets one node go first in each pool that asks for it, or whose reservations are used up, if none of its
// nodes could be replaced. nodes are in the order in which they are due.
func (d *disruption) goFirst(nodes []*cluster.Node, reason plan.DisruptionReason) {
	for _, pool := range d.origin.Pools {
		if pool.Static || d.left(pool.Name, reason) == 0 || d.poolHolds(pool, nil) != "" ||
			slices.ContainsFunc(d.chosen, func(c command) bool { return c.nodes[0].Pool == pool.Name }) {
			continue
		}
		tries := 0
		for _, node := range nodes {
			if node.Pool != pool.Name || tries == maxTries || !letsGoFirst(pool) && !d.vacates(pool, node) {
				continue
			}
			found := d.nodeHolds(pool, d.now(node))
			if found.first != "" {
				d.stays = slices.DeleteFunc(d.stays, func(s plan.Stay) bool { return s.Claim == node.Claim })
				d.choose(command{nodes: []*cluster.Node{node}, reason: reason, why: whyFirst(pool, found.first),
					first: found.first})
				break
			}
			tries++
			if found.lacking != nil {
				d.stays = slices.DeleteFunc(d.stays, func(s plan.Stay) bool { return s.Claim == node.Claim })
				d.stay(node, found.lead, *found.lacking)
			}
		}
	}
}

// poolHolds says why no node of a pool goes first; "" when one may. but is a node that does not count, or nil.
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

// waitingFor names a pod that waits for a place in a pool, for its hard limit or for a reservation; "" when none does.
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
		if limited(u, pool) || usedUp(u, pool) {
			return u.Pod.String()
		}
	}
	return ""
}

// limited reports whether the hard limit of a pool is what keeps a pod from a node of it.
func limited(u plan.Unplaced, pool *cluster.Pool) bool { return refused(u, pool, cause.HardLimitNodes) }

// usedUp reports whether used up reservations are what keeps a pod from a node of a pool.
func usedUp(u plan.Unplaced, pool *cluster.Pool) bool {
	return refused(u, pool, cause.ReservationsUsedUp)
}

func refused(u plan.Unplaced, pool *cluster.Pool, why cause.Code) bool {
	return slices.ContainsFunc(u.Pools, func(r plan.PoolRefusal) bool {
		return r.Pool == pool.Name && r.Last().Cause == why
	})
}

// hold is what becomes of a node that might go first.
type hold struct {
	// first is set when it goes, and says why nothing replaces it before.
	first plan.First
	// lacking is a pod of it that would find no place. lead is the text before that, or the whole text.
	lead    string
	lacking *plan.Unplaced
}

// nodeHolds says what becomes of a node of the future. It does not go first if its pods have places, or if its
// replacement has room.
func (d *disruption) nodeHolds(pool *cluster.Pool, node *cluster.Node) hold {
	staged := d.future.Without(node).WithoutBuffers()
	unplaced := pack.Solve(staged, staged.Pending).Unplaced
	if len(unplaced) == 0 {
		return hold{lead: "what replaces it has room"}
	}
	first, lacking := d.givesRoom(staged, pool, node, unplaced)
	if lacking != nil {
		return hold{lacking: lacking}
	}
	if node.DrainEnds {
		return hold{first: first}
	}
	if lead, found := d.stuck(node, nil); lead != "" {
		return hold{lead: lead, lacking: &found}
	}
	return hold{first: first}
}

// givesRoom says why a node goes before its replacement, if the room that it leaves gives its pods places: its slot of
// the hard limit, of a reservation, or both. Otherwise it returns a pod without a place. unplaced are its pods that
// have no place while it is there.
func (d *disruption) givesRoom(staged *cluster.Snapshot, pool *cluster.Pool, node *cluster.Node,
	unplaced []plan.Unplaced) (
	first plan.First, lacking *plan.Unplaced,
) {
	slot, reserved, lacked, freed := letsGoFirst(pool), d.vacates(pool, node), unplaced, staged
	for len(unplaced) > 0 {
		switch {
		case slot && slices.ContainsFunc(unplaced, func(u plan.Unplaced) bool { return limited(u, pool) }):
			slot, freed, first = false, freed.Freed(node), plan.FirstAtHardLimit
		case reserved:
			reserved, freed, first = false, freed.Vacated(node), cmp.Or(first, plan.FirstForReservation)
		default:
			return "", &unplaced[0]
		}
		unplaced = pack.Solve(freed, freed.Pending).Unplaced
	}
	if full := staged.Restocked(pool.Name); first == plan.FirstForReservation &&
		len(pack.Solve(full, full.Pending).Unplaced) == 0 {
		return "", &lacked[0] // it would be replaced if a launch had not failed
	}
	return first, nil
}

// vacates reports whether a marked node may go first, to leave its reservation to its replacement.
func (j *judging) vacates(pool *cluster.Pool, m *move) bool {
	d := disruption{origin: j.s}
	return d.vacates(pool, m.intents[0].Node)
}

// misfitFirst says why a marked node of a pool does not go first after all; the zero value when it does.
func (j *judging) misfitFirst(pool *cluster.Pool, m *move) refusal {
	d := j.begun()
	if why := d.poolHolds(pool, m.intents[0].Node); why != "" {
		return refusal{why: "nothing was launched that replaces it, and it does not go first: " + why,
			ground: GroundScheduling}
	}
	if len(m.intents) > 1 {
		return refusal{why: "nothing was launched that replaces it, and one node of its NodePool goes first at a time",
			ground: GroundScheduling}
	}
	found := d.nodeHolds(pool, d.now(m.intents[0].Node))
	if found.first != "" {
		return refusal{}
	}
	if found.lacking != nil {
		found.lead += homeless(*found.lacking)
	}
	return refusal{why: "nothing was launched that replaces it, and it does not go first: " + found.lead,
		ground: GroundScheduling}
}
