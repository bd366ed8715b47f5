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

// The checks of K-55 look at what a step of provisioning has launched once the step is over, since plans are carried
// out in any order. They use what the replica's caches showed when the step began, and what the replica launched
// itself. If caches and API server differ, a check gives the replica the benefit of the doubt.

const (
	checkCommitment = "commitment"
	checkSpotShare  = "spot-share"
	// cent is far below any price.
	cent = 1e-6
	// settled is how long after the healing all caches are current.
	settled = 2 * time.Minute
)

// hasShares reports whether the script has commitments or spot ratios.
func (s *Script) hasShares() bool {
	return slices.ContainsFunc(s.Actions, func(a Action) bool {
		_, share := arguments(a.Args).value("spot-ratio")
		return a.Verb == verbCommitment || share
	})
}

// hasVerb reports whether the script has a line with one of these verbs.
func (s *Script) hasVerb(verbs ...string) bool {
	return slices.ContainsFunc(s.Actions, func(a Action) bool { return slices.Contains(verbs, a.Verb) })
}

// standOf returns the stand of a claim.
func (w *World) standOf(claim *karpenterv1.NodeClaim) *stand {
	s := &stand{uid: claim.UID, pool: poolName(claim), spot: true, demand: true, reserved: true,
		types: cloud.Types(), going: claim.DeletionTimestamp != nil || chosen(claim)}
	narrow := func(key requirement.Key, values []string) {
		switch key {
		case catalog.LabelCapacityType:
			s.spot = s.spot && slices.Contains(values, catalog.Spot)
			s.demand = s.demand && slices.Contains(values, catalog.OnDemand)
			s.reserved = s.reserved && slices.Contains(values, catalog.Reserved)
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
	// A machine is what its label says: after the end of a reservation that is not what the claim asked for.
	if is := claim.Labels[karpenterv1.CapacityTypeLabelKey]; is != "" {
		s.spot, s.demand, s.reserved = true, true, true
	}
	for key, value := range claim.Labels {
		narrow(requirement.Key(key), []string{value})
	}
	return s
}

// stands returns the claims that a replica knows, including those that it launched itself, as long as it believes in
// these without having seen them.
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
			// After the end of a reservation the label of the node changes a moment after that of the claim.
			s.reserved = s.reserved || node != nil &&
				node.GetLabels()[karpenterv1.CapacityTypeLabelKey] == catalog.Reserved
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

// afterStep checks what a step of provisioning has launched.
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

// checkOnDemand is K-55: in pools without a spot ratio, on-demand nodes are launched only if a commitment has enough
// left for them. It skips scripts in which markets run out: on-demand may be all there is. A pool that plans on a
// commitment does not foresee what a later pool buys on demand for its spot ratio (docs/known-gaps.md); that does not
// count. A node that may come to run in a reservation is planned for that. One that is dearer than a commitment gets
// only what others leave of it.
func (w *World) checkOnDemand(p *process, now map[types.UID]*stand, made *stand, name string) {
	if made.spot || made.reserved || w.script.hasVerb("run-out", "interrupt") || w.asksForShare(made.pool) {
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
					if own := takes(c, min(known.price(), after.price())); own <= amount(c)+cent {
						used += own
					}
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

// onlyOn reports whether that commitment of a list certainly covers something, and no other one can.
func onlyOn(span committedSpan, s *stand, at int) bool {
	if s.spot || s.reserved {
		return false
	}
	for i, line := range span.lines {
		if within, some := line.covers(s); i == at && !within || i != at && some {
			return false
		}
	}
	return true
}

// asksForShare reports whether the script ever sets a spot ratio for a pool.
func (w *World) asksForShare(pool string) bool {
	return slices.ContainsFunc(w.script.Actions, func(a Action) bool {
		_, share := arguments(a.Args).value("spot-ratio")
		return share && arguments(a.Args).first() == pool
	})
}

// checkBeside is K-55: if a commitment has enough left for a node, the node is launched on it. It allows exceptions:
// steps that could not launch their whole plan, sold-out on-demand offerings, and limits that leave room for fewer
// nodes than pods wait. There, larger nodes may take more pods.
func (w *World) checkBeside(p *process, now map[types.UID]*stand, made *stand, name string) {
	if !made.spot || made.reserved || !w.carriedOut(p) || w.crowded(p, made.pool) {
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

// crowded reports whether the limits of a pool left a step room for fewer nodes than pods wait, including those of
// buffers.
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

// sold reports whether the process believes that the provider sells an on-demand offering like a claim that line
// covers; a nil line covers all. The process may remember for a while that an offering was unavailable.
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
	if s == nil || s.spot || !s.demand {
		return false
	}
	_, some := line.covers(s)
	return some
}

// drawnByOthers returns the most that nodes of another program take of a commitment.
func (w *World) drawnByOthers(line *commitmentLine) (used float64) {
	w.server.All(&corev1.Node{}, func(o client.Object) {
		node := o.(*corev1.Node)
		if each := node.Labels[corev1.LabelInstanceTypeStable]; isOther(node) && each != "" {
			used += max(1, cloud.FullPrice(each))
		}
	})
	return used
}

// carriedOut reports whether a step has launched its whole plan, as far as the outside can tell: every create has
// landed, and caches were fresh enough that the check before each launch objected to none.
func (w *World) carriedOut(p *process) bool {
	return p.err == nil && p.creates == len(p.created) && w.healed && p.since >= w.script.Heal+settled
}

// checkSpotShare is K-55: a step's launches do not raise a pool's share of spot above what it allows, if it allows
// any.
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
			if made.spot && p.sold(made, nil) { // spot is fine if on-demand is sold out
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
