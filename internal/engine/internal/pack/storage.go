package pack

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// storageRule: a pod whose claims have no volume yet goes where there are free volumes for them (K-59), or where the
// driver has enough left to make them (K-58). Like kube-scheduler it takes the smallest free volume that fits, and has
// one made only if there is none. What the plan has given away is gone for the next pod. The scheduler does not count
// that, so some pod would find nothing in the end.
//
// The capacity of a node that is still to come is what the capacities of its zone or the like say, else what its
// instance type states. Otherwise it is unknown: then a node may be tried, and the brake counts how often that was in
// vain.
type storageRule struct{}

func (storageRule) reads() []string { return []string{"NewVolumes"} }

// storage is what a round has given away.
type storage struct {
	taken  []int64        // by position in Snapshot.Capacities: bytes
	given  []bool         // by position in Snapshot.FreeVolumes
	claims map[string]int // claims that several pods use: the position of their volume, or made
	reach  map[reached]catalog.Bits
}

// made is the position of a volume that is to be made.
const made = -1

// reached is a place of a capacity or a volume, and a pool whose new nodes may reach it.
type reached struct {
	pool    *pool
	volume  bool
	at, way int
}

func newStorage(s *cluster.Snapshot) storage {
	return storage{taken: make([]int64, len(s.Capacities)), given: make([]bool, len(s.FreeVolumes)),
		claims: map[string]int{}, reach: map[reached]catalog.Bits{}}
}

// take is what a pod's new volumes would take.
type take struct {
	volumes    []int   // positions in Snapshot.FreeVolumes
	capacities []int   // positions in Snapshot.Capacities, one for each volume that is made of one
	sizes      []int64 // of these
	claims     map[string]int
	stated     resources.Vector // what volumes take of what the instance type states
	unknown    []string         // classes whose capacity on the node is unknown
}

// volume returns the smallest free volume for a claim among those that can be reached; made if there is none.
func (s *solver) volume(t *take, want *cluster.NewVolume, reaches func(int) bool) int {
	best := made
	for i := range s.snapshot.FreeVolumes {
		v := &s.snapshot.FreeVolumes[i]
		if s.storage.given[i] || slices.Contains(t.volumes, i) || !v.Serves(want) || !reaches(i) {
			continue
		}
		if best == made || v.Size < s.snapshot.FreeVolumes[best].Size {
			best = i
		}
	}
	return best
}

// capacity returns the capacity with the most left among those that can be reached and are sufficient; made if there
// is none. known is whether any can be reached.
func (s *solver) capacity(t *take, want *cluster.NewVolume, reaches func(int) bool) (best int, known bool) {
	best = made
	most := int64(0)
	for i := range s.snapshot.Capacities {
		c := &s.snapshot.Capacities[i]
		if c.Class != want.Class || !reaches(i) {
			continue
		}
		known = true
		taken := s.storage.taken[i]
		for j, other := range t.capacities {
			if other == i {
				taken = resources.Sum(taken, t.sizes[j])
			}
		}
		if left := max(c.Capacity, c.Most) - taken; c.Sufficient(want.Size, taken) && (best == made || left > most) {
			best, most = i, left
		}
	}
	return best, known
}

func (t *take) give(want *cluster.NewVolume, volume, capacity int) {
	if volume != made {
		t.volumes = append(t.volumes, volume)
	} else if capacity != made {
		t.capacities, t.sizes = append(t.capacities, capacity), append(t.sizes, want.Size)
	}
	if want.Claim != "" {
		if t.claims == nil {
			t.claims = map[string]int{}
		}
		t.claims[want.Claim] = volume
	}
}

// give takes what a pod's volumes take out of what is left.
func (s *solver) give(b *bin, t *take) {
	for _, i := range t.volumes {
		s.storage.given[i] = true
	}
	for j, i := range t.capacities {
		s.storage.taken[i] = resources.Sum(s.storage.taken[i], t.sizes[j])
	}
	for claim, volume := range t.claims {
		s.storage.claims[claim] = volume
		b.claims = append(b.claims, claim)
	}
}

func (storageRule) refuses(s *solver, n *existing, a *attempt) topology.Verdict {
	if len(a.info.NewVolumes) == 0 {
		return topology.Yes
	}
	a.take = take{}
	for i := range a.info.NewVolumes {
		want := &a.info.NewVolumes[i]
		if volume, planned := s.storage.claims[want.Claim]; planned && want.Claim != "" {
			if !slices.Contains(n.claims, want.Claim) &&
				(volume == made || !s.snapshot.FreeVolumes[volume].ReachedFrom(n.node)) {
				return topology.Now
			}
			continue
		}
		if !s.findOn(n, want, a) {
			return topology.Never
		}
	}
	return topology.Yes
}

