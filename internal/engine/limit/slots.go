package limit

import (
	"fmt"
	"strconv"
	"strings"
)

// This file is the arithmetic of slots (L-14; the argument is in docs/limits.md). A pool with slots makes claims only
// under the names of its slots, 0 to n-1, and every name exists once: so it never makes more than n. While other
// claims of the pool exist too (made before it had slots, by hand, or under a slot that a lower limit took away), as
// many slots are out of use: the highest free ones. What is left is the lowest n - count free slots, whatever kind the
// counted claims are.

// SlotName returns the name of the NodeClaim that holds a slot of a hard-limited pool: a fixed function of the
// pool's name and UID and the slot's number from 0, so that two writers can never own one slot twice (L-14).
func SlotName(pool, poolUID string, slot int) string {
	return fmt.Sprintf("%s%d", slotPrefix(pool, poolUID), slot)
}

// SlotOf returns the slot of a pool that a claim of that name holds, and whether it holds one.
func SlotOf(claim, pool, poolUID string) (int, bool) {
	number, found := strings.CutPrefix(claim, slotPrefix(pool, poolUID))
	slot, err := strconv.Atoi(number)
	return slot, found && err == nil && slot >= 0 && strconv.Itoa(slot) == number
}

func slotPrefix(pool, poolUID string) string {
	const uidLength = 8 // enough to tell a pool from its predecessor of the same name
	return fmt.Sprintf("%s-%.*s-", pool, uidLength, poolUID)
}

// Slots returns how many slots a pool has: its hard limit or, for a static pool, the number of nodes that it runs (see
// [Limits.Target]). None when its claims need no slots. replicas is None for a pool that is not static.
func (l Limits) Slots(replicas int64) int64 {
	if replicas == None {
		return l.HardNodes
	}
	target, _ := l.Target(replicas)
	return target
}

// SurgeSlots is Slots for claims that replace others, of a pool with count claims. A static pool may be above its
// replicas while nodes are replaced, but never above its node limit, hard or soft (L-31). Without a limit it may have
// one more slot for each claim.
func (l Limits) SurgeSlots(replicas, count int64) int64 {
	if replicas == None {
		return l.HardNodes
	}
	if most, _ := l.Nodes(); most != None {
		return most
	}
	return l.Slots(replicas) + count
}

// Target returns how many nodes a static pool runs: its replicas, or fewer where a limit is lower. The second result
// is that limit, nil when there is none (L-17).
func (l Limits) Target(replicas int64) (int64, *Exceeded) {
	most, hard := l.Nodes()
	if most == None || replicas <= most {
		return replicas, nil
	}
	return most, &Exceeded{Component: Nodes, Limit: most, Used: replicas, Hard: hard}
}

// Nodes returns the node limit that counts, and whether it is the hard one, which wins (L-03); None when there is
// none.
func (l Limits) Nodes() (most int64, hard bool) {
	if l.HardNodes != None {
		return l.HardNodes, true
	}
	return l.SoftNodes, false
}

// Usable returns the slots, ascending, in which a claim may be made: the n - count lowest free ones of the n slots.
// count is the number of all claims of the pool, in slots or not. taken says which slots hold a claim. At most most
// slots are listed.
func Usable(n, count int64, taken func(slot int) bool, most int) []int {
	usable := []int{}
	for slot := 0; int64(slot) < n && int64(len(usable)) < n-count && len(usable) < most; slot++ {
		if !taken(slot) {
			usable = append(usable, slot)
		}
	}
	return usable
}

// Disruptions is how many nodes of a pool may be replaced now for a reason: the smaller of what its budgets leave and
// of what the hard limit leaves for replacements, which come first (L-30). It bounds launches, not removals (L-32,
// L-33): a command that replaces three nodes by one uses one, and one that launches nothing none.
type Disruptions struct {
	Allowed int
	// ByLimit is set when the hard limit, and not a budget, leaves less than was wanted.
	ByLimit bool
}

// Replacements returns the disruptions of a pool of count nodes (every NodeClaim that exists, L-13) whose budgets
// leave budget. Soft limits do not bound replacements (L-31).
func (l Limits) Replacements(budget int, count int64) Disruptions {
	if l.HardNodes == None {
		return Disruptions{Allowed: max(0, budget)}
	}
	left := max(0, l.HardNodes-count)
	if left < int64(budget) {
		return Disruptions{Allowed: int(left), ByLimit: true}
	}
	return Disruptions{Allowed: max(0, budget)}
}

// Excess returns how many nodes of a pool have to go and are not going yet (L-40, L-42): those above the limit, hard
// or soft, less the leaving ones. Nodes that are being replaced count as leaving as soon as that is written anywhere,
// so their replacements are no excess (L-31). For a static pool the limit is the number of nodes that it runs (D-12);
// replicas is None for another one. A negative result says how many leaving nodes could stay.
func (l Limits) Excess(replicas, count, leaving int64) int64 {
	most, _ := l.Nodes()
	if replicas != None {
		most, _ = l.Target(replicas)
	}
	if most == None {
		return -leaving
	}
	return max(0, count-most) - leaving
}

// Counted returns how many nodes count for the limit when a pool has own nodes, and other programs have others with
// its label. Theirs take the room that is left below the limit, so nothing is launched there. They never bring
// the pool above it: nodes above it are removed, and neither theirs nor ours must go for theirs. replicas is None for
// a pool that is not static.
func (l Limits) Counted(replicas, own, others int64) int64 {
	most, _ := l.Nodes()
	if replicas != None {
		most, _ = l.Target(replicas)
	}
	if most == None {
		return own + others
	}
	return own + min(others, max(0, most-own))
}
