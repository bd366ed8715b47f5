package engine

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file reports pools whose roll waits because no replacement can be there before its node goes (K-48). It covers
// pools where a node may go first and none does, and pools where none may.

// RollBlock is what leaves no room for a replacement.
type RollBlock string

// What leaves no room.
const (
	ByHardLimit   RollBlock = "HardLimit"
	ByStaticLimit RollBlock = "StaticAtLimit"
	ByReservation RollBlock = "ReservationUsedUp"
	ByCluster     RollBlock = "ClusterAtLimit"
)

// BlockedRoll is why nodes of a pool that are drifted or expired are not replaced.
type BlockedRoll struct {
	Waiting int // nodes that are due
	Reason  plan.DisruptionReason
	By      RollBlock
	// Most is the limit on the pool's nodes, and Hard whether it is a hard one; both are zero for ByReservation and
	// ByCluster.
	Most int64
	Hard bool
	// Why says what holds up the next node although the pool lets nodes go first; "" where the pool does not.
	Why string
	// Ceiling is the limit of the whole cluster, for ByCluster; else zero.
	Ceiling limit.Ceiling
}

// rolling is a look at the nodes of a pool that are due.
type rolling struct {
	*disruption
	pool *cluster.Pool
	due  []*cluster.Node
	plan plan.Plan
}

// WhyRollBlocked says why a pool replaces none of the nodes that are due, if it lacks room for a replacement. It is
// false for any other cause, when no node is due, and when one of them is going.
func WhyRollBlocked(s *cluster.Snapshot, terms Terms, name string) (BlockedRoll, bool) {
	pool := s.Pool(name)
	if pool == nil || pool.Dormant {
		return BlockedRoll{}, false
	}
	r := rolling{pool: pool, disruption: &disruption{origin: s, terms: terms, heard: hear(s, terms.Now)}}
	blocked, may := BlockedRoll{}, false
	for _, node := range s.Nodes {
		if node.Pool != name || node.Claim == "" {
			continue
		}
		reason := r.heard.wanted(node, plan.Drifted, plan.Expired)
		switch {
		case reason == "":
		case node.Deleting || node.Disrupting:
			return BlockedRoll{}, false
		default:
			r.due = append(r.due, node)
			may = may || r.heard.objection(ruleOf(reason), node, false) == ""
			if blocked.Reason == "" {
				blocked.Reason = reason
			}
		}
	}
	blocked.Waiting = len(r.due)
	if !r.mayBeBlocked() || !may && !r.goFirst() { // what users forbid is said of each node
		return BlockedRoll{}, false
	}
	r.plan = renew(s, terms, blocked.Reason)
	if slices.ContainsFunc(r.plan.Removes, func(r plan.Remove) bool { return r.Pool == name }) {
		return BlockedRoll{}, false
	}
	r.disruption = begin(s, terms)
	if blocked.By = r.by(); blocked.By == "" {
		return BlockedRoll{}, false
	}
	switch blocked.Most, blocked.Hard = pool.Limits.Nodes(); blocked.By {
	case ByHardLimit:
		blocked.Most, blocked.Hard = pool.Limits.HardNodes, true
	case ByReservation:
		blocked.Most, blocked.Hard = 0, false
	case ByCluster:
		blocked.Most, blocked.Hard, blocked.Ceiling = 0, false, s.Ceiling()
	}
	if r.goFirst() && blocked.By != ByCluster {
		blocked.Why = r.whyNone(blocked.Reason)
	}
	return blocked, true
}

// rollBlocks returns [WhyRollBlocked] for the pools of s. Each is asked about once.
func rollBlocks(s *cluster.Snapshot, terms Terms) func(pool string) (BlockedRoll, bool) {
	type answer struct {
		found BlockedRoll
		is    bool
	}
	known := map[string]*answer{}
	return func(pool string) (BlockedRoll, bool) {
		if known[pool] == nil {
			found, is := WhyRollBlocked(s, terms, pool)
			known[pool] = &answer{found, is}
		}
		return known[pool].found, known[pool].is
	}
}

// mayBeBlocked is a cheap check whether anything could leave no room.
func (r *rolling) mayBeBlocked() bool {
	return len(r.due) > 0 && (terminatesFirst(r.pool) || r.pool.Static && r.origin.Ceiling().LeftHard() == 0 ||
		!r.pool.Static && r.pool.Limits.HardNodes != limit.None ||
		slices.ContainsFunc(r.due, func(n *cluster.Node) bool { return r.holdsLast(r.pool, n) }))
}

