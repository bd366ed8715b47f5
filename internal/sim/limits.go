package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// This file is about hard limits on nodes (L-14): what users do to them, and what must hold according to
// docs/limits.md.

// lookFor is the largest age of the look at a pool on which a create rests, when the create is sent: ten seconds by
// the clock of the replica, which may jump.
const lookFor = 10*time.Second + provider.ClockSkew

// viewFor is the largest age of the snapshot on which a launch rests, at the beginning of a step: steps share
// snapshots.
const viewFor = 5 * time.Second

// Bounds of the clock errors of replicas. Two replicas never differ by more than provider.ClockSkew.
const (
	skewBack  = 20 * time.Second
	skewAhead = provider.ClockSkew - skewBack
)

// limitVerbs returns the script lines about hard limits.
func limitVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"relabel": (*World).relabel, "remake": (*World).remakePool}
}

// relabel gives the Kth claim the label of another pool, as a user may. Claims made by hand keep their label.
func (w *World) relabel(a arguments) error {
	found := w.pick(&karpenterv1.NodeClaim{}, a.first())
	if found == nil || len(found.GetOwnerReferences()) == 0 {
		return nil
	}
	change(w, &karpenterv1.NodeClaim{}, client.ObjectKeyFromObject(found), apiserver.Main,
		func(c *karpenterv1.NodeClaim) {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[karpenterv1.NodePoolLabelKey] = a[1]
		})
	return nil
}

// remakePool deletes a pool and creates one of the same name.
func (w *World) remakePool(a arguments) error {
	if w.server.Peek(&karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()}) == nil {
		return nil
	}
	if err := w.server.Delete(&karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()},
		apiserver.DeleteOptions{}); err != nil {
		return err
	}
	return w.makePool(a)
}

// sentIn is when the step began that made something, and when the call landed.
type sentIn struct{ since, landed time.Duration }

// counted is the state of the checks of hard limits.
type counted struct {
	claims   map[types.UID]sentIn
	born     map[types.UID]time.Duration // when each claim appeared, whoever made it
	machines map[string]sentIn           // by provider ID
	// blind has claims, by UID, that users took out of the count before the cloud listed their machine: by removing
	// the finalizer, or by moving the claim to another pool. Nobody can know of the machine then. The value is the
	// time.
	blind map[string]time.Duration
}

func newCounted() counted {
	return counted{
		claims: map[types.UID]sentIn{}, born: map[types.UID]time.Duration{},
		machines: map[string]sentIn{}, blind: map[string]time.Duration{},
	}
}

func (w *World) noteCreate(claim *karpenterv1.NodeClaim) {
	w.checks.counted.born[claim.UID] = w.now
	if w.actor != nil {
		w.checks.counted.claims[claim.UID] = sentIn{w.looked(), w.now}
		w.actor.created = append(w.actor.created, claim)
		w.checkRest(claim)
		if w.script.hasShares() {
			w.checks.made[claim.UID] = w.actor.line.replica
		}
	}
}

// looked returns the earliest time of the look on which the landing create rests.
func (w *World) looked() time.Duration { return max(w.actor.since, w.sent-lookFor) }

// turnsBlind notes that a user takes a claim out of the count.
func (w *World) turnsBlind(claim client.Object) {
	m := w.checks.machines[string(claim.GetUID())]
	if m == nil || w.clock().Before(m.Launched.Add(m.ListLag)) {
		w.checks.counted.blind[string(claim.GetUID())] = w.now
	}
}

// lowered returns when a limit was last set or lowered, at that time or before.
func (c *checks) lowered(key string, at time.Duration) time.Duration {
	when, limit := time.Duration(0), int64(math.MaxInt64)
	for i, span := range c.limits[key] {
		if span.since > at {
			break
		}
		if i == 0 || span.limit < limit {
			when = span.since
		}
		limit = span.limit
	}
	return when
}

// over reports whether something was on its way when the limit was lowered: sent before, landed after.
func (s sentIn) over(lowered time.Duration) bool { return s.since < lowered && s.landed >= lowered }

func ownedBy(o client.Object, pool *karpenterv1.NodePool) bool {
	for _, owner := range o.GetOwnerReferences() {
		if owner.UID == pool.UID {
			return true
		}
	}
	return false
}

// checkHardLimit is L-14 for claims: no claim of Joiner brings a pool above its hard limit. What counts is the highest
// limit since its maker looked at the pool. Claims that were on their way when the limit was lowered are left out,
// since they rest on the higher one. Claims of others that existed by then count: made by hand, or another program's.
func (w *World) checkHardLimit(created *karpenterv1.NodeClaim) {
	pool := w.poolOf(created)
	if w.actor == nil || pool == nil || !ownedBy(created, pool) {
		return
	}
	key := "hard " + string(pool.UID)
	moved, ever := w.checks.moved[string(pool.UID)]
	if ever && moved > w.looked() {
		return // its places have been exchanged since (ADR 0023)
	}
	_, limit := w.checks.since(key, w.looked())
	lowered, own := max(w.checks.lowered(key, w.looked()), moved), int64(0)
	w.server.All(created, func(o client.Object) {
		switch {
		case ownedBy(o, pool):
			if !w.checks.counted.claims[o.GetUID()].over(lowered) {
				own++
			}
		case o.GetLabels()[karpenterv1.NodePoolLabelKey] == pool.Name && len(o.GetOwnerReferences()) == 0:
			if w.checks.counted.born[o.GetUID()] < lowered {
				own++
			}
		}
	})
	if own > limit {
		w.fail(checkHardLimit,
			"NodePool %s has %d NodeClaims with %s, beside those made by hand since, its hard limit is %d",
			pool.Name, own, created.Name, limit)
	}
}

