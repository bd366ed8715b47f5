package sim

import (
	"fmt"
	"math"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// This file checks pools that were above their soft node limit when Joiner first saw them (L-40): they shrink within
// their budgets. The check cannot know what a process has seen. But a process has to mark the pool before anything
// goes at once.

// softBound returns the soft limit of a pool, and whether that limit is what bounds its nodes.
func softBound(pool *karpenterv1.NodePool) (int64, bool) {
	quantity, limited := pool.Spec.Limits["nodes"]
	if !limited || len(pool.Spec.HardLimits) > 0 {
		return math.MaxInt64, false
	}
	return quantity.Value(), pool.Spec.Replicas == nil || *pool.Spec.Replicas > quantity.Value()
}

// gentle returns 1 for a pool whose nodes above the soft limit go within budgets, 0 for another one.
func gentle(pool *karpenterv1.NodePool) int64 {
	most, bound := softBound(pool)
	if !bound || pool.Annotations[karpenterv1.AboveLimitAnnotationKey] == fmt.Sprintf("AtOnce %d", most) {
		return 0
	}
	return 1
}

// checkGentle is L-40: trimming in such a pool keeps to the budgets. Any mark since the step began may be the one that
// the step saw.
func (w *World) checkGentle(claim *karpenterv1.NodeClaim) {
	pool := w.poolOf(claim)
	if pool == nil {
		return
	}
	if least, _ := w.checks.since("gentle "+string(pool.UID), w.actor.since); least == 1 {
		w.checkBudget(claim)
	}
}

// aboveVerbs returns the script lines of this file.
func aboveVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"inherit": (*World).inherit}
}

// inherit sets the limits of a pool while no process of ours runs. Another autoscaler that does not remove nodes above
// a limit leaves pools in this state.
func (w *World) inherit(a arguments) error {
	for len(w.replicas) > 0 {
		w.crash(w.replicas[0])
	}
	return w.setLimit(a)
}

// inherits adds a takeover to some scripts. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) inherits() {
	d := newDice(g.script.Seed, "inherits")
	if !d.chance(0.15) {
		return
	}
	for range 1 + d.n(2) {
		at := d.between(40*time.Second, g.script.Heal-time.Second)
		g.add(at, "inherit", of(&d, g.names...), "hard=none", "soft="+of(&d, "0", "1", "2", "3"))
		if d.chance(0.4) {
			g.add(at+d.between(0, time.Minute), "limit", of(&d, g.names...), "soft="+of(&d, "0", "1", "3", "none"))
		}
	}
}
