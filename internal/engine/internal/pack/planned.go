package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// planned is a node of a pool that this round plans. It is no instance type but what it may still become.
type planned struct {
	bin
	outlook
	used    resources.Vector // what its pods request
	labels  requirement.Set  // demands of the pods, for the claim
	held    resources.Vector // what the plan counts for it against resource limits
	slot    int
	scratch catalog.Bits // for the next narrowing
}

// open plans a new node for the pod, in the first pool that can have one (P-10).
func (s *solver) open(pod *cluster.Pod, info *shape) bool {
	for _, later := range info.sweeps() {
		for i, p := range s.pools {
			if len(info.ways[i]) > 0 && p.mayGrow() && info.isLater(p) == later && s.openIn(p, pod, info) {
				return true
			}
		}
	}
	return false
}

// openIn plans a new node of a pool for the pod, if one can be had.
func (s *solver) openIn(p *pool, pod *cluster.Pod, info *shape) bool {
	if p.even != nil && s.openOf(p.even, p, pod, info) {
		return true
	}
	return s.openOf(p.offers, p, pod, info)
}

// openOf is openIn for a node of one of these offers.
func (s *solver) openOf(offers catalog.Bits, p *pool, pod *cluster.Pod, info *shape) bool {
	if !s.fitsAlone(p, info) {
		return false
	}
	b, index := s.addPlanned(p, offers)
	if s.tryPlanned(index, []*cluster.Pod{pod}, info) != topology.Yes {
		s.dropPlanned()
		return false
	}
	s.opened(b)
	return true
}

// mayGrow reports whether the node limits of the pool and of the cluster admit one more (L-10, L-11, K-53).
func (p *pool) mayGrow() bool {
	if p.closed || p.ceiling.Left() == 0 {
		return false
	}
	if _, ok := p.Limits.CheckNodes(p.used.Nodes); !ok {
		return false
	}
	return p.FreeSlots == nil || len(p.slots) > 0
}

// admitted is how many more nodes the node limits of pool and cluster admit, below 0 when any number.
func (p *pool) admitted() int {
	left := p.Limits.NodesLeft(p.used.Nodes)
	if p.FreeSlots != nil && (left < 0 || len(p.slots) < left) {
		left = len(p.slots)
	}
	if all := int(p.ceiling.Left()); all >= 0 && (left < 0 || all < left) {
		left = all
	}
	return left
}

// fitsAlone is a cheap look before a bin is opened: some way of the shape has room on an empty node.
func (s *solver) fitsAlone(p *pool, info *shape) bool {
	return slices.ContainsFunc(info.ways[p.index], func(w way) bool {
		left := w.offers.Clone()
		return p.keepFitting(info.Requests, left)
	})
}

// addPlanned adds a node of one of these offers of a pool, and returns it with the index of its bin.
func (s *solver) addPlanned(p *pool, offers catalog.Bits) (*planned, int) {
	b := &planned{outlook: outlook{pool: p, offers: offers, custom: p.custom}, slot: plan.NoSlot}
	s.planned = append(s.planned, b)
	if s.topology.Constrained() {
		s.topology.AddBin(b.labelValue, s.counts(&b.outlook))
	}
	return b, s.bins() - 1
}

// dropPlanned takes back the node just added, on which nothing was placed.
func (s *solver) dropPlanned() {
	s.planned = s.planned[:len(s.planned)-1]
	if s.topology.Constrained() {
		s.topology.DropBin()
	}
}

// opened counts a planned node that has got its first pods.
func (s *solver) opened(b *planned) {
	b.pool.used.Nodes++
	*b.pool.ceiling = b.pool.ceiling.Plus(1)
	if len(b.pool.slots) > 0 {
		b.slot, b.pool.slots = b.pool.slots[0], b.pool.slots[1:]
	}
}

// tryPlanned places pods of one shape, all or none, on a planned node if some offering is left that fits all its pods and
// these. Only pods of a plain shape may come more than one at a time.
func (s *solver) tryPlanned(index int, pods []*cluster.Pod, info *shape) topology.Verdict {
	b := s.planned[index-len(s.existing)]
	ways := info.ways[b.pool.index]
	if len(ways) == 0 || !b.portsFree(info.HostPorts) {
		return topology.Never
	}
	want := b.used.Plus(info.Requests.Times(len(pods)))
	verdict := topology.Never
	for _, w := range ways {
		custom, ok := mergeCustom(b.custom, w.custom)
		if !ok {
			continue
		}
		left := append(b.scratch[:0], b.offers...)
		b.scratch = left
		w.offers.AndTo(left)
		if len(b.pods) == 0 {
			b.pool.dropUsedUp(left)
		}
		if !b.pool.keepFitting(want, left) {
			continue
		}
		fixed, answer := s.chooseDomains(index, info, left, &custom)
		if answer == topology.Now {
			verdict = topology.Now
		}
		if answer != topology.Yes {
			continue
		}
		custom, said := s.decideCounting(index, info, left, custom)
		cheapest := b.pool.settle(b, left)
		if cheapest < 0 {
			continue
		}
		s.commit(index, pods, info, commitment{labels: w.labels.And(said), used: want, offers: left, custom: custom,
			cheapest: cheapest, fixed: fixed})
		return topology.Yes
	}
	return verdict
}

// fix is a decision on an open label of a bin.
type fix struct {
	key    int
	domain int32
}

