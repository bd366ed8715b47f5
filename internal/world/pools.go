package world

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// maxFreeSlots bounds how many free slots of a pool are listed, whatever its limit. One round of planning never
// launches that many nodes.
const maxFreeSlots = 4096

// poolEntry is what is known of a NodePool.
type poolEntry struct {
	sighting
	object *karpenterv1.NodePool
	base   *cluster.Pool // the object translated, without what comes from elsewhere
	value  *cluster.Pool // what snapshots show; stale while the pool is in Store.stalePools
	slots  []string      // names of the first slots, as many as were needed so far
}

func (e *poolEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

// otherPool is a NodePool of another program. It is kept only to recognize its nodes.
type otherPool struct {
	sighting
	object *karpenterv1.NodePool
}

// seenPool returns what was last seen under a pool's name, ours or not.
func (s *Store) seenPool(name string) *sighting {
	if other, found := s.others[name]; found {
		return &other.sighting
	}
	return s.pools[name].seen()
}

func (s *Store) applyPool(pool *karpenterv1.NodePool) error {
	fresh := sight(pool)
	accepted, replaced := s.accept(s.seenPool(pool.Name), fresh)
	if !accepted {
		return nil
	}
	_, other := s.others[pool.Name]
	if !s.config.Fleet.OwnsPool(pool) {
		s.forgetPool(pool.Name)
		s.others[pool.Name] = otherPool{fresh, pool}
		if !other {
			s.refreshPoolNodes(pool.Name)
		}
		return nil
	}
	delete(s.others, pool.Name)
	e := s.pools[pool.Name]
	if e == nil {
		e = &poolEntry{}
		s.pools[pool.Name] = e
	}
	if replaced {
		e.slots = nil // their names hold the UID
	}
	base, err := translate.Pool(s.space, pool)
	base.RelaxMinValues = s.config.RelaxMinValues
	base.Dormant, base.NoneFirst = base.Static && s.config.Off.Static, s.config.Off.First
	var unread error
	base.NodeOverheadPrice, unread = translate.NodeOverheadPrice(pool, s.config.NodeOverheadPrice)
	_, _, floor := translate.MinNodes(pool)
	asked, room := translate.HeadroomOf(pool)
	s.askHeadroom(pool.Name, asked)
	var unreadRatio error
	base.OnDemandPercent, unreadRatio = translate.OnDemandPercent(pool)
	for _, fault := range []error{unread, unreadRatio, floor, room} {
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("NodePool %s: %w", pool.Name, fault))
		}
	}
	old, oldObject := e.base, e.object
	e.sighting, e.object, e.base = fresh, pool, base
	changed := old == nil || !reflect.DeepEqual(old, base) || !sameClass(oldObject, pool)
	if changed {
		s.poolChanged(pool.Name)
		s.judgeOverlays()
	}
	if changed && old != nil && old.LocalVolumes != base.LocalVolumes || changed && len(s.overlays.inEffect) > 0 ||
		old == nil || !reflect.DeepEqual(oldObject.Spec.Disruption.ConsolidateAfter,
		pool.Spec.Disruption.ConsolidateAfter) {
		s.refreshPoolNodes(pool.Name)
	}
	return err
}

// HasPool reports whether a NodePool of that name exists and is ours.
func (s *Store) HasPool(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pools[name] != nil
}

func sameClass(a, b *karpenterv1.NodePool) bool {
	return classOf(a.Spec.Template.Spec.NodeClassRef) == classOf(b.Spec.Template.Spec.NodeClassRef)
}

func (s *Store) removePool(pool *karpenterv1.NodePool) {
	if !s.ends(s.seenPool(pool.Name), sight(pool)) {
		return
	}
	delete(s.others, pool.Name)
	s.forgetPool(pool.Name)
	s.refreshPoolNodes(pool.Name)
}

// forgetPool removes a pool of ours from the Store; it ignores others.
func (s *Store) forgetPool(name string) {
	e := s.pools[name]
	if e == nil {
		return
	}
	s.poolValues.replace(e.value, nil)
	delete(s.pools, name)
	s.askHeadroom(name, nil)
	s.changed()
	s.judgeOverlays()
	s.refreshPoolNodes(name)
}

// refreshPoolNodes rebuilds the machines of a pool after a change that reaches them.
func (s *Store) refreshPoolNodes(pool string) {
	t := newTouched()
	for _, e := range s.nodes {
		if e.object.Labels[karpenterv1.NodePoolLabelKey] == pool {
			s.touchNode(e.object.Name, t)
		}
	}
	for _, e := range s.claims {
		if translate.PoolOf(e.object) == pool {
			s.touchClaim(e.object.Name, t)
		}
	}
	s.refresh(t)
}

// poolChanged notes that the pool's value must be rebuilt. The next snapshot does it once.
func (s *Store) poolChanged(name string) {
	s.stalePools[name] = struct{}{}
	s.changed()
}

// slotsChanged notes that a claim of that name has come or gone. It may be a slot of any pool.
func (s *Store) slotsChanged(claim string) {
	for name, e := range s.pools {
		if e.base.Slots() != limit.None && strings.HasPrefix(claim, name+"-") {
			s.poolChanged(name)
		}
	}
}

func (s *Store) rebuildPools() {
	for name := range s.stalePools {
		e := s.pools[name]
		if e == nil {
			continue
		}
		value := *e.base
		value.Used = s.usage[name].counts(e.base)
		value.PriceTolerance = s.config.PriceTolerance
		value.FreeSlots = s.freeSlots(e, e.base.Slots())
		if value.Static {
			value.SurgeSlots = s.freeSlots(e, value.Limits.SurgeSlots(value.Replicas, s.usage[name].all.Nodes))
		}
		class := e.object.Spec.Template.Spec.NodeClassRef
		if offer := s.offerFor(class, name); offer != nil {
			value.Catalog = offer.with(s.config.Commitments)
		} else if value.Blocked == "" {
			value.Blocked = "it has no node class"
			if class != nil {
				value.Blocked = fmt.Sprintf("node class %s/%s has no catalogue", class.Kind, class.Name)
			}
		}
		s.poolValues.replace(e.value, &value)
		e.value = &value
	}
	clear(s.stalePools)
}

// freeSlots lists those of n slots in which a claim may be created; nil when the pool has no slots.
func (s *Store) freeSlots(e *poolEntry, n int64) []int {
	if n == limit.None {
		return nil
	}
	return limit.Usable(n, s.usage[e.base.Name].all.Nodes, func(slot int) bool {
		if slot == len(e.slots) {
			e.slots = append(e.slots, limit.SlotName(e.base.Name, e.base.UID, slot))
		}
		return s.claims[e.slots[slot]] != nil
	}, maxFreeSlots)
}

func comparePools(a, b *cluster.Pool) int {
	if a.Weight != b.Weight {
		return int(b.Weight) - int(a.Weight)
	}
	return strings.Compare(a.Name, b.Name)
}
