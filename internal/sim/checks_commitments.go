package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// The checks of K-55 look at what a step of provisioning has launched, once it is over: plans are carried out in any
// order. They go by what the replica's caches had shown when the step began and by what it had launched itself. Where
// caches and API server differ, each check takes what speaks for the replica.

const (
	checkCommitment = "commitment"
	checkSpotShare  = "spot-share"
	// cent is far below any price.
	cent = 1e-6
	// settled is how long after the healing every cache is current.
	settled = 2 * time.Minute
)

// hasShares reports whether the script has commitments or a share of spot.
func (s *Script) hasShares() bool {
	return slices.ContainsFunc(s.Actions, func(a Action) bool {
		_, share := arguments(a.Args).value("spot-ratio")
		return a.Verb == verbCommitment || share
	})
}

// hasVerb reports whether the script has a line of one of these.
func (s *Script) hasVerb(verbs ...string) bool {
	return slices.ContainsFunc(s.Actions, func(a Action) bool { return slices.Contains(verbs, a.Verb) })
}

// standOf reads a claim.
func (w *World) standOf(claim *karpenterv1.NodeClaim) *stand {
	s := &stand{uid: claim.UID, pool: poolName(claim), spot: true, demand: true, types: cloud.Types(),
		going: claim.DeletionTimestamp != nil || chosen(claim)}
	narrow := func(key requirement.Key, values []string) {
		switch key {
		case catalog.LabelCapacityType:
			s.spot, s.demand = s.spot && slices.Contains(values, catalog.Spot), s.demand &&
				slices.Contains(values, catalog.OnDemand)
		case catalog.LabelInstanceType:
			s.types = values
		case catalog.LabelZone:
			s.zones = values
		}
	}
	for _, r := range claim.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn {
			narrow(translate.Key(r.Key), r.Values)
		}
	}
	for key, value := range claim.Labels {
		narrow(requirement.Key(key), []string{value})
	}
	return s
}

// stands are the claims that a replica knows, with those that it has launched itself, as long as it believes in these
// unseen.
func (r *replica) stands() map[types.UID]*stand {
	w, known := r.world, map[types.UID]*stand{}
	r.cache.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if isOther(claim) {
			return
		}
		s := w.standOf(claim)
		if condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRegistered) {
			node := r.cache.Peek(&corev1.Node{}, client.ObjectKey{Name: claim.Status.NodeName})
			s.going = s.going || node == nil || node.GetDeletionTimestamp() != nil
		}
		known[claim.UID] = s
	})
	for uid, by := range w.checks.made {
		if by == r && known[uid] == nil && w.now-w.checks.counted.born[uid] < world.DefaultPromiseTTL {
			if claim := w.claimOf(string(uid)); claim != nil {
				known[uid] = w.standOf(claim)
			}
		}
	}
	return known
}

// afterStep looks at what a step of provisioning has launched.
func (w *World) afterStep(p *process) {
	if p.stands == nil || len(p.created) == 0 || w.account != nil {
		return
	}
	now := map[types.UID]*stand{}
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		if claim := o.(*karpenterv1.NodeClaim); !isOther(claim) {
			now[claim.UID] = w.standOf(claim)
		}
	})
	for _, claim := range p.created {
		w.checkOnDemand(p, now, w.standOf(claim), claim.Name)
		w.checkBeside(p, now, w.standOf(claim), claim.Name)
	}
	for _, pool := range p.pools {
		w.checkSpotShare(p, now, pool)
	}
}

// checkOnDemand is K-55: without a share of spot nothing is launched on demand but what a commitment has enough left
// for. Where markets run out, on demand may be all that there is. What a later pool buys on demand for its share of
// spot is not foreseen when a pool plans on the commitment (docs/known-gaps.md), so that does not count.
func (w *World) checkOnDemand(p *process, now map[types.UID]*stand, made *stand, name string) {
	if made.spot || w.script.hasVerb("run-out", "interrupt") || w.asksForShare(made.pool) {
		return
	}
	for _, span := range p.line.replica.committedSince(p.since) {
		for i, line := range span.lines {
			if within, _ := line.covers(made); !within {
				continue
			}
			used, c := takes(span.list[i], made.price()), span.list[i]
			for uid, known := range p.stands {
				if after := now[uid]; !known.going && after != nil && !after.going && onlyOn(span, known, i) &&
					onlyOn(span, after, i) {
					used += takes(c, min(known.price(), after.price()))
				}
			}
			for _, claim := range p.created {
				if other := w.standOf(claim); other.uid != made.uid && !w.asksForShare(other.pool) &&
					onlyOn(span, other, i) {
					used += takes(c, other.price())
				}
			}
			if used <= amount(c)+cent {
				return
			}
		}
	}
	w.fail(checkCommitment, "claim %s is launched on demand, and no commitment has enough left for it", name)
}

// onlyOn reports whether that commitment of a list is sure to cover something, and no other.
func onlyOn(span committedSpan, s *stand, at int) bool {
	if s.spot {
		return false
	}
	for i, line := range span.lines {
		if within, some := line.covers(s); i == at && !within || i != at && some {
			return false
		}
	}
	return true
}

// asksForShare reports whether the script ever asks for a share of spot in a pool.
func (w *World) asksForShare(pool string) bool {
	return slices.ContainsFunc(w.script.Actions, func(a Action) bool {
		_, share := arguments(a.Args).value("spot-ratio")
		return share && arguments(a.Args).first() == pool
	})
}

