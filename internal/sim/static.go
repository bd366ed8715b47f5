package sim

import (
	"fmt"
	"math"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// This file checks the node limit of static pools: for these the soft limit is a cap too (L-31).

const checkStaticCap = "static-cap"

// staticCap returns the node limit of a static pool, hard or soft; for another pool it returns no limit.
func staticCap(pool *karpenterv1.NodePool) int64 {
	if pool.Spec.Replicas == nil {
		return math.MaxInt64
	}
	if len(pool.Spec.HardLimits) > 0 {
		return hardLimit(pool)
	}
	if quantity, limited := pool.Spec.Limits["nodes"]; limited {
		return quantity.Value()
	}
	return math.MaxInt64
}

// checkStaticCap is L-31 for static pools: no claim of Joiner brings one above its node limit. What counts is the
// highest limit since the step began that makes the claim.
func (w *World) checkStaticCap(created *karpenterv1.NodeClaim) {
	pool := w.poolOf(created)
	if w.actor == nil || pool == nil || pool.Spec.Replicas == nil {
		return
	}
	_, limit := w.checks.since("static "+string(pool.UID), w.actor.since)
	own := int64(0)
	w.server.All(created, func(o client.Object) {
		if poolName(o) == pool.Name && o.GetLabels()[handLabel] == "" {
			own++
		}
	})
	if own > limit {
		w.fail(checkStaticCap, "static NodePool %s has %d NodeClaims of its own with %s, its limit is %d", pool.Name,
			own, created.Name, limit)
	}
}

// staticSoft adds a static pool with a soft limit to some scripts: it is rolled, while its replicas and limit change.
// It has its own dice, so that scripts of other seeds do not change.
func (g *generator) staticSoft() {
	d := newDice(g.script.Seed, "static soft")
	if !d.chance(0.15) {
		return
	}
	const name = "t"
	limit := 1 + d.n(5)
	g.add(0, "pool", name, fmt.Sprintf("replicas=%d", 1+d.n(limit)), fmt.Sprintf("soft=%d", limit),
		"budget="+of(&d, "1", "2", "100%"))
	at := func() time.Duration { return d.between(20*time.Second, g.script.Heal-time.Second) }
	for range 1 + d.n(3) {
		g.add(at(), "drift", name)
	}
	for range d.n(3) {
		g.add(at(), "replicas", name, fmt.Sprint(d.n(6)))
	}
	if d.chance(0.5) {
		g.add(at(), "limit", name, "soft="+of(&d, "1", "2", "4", "none"))
	}
}