// chooseDomains decides every open label of the bin that matters with this pod on it (see Tracker.MustDecide), the least crowded
// allowed domain first and the cheapest among equals, and narrows left and custom accordingly.
func (s *solver) chooseDomains(index int, info *shape, left catalog.Bits, custom *requirement.Set) ([]fix, topology.Verdict) {
	b := s.planned[index-len(s.existing)]
	var fixed []fix
	for key, name := range s.topology.KeyNames() {
		ruled, domain := slices.Contains(info.rules.Keys, key), s.topology.DomainOf(key, index)
		if domain != topology.Open {
			if verdict := s.topology.Allowed(info.rules, key, domain); ruled && verdict != topology.Yes {
				return nil, verdict
			}
			continue
		}
		if !ruled && len(b.pods) > 0 {
			continue // looked at when the bin was opened
		}
		without := requirement.Absent(requirement.Key(name))
		if ruled && b.mayLeaveOut(without, *custom) && s.topology.Allowed(info.rules, key, topology.Lacks) == topology.Yes {
			*custom = custom.With(without)
			fixed = append(fixed, fix{key, topology.Lacks})
			continue
		}
		now := outlook{pool: b.pool, offers: left, custom: *custom}
		values := now.candidates(name)
		if !ruled && !s.topology.MustDecide(key, index, values) {
			continue
		}
		value, verdict := s.leastCrowded(info, key, values)
		if verdict != topology.Yes {
			return nil, verdict
		}
		only := requirement.OneOf(requirement.Key(name), value)
		if b.pool.Catalog.Known(only.Key()) {
			b.pool.Catalog.Compatible(only).AndTo(left)
		} else {
			*custom = custom.With(only)
		}
		fixed = append(fixed, fix{key, s.topology.Domain(key, value)})
	}
	return fixed, topology.Yes
}

// mayLeaveOut reports whether a label that the provider does not decide may be left out of the node.
func (b *planned) mayLeaveOut(absent requirement.Requirement, custom requirement.Set) bool {
	return !b.pool.Catalog.Known(absent.Key()) && custom.Get(absent.Key()).AllowsAbsent()
}

func (s *solver) leastCrowded(info *shape, key int, values []string) (string, topology.Verdict) {
	best, crowd, verdict := "", int32(0), topology.Never
	for _, value := range values {
		domain := s.topology.Domain(key, value)
		switch s.topology.Allowed(info.rules, key, domain) {
		case topology.Now:
			if verdict == topology.Never {
				verdict = topology.Now
			}
		case topology.Yes:
			if c := s.topology.Crowd(info.rules, key, domain); verdict != topology.Yes || c < crowd {
				best, crowd, verdict = value, c, topology.Yes
			}
		}
	}
	return best, verdict
}

// commitment is what placing a pod changes on a planned node.
type commitment struct {
	labels   requirement.Set // demands that the claim has to carry
	used     resources.Vector
	offers   catalog.Bits
	custom   requirement.Set
	cheapest int
	fixed    []fix
}

// followLabels tells the tracker where the node stands, or may come to stand, by labels of the pool's own whose values nobody
// lists: each pod may ask for another one.
func (s *solver) followLabels(index int) {
	b := s.planned[index-len(s.existing)]
	for key, name := range s.topology.KeyNames() {
		if s.topology.DomainOf(key, index) != topology.Open || b.pool.Catalog.Known(requirement.Key(name)) {
			continue
		}
		if value, decided := b.labelValue(name); decided && value != "" {
			s.topology.Fix(key, index, s.topology.Domain(key, value))
		} else if decided {
			s.topology.Fix(key, index, topology.Lacks)
		} else {
			s.topology.MayStand(index, key, b.candidates(name), true)
		}
	}
}

func (s *solver) commit(index int, pods []*cluster.Pod, info *shape, c commitment) {
	b := s.planned[index-len(s.existing)]
	old := b.offers
	b.offers = c.offers
	b.scratch = nil
	if len(b.pods) > 0 {
		b.scratch = old // the bin's own; before the first pod it is the pool's
	}
	b.custom = c.custom
	b.labels = b.labels.And(c.labels)
	first := len(b.pods) == 0
	if first {
		b.pool.take(c.cheapest)
	}
	if s.topology.Constrained() && first {
		s.topology.Reconsider(index, s.counts(&b.outlook))
	}
	for _, f := range c.fixed {
		s.topology.Fix(f.key, index, f.domain)
		name := requirement.Key(s.topology.KeyNames()[f.key])
		if f.domain == topology.Lacks {
			b.labels = b.labels.With(requirement.Absent(name))
			continue
		}
		value, _ := b.labelValue(string(name))
		b.labels = b.labels.With(requirement.OneOf(name, value))
	}
	if s.topology.Constrained() {
		s.followLabels(index)
		s.topology.Settle(info.rules, index, s.counts(&b.outlook))
	}
	b.used = c.used
	capacity := b.pool.Catalog.Types[b.pool.Catalog.Offers[c.cheapest].Type].Capacity
	if b.pool.Limits.HasResources() {
		b.pool.used.Capacity = b.pool.used.Capacity.Plus(capacity).Minus(b.held)
		b.held = capacity
	}
	s.placed(index, &b.bin, pods, info)
	if first && s.topology.Constrained() {
		s.topology.Occupy(index)
	}
}