// findOn finds a volume for a claim on an existing node. What a node will have that is not initialized is unknown. A
// node that was initialized a moment ago has yet to publish it, and keeps the pods that it was launched for.
func (s *solver) findOn(n *existing, want *cluster.NewVolume, a *attempt) bool {
	t, promised := &a.take, a.pods[0].Promised
	volume := s.volume(t, want, func(i int) bool { return s.snapshot.FreeVolumes[i].ReachedFrom(n.node) })
	if volume != made {
		t.give(want, volume, made)
		return true
	}
	isOpen := !n.node.Initialized || n.node.Fresh && promised != "" && (promised == n.node.Name ||
		promised == n.node.Claim)
	if !want.Made {
		pool := s.snapshot.Pool(n.node.Pool)
		t.give(want, made, made)
		return isOpen && pool != nil && pool.LocalVolumes
	}
	capacity, known := s.capacity(t, want, func(i int) bool { return n.node.Reaches(&s.snapshot.Capacities[i]) })
	t.give(want, made, capacity)
	switch {
	case known || !isOpen:
		return capacity != made
	case want.Stated == nil:
		return true
	}
	t.stated = t.stated.Plus(want.Stated)
	return t.stated.Fits(n.free)
}

func (storageRule) placedOn(s *solver, n *existing, a *attempt) {
	if len(a.info.NewVolumes) > 0 {
		s.give(&n.bin, &a.take)
		n.free = n.free.Minus(a.take.stated)
	}
}

func (storageRule) narrows(s *solver, n *planned, a *attempt) topology.Verdict {
	if len(a.info.NewVolumes) == 0 {
		return topology.Yes
	}
	a.take = take{}
	for i := range a.info.NewVolumes {
		want := &a.info.NewVolumes[i]
		if volume, planned := s.storage.claims[want.Claim]; planned && want.Claim != "" {
			if slices.Contains(n.claims, want.Claim) {
				continue
			}
			if volume == made {
				return topology.Now
			}
			if s.reachOfVolume(n.pool, volume).AndTo(a.offers); a.offers.Empty() {
				return topology.Now
			}
			continue
		}
		if !s.findIn(n, a, want) {
			return topology.Never
		}
	}
	return topology.Yes
}

// findIn finds a volume for a claim on a planned node, and leaves only offers that have it. The cheapest offer with a
// volume decides which one it is.
func (s *solver) findIn(n *planned, a *attempt, want *cluster.NewVolume) bool {
	for left := a.offers.Clone(); !left.Empty(); left.Remove(left.First()) {
		offer := left.First()
		volume := s.volume(&a.take, want, func(i int) bool { return s.reachOfVolume(n.pool, i).Has(offer) })
		if volume != made {
			a.take.give(want, volume, made)
			s.reachOfVolume(n.pool, volume).AndTo(a.offers)
			return true
		}
		if !want.Made {
			if n.pool.LocalVolumes {
				a.take.give(want, made, made)
				return true
			}
			continue
		}
		capacity, known := s.capacity(&a.take, want,
			func(i int) bool { return s.reachOfCapacity(n.pool, i).Has(offer) })
		if capacity != made {
			a.take.give(want, made, capacity)
			s.reachOfCapacity(n.pool, capacity).AndTo(a.offers)
			return true
		}
		if !known && s.findUnknown(n, a, want, offer) {
			return true
		}
	}
	return false
}

// findUnknown has a volume made on a planned node with an offer whose capacity is unknown: as its type states, else as
// a try.
func (s *solver) findUnknown(n *planned, a *attempt, want *cluster.NewVolume, offer int) bool {
	if want.Stated == nil && s.heldFor(n.pool, want.Class) != "" {
		return false
	}
	offers := a.offers.Minus(s.knownFrom(n.pool, want.Class))
	stated := a.take.stated.Plus(want.Stated)
	if !n.pool.keepFitting(n.used, a.want.Plus(stated), offers) || !offers.Has(offer) {
		return false
	}
	offers.AndTo(a.offers)
	a.take.give(want, made, made)
	if a.take.stated = stated; want.Stated == nil {
		a.take.unknown = append(a.take.unknown, want.Class)
	}
	return true
}

func (storageRule) placedIn(s *solver, n *planned, a *attempt) {
	if len(a.info.NewVolumes) == 0 {
		return
	}
	s.give(&n.bin, &a.take)
	n.used = n.used.Plus(a.take.stated)
	n.unknown = append(n.unknown, a.take.unknown...)
}

// opens: a claim whose class makes no volumes leaves nothing of a pool, unless new nodes reach a free volume or the
// pool says that its nodes bring some.
func (storageRule) opens(s *solver, p *pool, info *shape, ways []way) []way {
	for i := range info.NewVolumes {
		if want := &info.NewVolumes[i]; !want.Made && !p.LocalVolumes && s.freeFrom(p, want).Empty() {
			return nil
		}
	}
	return ways
}

func (storageRule) ties(info *shape) bool { return len(info.NewVolumes) > 0 }

// alike: only shapes without new volumes come in groups.
func (storageRule) alike(text []byte, _ *shape) []byte { return text }