// checkBeside is K-55: what a commitment has enough left for is launched on it. A step that could not launch all of
// its plan may have left some, and so does one for which on demand is sold out, or whose limits leave room for fewer
// nodes than pods wait: there larger nodes may take more of them.
func (w *World) checkBeside(p *process, now map[types.UID]*stand, made *stand, name string) {
	if !made.spot || !w.carriedOut(p) || w.crowded(p, made.pool) {
		return
	}
	spans := p.line.replica.committedSince(p.since)
	if len(spans) != 1 {
		return
	}
	for i, line := range spans[0].lines {
		c, used := spans[0].list[i], w.drawnByOthers(line)
		for uid := range union(p.stands, now) {
			if before, after := p.stands[uid], now[uid]; mayDraw(line, before) || mayDraw(line, after) {
				used += takes(c, max(before.priceOr0(), after.priceOr0()))
			}
		}
		for _, each := range made.types {
			one := &stand{pool: made.pool, types: []string{each}, zones: made.zones}
			if _, some := line.covers(one); some && used+takes(c, one.price()) <= amount(c)+cent && p.sold(one, line) {
				w.fail(checkCommitment,
					"claim %s may become spot, though commitment %s has enough left for %s: %.3f of %.3f are used at most",
					name, c.Name, each, used, amount(c))
				return
			}
		}
	}
}

// crowded reports whether the limits of a pool left a step room for fewer nodes than pods wait, those of buffers among
// them.
func (w *World) crowded(p *process, name string) bool {
	room := w.clusterRoom()
	for _, pool := range p.pools {
		if pool.Name == name {
			room = min(room, nodeLimit(pool)-w.count(name))
		}
	}
	waiting := int64(0)
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == "" && !isDaemon(pod) {
			waiting++
		}
	})
	w.server.All(&autoscalingv1beta1.CapacityBuffer{}, func(o client.Object) {
		waiting += int64(*o.(*autoscalingv1beta1.CapacityBuffer).Spec.Replicas)
	})
	return room < waiting-int64(len(p.created))
}

// sold reports whether, as far as a process knows, the provider sells something on demand that is like a claim, and
// that a line covers; nil covers all. It may remember for a while that it could not have it.
func (p *process) sold(s *stand, line *commitmentLine) bool {
	pool := p.line.replica.store.Snapshot().Pool(s.pool)
	if pool == nil || pool.Catalog == nil {
		return false
	}
	return slices.ContainsFunc(pool.Catalog.Offers, func(o catalog.Offer) bool {
		name := pool.Catalog.Types[o.Type].Name
		if !o.Available || o.CapacityType != catalog.OnDemand || !slices.Contains(s.types, name) ||
			len(s.zones) > 0 && !slices.Contains(s.zones, o.Zone) {
			return false
		}
		if line == nil {
			return true
		}
		_, covered := line.covers(&stand{types: []string{name}, zones: []string{o.Zone}})
		return covered
	})
}

func union(a, b map[types.UID]*stand) map[types.UID]bool {
	all := map[types.UID]bool{}
	for uid := range a {
		all[uid] = true
	}
	for uid := range b {
		all[uid] = true
	}
	return all
}

func (s *stand) priceOr0() float64 {
	if s == nil {
		return 0
	}
	return s.price()
}

// mayDraw reports whether something may count against a commitment.
func mayDraw(line *commitmentLine, s *stand) bool {
	if s == nil || s.spot {
		return false
	}
	_, some := line.covers(s)
	return some
}

// drawnByOthers is what nodes of another program take of a commitment at most.
func (w *World) drawnByOthers(line *commitmentLine) (used float64) {
	w.server.All(&corev1.Node{}, func(o client.Object) {
		node := o.(*corev1.Node)
		if each := node.Labels[corev1.LabelInstanceTypeStable]; isOther(node) && each != "" {
			used += max(1, cloud.FullPrice(each))
		}
	})
	return used
}

// carriedOut reports whether a step has launched all of its plan, as far as can be told from outside: every create has
// landed, and caches were good enough for the check before each launch to object to none.
func (w *World) carriedOut(p *process) bool {
	return p.err == nil && p.creates == len(p.created) && w.healed && p.since >= w.script.Heal+settled
}

// checkSpotShare is K-55: with what a step launches, no larger share of a pool is spot than it allows, if any of it
// may be.
func (w *World) checkSpotShare(p *process, now map[types.UID]*stand, pool *karpenterv1.NodePool) {
	demand, _ := translate.OnDemandPercent(pool)
	current := w.server.Peek(&karpenterv1.NodePool{}, client.ObjectKeyFromObject(pool))
	ratio := func(o client.Object) string { return o.GetAnnotations()[karpenterv1.SpotRatioAnnotationKey] }
	if demand == 0 || current == nil || current.GetGeneration() != pool.Generation || ratio(current) != ratio(pool) ||
		!w.carriedOut(p) {
		return
	}
	launched, spot, all := 0, 0, 0
	for _, claim := range p.created {
		if made := w.standOf(claim); made.pool == pool.Name {
			all++
			if made.spot {
				spot++
			}
			if made.spot && p.sold(made, nil) { // where on demand is sold out, spot is all that there is
				launched++
			}
		}
	}
	for uid, known := range p.stands {
		if known.pool != pool.Name {
			continue
		}
		after := now[uid]
		switch {
		case after == nil || !known.spot || !after.spot:
			all++
		case !known.going && !after.going:
			all++
			spot++
		}
	}
	if launched > 0 && 100*spot > (100-demand)*all {
		w.fail(checkSpotShare,
			"%d nodes of %d of NodePool %s may be spot with %d that were just launched, and %s allows fewer", spot,
			all, pool.Name, launched, pool.Annotations[karpenterv1.SpotRatioAnnotationKey])
	}
}