// enforced reports whether a pool says that its current hard limit is in force.
func enforced(pool *karpenterv1.NodePool) bool {
	c, found := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeHardLimitEnforced)
	return found && c.Status == "True" && c.ObservedGeneration == pool.Generation
}

// poolMachines counts the machines of a pool. Without all, it leaves out those requested before the limit was lowered
// that came afterwards, and those whose claim is gone. With all, machines that nobody can know of count if they were
// so before the limit was set: a pool does not say that its limit is in force while such a launch may land.
func (w *World) poolMachines(pool *karpenterv1.NodePool, all bool, lowered time.Duration) int64 {
	set := w.checks.lowered("hard "+string(pool.UID), w.now)
	alive, n := map[string]bool{}, int64(0)
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) { alive[string(o.GetUID())] = true })
	for _, m := range w.cloud.Machines() {
		blind, is := w.checks.counted.blind[m.ClaimUID]
		if m.Labels[karpenterv1.NodePoolLabelKey] != pool.Name || is && (!all || blind >= set) {
			continue
		}
		if all && w.account == nil || alive[m.ClaimUID] && !w.checks.counted.machines[m.ProviderID].over(lowered) {
			n++
		}
	}
	return n
}

// checkInstances is L-14 for machines. Once the pool says that its hard limit is in force, there are never more
// machines than that, of whatever origin. Before that, no launch whose step began under the limit brings the machines
// with a claim above it.
func (w *World) checkInstances(launched *cloud.Machine) {
	name := client.ObjectKey{Name: launched.Labels[karpenterv1.NodePoolLabelKey]}
	pool, _ := w.server.Peek(&karpenterv1.NodePool{}, name).(*karpenterv1.NodePool)
	if w.actor == nil || pool == nil {
		return
	}
	w.checks.counted.machines[launched.ProviderID] = sentIn{w.actor.since, w.now}
	if enforced(pool) {
		w.checkEnforced(pool)
		return
	}
	key, since := "hard "+string(pool.UID), max(0, w.actor.since-viewFor)
	if spans := w.checks.limits[key]; len(spans) == 0 || spans[0].since > since {
		return // the step began before the pool was created
	}
	_, limit := w.checks.since(key, since)
	lowered := w.checks.lowered(key, since)
	if n := w.poolMachines(pool, false, lowered); n > limit {
		w.fail(checkInstances, "NodePool %s has %d machines with %s of claim %s, its hard limit is %d",
			pool.Name, n, launched.ProviderID, launched.ClaimName, limit)
	}
}

// checkEnforced counts the machines of a pool if it says that its hard limit is in force.
func (w *World) checkEnforced(pool *karpenterv1.NodePool) {
	if !enforced(pool) {
		return
	}
	if n, limit := w.poolMachines(pool, true, 0), hardLimit(pool); n > limit {
		w.fail(checkInstances, "NodePool %s has %d machines, its hard limit is %d and in force", pool.Name, n, limit)
	}
}

// limits adds users' changes of limits and pools. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) limits() {
	d := newDice(g.script.Seed, "limits")
	at := func() time.Duration { return d.between(10*time.Second, g.script.Heal-30*time.Second) }
	if d.chance(0.3) { // a limit set in the middle of a plan
		name, app, when := of(&d, g.names...), of(&d, g.apps...), at()
		g.add(when, "limit", name, "hard=none")
		g.add(when+10*time.Second, "scale", app, fmt.Sprint(4+d.n(5)))
		g.add(when+10*time.Second+d.between(0, 6*time.Second), "limit", name, fmt.Sprintf("hard=%d", 1+d.n(3)))
	}
	if d.chance(0.25) {
		name, when := of(&d, g.names...), at()
		g.add(when-d.between(0, 5*time.Second), "scale", of(&d, g.apps...), fmt.Sprint(3+d.n(6)))
		g.add(when, "remake", name, fmt.Sprintf("hard=%d", 1+d.n(4)), "after="+of(&d, "0s", "30s"),
			"budget="+of(&d, "1", "50%", "100%"))
	}
	for range d.n(3) {
		g.add(at(), "relabel", fmt.Sprint(d.n(9)), of(&d, "a", "b", "elsewhere"))
	}
	if d.chance(0.3) && !slices.ContainsFunc(g.script.Actions, func(a Action) bool { return a.Verb == "other-pool" }) {
		g.add(at(), "strip-claim", fmt.Sprint(d.n(9)))
	}
}
