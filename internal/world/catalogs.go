package world

import (
	"fmt"
	"maps"
	"reflect"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// offer is a catalogue that at least one node class has.
type offer struct {
	catalog   catalog.Catalog
	index     *catalog.Index
	prospects map[string]*translate.Prospect // by requirements of claims; nil if nothing satisfies them
	limited   []string                       // resources in which types state limits for volumes, sorted
	// corrected are the offers after NodeOverlays have changed this one, by the names of the overlays.
	corrected map[string]*offer
	covered   *catalog.Index // index with what commitments cover; nil until it is asked for
}

// with returns the index with what commitments cover.
func (o *offer) with(commitments []cluster.Commitment) *catalog.Index {
	if len(commitments) == 0 {
		return o.index
	}
	if o.covered == nil {
		sets := make([]requirement.Set, len(commitments))
		for i, c := range commitments {
			sets[i] = c.Requirements
		}
		o.covered = o.index.Covered(sets)
	}
	return o.covered
}

// SetCommitments replaces the commitments; they are in order of use (K-55).
func (s *Store) SetCommitments(list []cluster.Commitment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(s.config.Commitments, list) {
		return
	}
	s.config.Commitments = list
	for _, o := range s.offers {
		o.covered = nil
		for _, corrected := range o.corrected {
			corrected.covered = nil
		}
	}
	for name := range s.pools {
		s.poolChanged(name)
	}
	s.changed()
}

// maxProspects bounds the prospects kept with a catalogue. Claims of one round share a few sets of requirements.
const maxProspects = 1024

func (o *offer) prospect(claim *karpenterv1.NodeClaim) *translate.Prospect {
	set, _, _ := translate.Requirements(claim.Spec.Requirements)
	key := set.String()
	known, found := o.prospects[key]
	if found {
		return known
	}
	if len(o.prospects) >= maxProspects {
		clear(o.prospects)
	}
	fresh, _ := translate.NewProspect(o.index, set)
	o.prospects[key] = fresh
	return fresh
}

func classOf(ref *karpenterv1.NodeClassReference) ClassRef {
	if ref == nil {
		return ClassRef{}
	}
	return ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
}

// SetCatalog sets what a node class offers. A catalogue without types removes the known one: pools of the class are
// then blocked. An equal catalogue costs a comparison, the very same one hardly anything. Each distinct one is
// compiled once, however many classes and pools use it. An invalid catalogue is an error and counts as none.
func (s *Store) SetCatalog(class ClassRef, c catalog.Catalog) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, c := s.offers[class], s.config.Off.unreserved(c)
	if old != nil && sameCatalog(old.catalog, c) {
		return nil // it was valid then
	}
	err := c.Validate()
	if err != nil {
		err = fmt.Errorf("catalogue of node class %s/%s: %w", class.Kind, class.Name, err)
		c = catalog.Catalog{}
	}
	var fresh *offer
	if len(c.Types) > 0 {
		fresh = s.compiled(old, c)
	}
	if fresh == old {
		return err
	}
	if s.offers[class] = fresh; fresh == nil {
		delete(s.offers, class)
	}
	if s.limit(old.limits(), fresh.limits()) {
		s.limitsChanged()
	}
	s.setAttaching()
	s.judgeOverlays()
	for name, e := range s.pools {
		if classOf(e.object.Spec.Template.Spec.NodeClassRef) == class {
			s.poolChanged(name)
		}
	}
	s.catalogChanged(class)
	return err
}

func (o *offer) limits() []string {
	if o == nil {
		return nil
	}
	return o.limited
}

// compiled returns the offer of an equal catalogue if there is one, looking first at the class's own.
func (s *Store) compiled(own *offer, c catalog.Catalog) *offer {
	if own != nil && equalCatalogs(own.catalog, c) {
		return own
	}
	for _, o := range s.offers {
		if o != own && equalCatalogs(o.catalog, c) {
			return o
		}
	}
	return s.compile(c)
}

// sameCatalog reports whether both are the very same value, which is never changed. a is not empty.
func sameCatalog(a, b catalog.Catalog) bool {
	return len(a.Types) == len(b.Types) && &a.Types[0] == &b.Types[0] && maps.Equal(a.WellKnown, b.WellKnown)
}

func equalCatalogs(a, b catalog.Catalog) bool {
	return sameCatalog(a, b) || len(a.Types) == len(b.Types) && maps.Equal(a.WellKnown, b.WellKnown) &&
		reflect.DeepEqual(a.Types, b.Types)
}

// catalogChanged updates the machines of a class after a change of its catalogue: all that wait for their instance,
// and launched ones whose price has changed.
func (s *Store) catalogChanged(class ClassRef) {
	t := newTouched()
	for _, e := range s.claims {
		if classOf(e.object.Spec.NodeClassRef) != class {
			continue
		}
		if value := s.machineOf(e); value != nil && translate.Launched(e.object) {
			labels := value.Labels
			price := translate.Price(s.indexFor(e), value.InstanceType, labels[string(catalog.LabelZone)],
				labels[string(catalog.LabelCapacityType)])
			if price == value.Price {
				continue
			}
		}
		s.touchClaim(e.object.Name, t)
	}
	s.refresh(t)
}

// indexFor returns what the claim's node class offers to its pool, nil for nothing.
func (s *Store) indexFor(e *claimEntry) *catalog.Index {
	if o := s.offerFor(e.object.Spec.NodeClassRef, translate.PoolOf(e.object)); o != nil {
		return o.index
	}
	return nil
}

// machineOf returns the value that represents the claim: its own, or that of its node.
func (s *Store) machineOf(e *claimEntry) *cluster.Node {
	if s.joined(e) {
		return s.nodes[s.nodeOf(e.object)].value
	}
	return e.value
}

// Catalogs returns what node classes offer, before NodeOverlays change it. Callers must not change the values.
func (s *Store) Catalogs() map[ClassRef]catalog.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[ClassRef]catalog.Catalog, len(s.offers))
	for class, o := range s.offers {
		all[class] = o.catalog
	}
	return all
}