func (storageRule) explains(s *solver, e *explainer) bool {
	for i := range e.shape.NewVolumes {
		want := &e.shape.NewVolumes[i]
		size, free := resources.FormatBytes(want.Size), s.freeFrom(e.pool, want)
		switch {
		case want.Made:
			if !s.explainsMade(e, want, size, free) {
				return false
			}
		case e.pool.LocalVolumes:
		case free.Empty():
			return e.stop(plan.ByPod, cause.VolumeNotFree, want.Class, fmt.Sprintf(
				"StorageClass %s makes no volumes, and no free PersistentVolume of it has %s where the pod can run",
				want.Class, size))
		default:
			if !e.narrow(plan.ByPod, cause.VolumeNotFree, want.Class,
				"a free PersistentVolume of StorageClass "+want.Class+" with "+size, free) {
				return false
			}
			e.suspect(plan.ByPod, cause.VolumeNotFree, "the free PersistentVolumes of StorageClass "+want.Class+
				" are for other pods")
		}
	}
	return true
}

// explainsMade explains a volume that a driver makes: which offers are known to have too little capacity, and what the
// brake holds.
func (s *solver) explainsMade(e *explainer, want *cluster.NewVolume, size string, allowed catalog.Bits) bool {
	known, none := s.knownFrom(e.pool, want.Class), &take{}
	for offer := range e.pool.Catalog.All().All() {
		capacity, _ := s.capacity(none, want, func(i int) bool { return s.reachOfCapacity(e.pool, i).Has(offer) })
		if capacity != made || !known.Has(offer) && (want.Stated == nil || s.states(e.pool, want, offer)) {
			allowed.Add(offer)
		}
	}
	detail := size + " of StorageClass " + want.Class
	if !e.narrow(plan.ByPod, cause.StorageCapacity, want.Class, detail, allowed) {
		return false
	}
	if why := s.heldFor(e.pool, want.Class); why != "" && want.Stated == nil &&
		e.left.Minus(known).Count() == e.left.Count() {
		return e.stop(plan.ByBrake, cause.LaunchesInVain, want.Class, "StorageClass "+want.Class+": "+why)
	}
	return true
}

// states reports whether the type of an offer states enough for a volume.
func (s *solver) states(p *pool, want *cluster.NewVolume, offer int) bool {
	return want.Stated.Fits(p.Catalog.Types[p.Catalog.Offers[offer].Type].Allocatable)
}

// freeFrom returns the offers of a pool from which some free volume for a claim can be reached.
func (s *solver) freeFrom(p *pool, want *cluster.NewVolume) catalog.Bits {
	free := p.noOffers()
	for i := range s.snapshot.FreeVolumes {
		if s.snapshot.FreeVolumes[i].Serves(want) {
			s.reachOfVolume(p, i).OrTo(free)
		}
	}
	return free
}

// knownFrom returns the offers of a pool where it is known what the driver of a class has left.
func (s *solver) knownFrom(p *pool, class string) catalog.Bits {
	known := p.noOffers()
	for i := range s.snapshot.Capacities {
		if s.snapshot.Capacities[i].Class == class {
			s.reachOfCapacity(p, i).OrTo(known)
		}
	}
	return known
}

func (s *solver) reachOfCapacity(p *pool, i int) catalog.Bits {
	if c := &s.snapshot.Capacities[i]; c.Nodes.Enabled {
		return s.reachOf(reached{p, false, i, 0},
			cluster.Alternative{Labels: c.Nodes.Labels, Names: requirement.Any("metadata.name")})
	}
	return p.noOffers()
}

func (s *solver) reachOfVolume(p *pool, i int) catalog.Bits {
	v := &s.snapshot.FreeVolumes[i]
	if len(v.Places) == 0 {
		return p.offers
	}
	all := p.noOffers()
	for j, place := range v.Places {
		s.reachOf(reached{p, true, i, j}, place).OrTo(all)
	}
	return all
}

// reachOf returns the offers of a pool whose nodes are sure to be in a place. If the place goes by a label that the
// pool leaves open, or that only some nodes have, there are none.
func (s *solver) reachOf(key reached, place cluster.Alternative) catalog.Bits {
	if known, found := s.storage.reach[key]; found {
		return known
	}
	offers := key.pool.noOffers()
	if w, possible := key.pool.way(place); possible &&
		!slices.ContainsFunc(slices.Collect(place.Labels.All()), key.pool.leavesOpen) {
		offers = w.offers
	}
	s.storage.reach[key] = offers
	return offers
}

// leavesOpen reports whether nodes of the pool may fail a demand on a label that the provider does not decide.
func (p *pool) leavesOpen(r requirement.Requirement) bool {
	if p.Catalog.Known(r.Key()) {
		return false
	}
	if r.Key() == cluster.LabelHostname {
		return true
	}
	has := p.label(r.Key())
	return !has.And(r).Equal(has)
}

func (p *pool) noOffers() catalog.Bits {
	if p.Catalog == nil {
		return nil
	}
	return catalog.NewBits(len(p.Catalog.Offers))
}