// goFirst reports whether nodes of the pool that are due may go before their replacements.
func (r *rolling) goFirst() bool {
	return letsGoFirst(r.pool) || !r.pool.NoneFirst && (terminatesFirst(r.pool) ||
		slices.ContainsFunc(r.due, func(n *cluster.Node) bool { return r.vacates(r.pool, n) }))
}

// by says what leaves no room for a replacement; "" when something else is in the way.
func (r *rolling) by() RollBlock {
	pool := r.pool
	stays := func(why func(plan.Unplaced, *cluster.Pool) bool) bool {
		return slices.ContainsFunc(r.plan.Stays, func(stay plan.Stay) bool { return why(stay.Homeless, pool) })
	}
	full := pool.Static && pool.Blocked == "" && r.origin.Ceiling().LeftHard() == 0
	switch {
	case full && (!terminatesFirst(pool) || lackingIn(r.origin, pool) > 0): // nor does what the pool lacks come
		return ByCluster
	case terminatesFirst(pool) && lackingIn(r.origin, pool) > 0: // one has gone
	case terminatesFirst(pool):
		return ByStaticLimit
	case pool.Static && pool.Blocked == "" && r.surgesNowhere(pool), !pool.Static &&
		(stays(usedUp) || r.keptByUsers()):
		return ByReservation
	case pool.Static || pool.Limits.HardNodes == limit.None:
	case pool.Used.Nodes >= pool.Limits.HardNodes, stays(limited):
		return ByHardLimit
	}
	return ""
}

// keptByUsers reports whether users keep a due node that would go first to leave its reservation: no plan mentions
// such a node. It looks at the first of them only.
func (r *rolling) keptByUsers() bool {
	for _, node := range r.due {
		reason := r.heard.wanted(node, plan.Drifted, plan.Expired)
		if r.vacates(r.pool, node) && r.heard.objection(ruleOf(reason), node, false) != "" {
			staged := r.future.Without(r.now(node)).WithoutBuffers()
			unplaced := pack.Solve(staged, staged.Pending).Unplaced
			return slices.ContainsFunc(unplaced, func(u plan.Unplaced) bool { return usedUp(u, r.pool) })
		}
	}
	return false
}

// Text says it in words, for the pool.
func (b BlockedRoll) Text() string {
	text := fmt.Sprintf("%s due to be replaced (%s), and ",
		map[bool]string{true: "1 node is", false: fmt.Sprint(b.Waiting,
			" nodes are")}[b.Waiting == 1], b.Reason)
	first, none := "by annotation joiner.sh/terminate-first one may go before",
		"the feature gate TerminateFirstDrift lets one go before, and is off (--feature-gates)"
	switch b.By {
	case ByHardLimit:
		text += fmt.Sprintf("the hard limit of %s leaves no room for what replaces one", nodesText(int(b.Most)))
		none = `raise spec.hardLimits.nodes, or let one node at a time go before what replaces it comes: ` +
			`annotation joiner.sh/terminate-first: "true" on the NodePool`
	case ByStaticLimit:
		text += fmt.Sprintf("replicas are at the %s limit of %s, which leaves no room for what replaces one",
			limit.Kind(b.Hard), nodesText(int(b.Most)))
		first, none = "one may go before", "raise spec."+map[bool]string{true: "hardLimits", false: "limits"}[b.Hard]+
			".nodes; "+none
	case ByCluster:
		text += b.Ceiling.Text() + "; that leaves no room for what replaces one"
		none = "raise --" + b.Ceiling.Flag() + ", or remove a node"
	default:
		text += "what replaces one only fits in reservations that are used up"
		first = "one may go before"
	}
	if b.Why == "" {
		return text + ": " + none
	}
	return text + "; " + first + ", and none does now: " + b.Why
}

// whyNone says why none of the nodes that are due goes first.
func (r *rolling) whyNone(reason plan.DisruptionReason) string {
	pool := r.pool
	if pool.Static && pool.Blocked != "" {
		return "NodePool " + pool.Name + " launches nothing: " + pool.Blocked
	}
	if why := r.poolHolds(pool, nil); why != "" && !pool.Static {
		return why
	}
	if found, held := WhyBudget(pool.Name, Allowed(r.terms.Budgets[pool.Name], reason), Taken(r.origin)[pool.Name],
		reason); held {
		return found.Text
	}
	for _, node := range r.due {
		if r.heard.notDue(ruleOf(reason), node, false) != "" {
			continue
		}
		if why := r.heard.objection(ruleOf(reason), node, false); why != "" {
			return "node " + node.ID() + ": " + why
		}
		for _, stay := range r.plan.Stays {
			if stay.Claim == node.Claim {
				return "node " + node.ID() + ": " + stay.Why
			}
		}
	}
	if pool.Static {
		return "nothing is available at present that would replace one"
	}
	return "no node that is due may go"
}
