package world

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// claimEntry is what is known of a NodeClaim, from a watch or only from the applier that has just created it.
type claimEntry struct {
	sighting
	object *karpenterv1.NodeClaim
	value  *cluster.Node // on its way; nil once the claim is joined with a node, which then stands for both
	// promisedUntil is when the Store gives up a claim that no watch has shown; zero once it was seen.
	promisedUntil time.Time
	reserve       resources.Vector // the most it may use before launch, by the applier; nil when unknown
	counted       *share           // its part in its pool's usage
}

func (e *claimEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

// share is what one claim adds to the usage of its pool.
type share struct {
	pool     string
	other    bool // it is another program's
	capacity resources.Vector
}

func (s *Store) applyClaim(claim *karpenterv1.NodeClaim) error {
	fresh, e := sight(claim), s.claims[claim.Name]
	if e != nil && e.sameObject(fresh) && !s.graves.holds(fresh.uid) {
		e.promisedUntil = time.Time{}
		delete(s.promised, claim.Name)
	}
	if !s.putClaim(claim, fresh) {
		return nil
	}
	return translate.ClaimError(claim)
}

// putClaim stores a state of a claim, and reports whether it counts.
func (s *Store) putClaim(claim *karpenterv1.NodeClaim, fresh sighting) bool {
	e := s.claims[claim.Name]
	accepted, replaced := s.accept(e.seen(), fresh)
	if !accepted {
		return false
	}
	if replaced && e.uid != "" { // not the promise of this very claim, made without its UID
		e.reserve, e.promisedUntil = nil, time.Time{}
		delete(s.promised, claim.Name)
	}
	member := e == nil
	t := newTouched()
	if member {
		e = &claimEntry{}
		s.claims[claim.Name] = e
	} else {
		s.unlinkClaim(e.object, t)
	}
	e.sighting, e.object = fresh, claim
	s.linkClaim(claim, t)
	s.refresh(t)
	if member {
		s.slotsChanged(claim.Name)
	}
	return true
}

func (s *Store) removeClaim(claim *karpenterv1.NodeClaim) {
	e := s.claims[claim.Name]
	if s.ends(e.seen(), sight(claim)) {
		s.forgetClaim(e)
	}
}

func (s *Store) forgetClaim(e *claimEntry) {
	name := e.object.Name
	t := newTouched()
	s.unlinkClaim(e.object, t)
	delete(s.claims, name)
	delete(s.promised, name)
	s.setClaim(e, nil)
	s.count(e, nil)
	s.refresh(t)
	s.slotsChanged(name)
	s.nominationsChanged(name)
}

// sourceOf returns the input of translate.Node for the claim, without its Node.
func (s *Store) sourceOf(e *claimEntry) translate.NodeSource {
	from := translate.NodeSource{Claim: e.object, Limited: s.volumes.known.Limited, Stated: s.volumes.known.Stated,
		Attaches: s.attachesOf(e.object.Labels[corev1.LabelInstanceTypeStable])}
	name := translate.PoolOf(e.object)
	if pool := s.pools[name]; pool != nil {
		from.ConsolidateAfter = pool.object.Spec.Disruption.ConsolidateAfter
	}
	if offer := s.offerFor(e.object.Spec.NodeClassRef, name); offer != nil {
		from.Catalog = offer.index
		if !translate.Launched(e.object) {
			from.Prospect = offer.prospect(e.object)
		}
	}
	return from
}

func (s *Store) refreshClaim(e *claimEntry) {
	from := s.sourceOf(e)
	s.recount(e, from.Prospect)
	var value *cluster.Node
	// whether another program's claim becomes a node nobody here knows
	if s.config.Fleet.OwnsClaim(e.object) && !s.joined(e) {
		value = translate.Node(s.space, from)
	}
	if !reflect.DeepEqual(e.value, value) {
		s.setClaim(e, value)
	}
}

// joined reports whether a node stands for the claim.
func (s *Store) joined(e *claimEntry) bool {
	name := s.nodeOf(e.object)
	return name != "" && !s.othersNode(s.nodes[name].object, e)
}

func (s *Store) setClaim(e *claimEntry, value *cluster.Node) {
	s.machines.replace(e.value, value)
	e.value = value
	s.changed()
}

// recount updates the usage of the claim's pool (L-13).
func (s *Store) recount(e *claimEntry, prospect *translate.Prospect) {
	pool := translate.PoolOf(e.object)
	if pool == "" {
		s.count(e, nil)
		return
	}
	capacity := e.reserve
	if e.reserve == nil || translate.Launched(e.object) {
		capacity = translate.ClaimCapacity(s.space, e.object, prospect)
	}
	s.count(e, &share{pool: pool, other: !s.config.Fleet.OwnsClaim(e.object), capacity: capacity})
}

// count replaces the claim's share of a pool's usage; nil for none.
func (s *Store) count(e *claimEntry, fresh *share) {
	old := e.counted
	same := old != nil && fresh != nil && old.pool == fresh.pool && old.other == fresh.other
	if same && old.capacity.Equal(fresh.capacity) {
		return
	}
	if old != nil {
		s.add(old, -1)
	}
	if fresh != nil {
		s.add(fresh, 1)
	}
	e.counted = fresh
}

// add adds a share to the usage of its pool, or with -1 takes it off.
func (s *Store) add(part *share, sign int64) {
	used := s.usage[part.pool]
	used.all.Nodes += sign
	if part.other {
		used.others += sign
	}
	if sign > 0 {
		used.all.Capacity = used.all.Capacity.Plus(part.capacity)
	} else {
		used.all.Capacity = used.all.Capacity.Minus(part.capacity)
	}
	if s.usage[part.pool] = used; used.all.Nodes == 0 {
		delete(s.usage, part.pool)
	}
	s.poolChanged(part.pool)
}

// usage is what the claims of a pool use.
type usage struct {
	all    limit.Usage
	others int64 // how many of the nodes are another program's
}

// counts returns the part of it that counts for the limits of a pool.
func (u usage) counts(pool *cluster.Pool) limit.Usage {
	counted := u.all
	counted.Nodes = pool.Limits.Counted(pool.Kept(), u.all.Nodes-u.others, u.others)
	return counted
}
