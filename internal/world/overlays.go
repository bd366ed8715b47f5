package world

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// overlayEntry is what is known of a NodeOverlay.
type overlayEntry struct {
	sighting
	generation int64
	value      translate.Overlay
	fault      error // what cannot be understood; it then has no effect
}

func (e *overlayEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

// overlays are the NodeOverlays, those in effect, and the verdicts on them (P-11).
type overlays struct {
	known    map[string]*overlayEntry
	inEffect []translate.Overlay
	verdicts map[string]translate.Verdict
}

func (s *Store) applyOverlay(object *karpenterv1alpha1.NodeOverlay) error {
	fresh, e := sight(object), s.overlays.known[object.Name]
	if accepted, _ := s.accept(e.seen(), fresh); !accepted {
		return nil
	}
	value, err := translate.NewOverlay(object)
	s.overlays.known[object.Name] = &overlayEntry{sighting: fresh, generation: object.Generation, value: value,
		fault: err}
	s.judgeOverlays()
	return err
}

func (s *Store) removeOverlay(object *karpenterv1alpha1.NodeOverlay) {
	if s.ends(s.overlays.known[object.Name].seen(), sight(object)) {
		delete(s.overlays.known, object.Name)
		s.judgeOverlays()
	}
}

// judgeOverlays decides anew which overlays are in effect, after a change of an overlay, a catalogue or a pool. If the
// same overlays are in effect unchanged, nothing else needs an update.
func (s *Store) judgeOverlays() {
	if s.config.Off.Overlays {
		s.overlays.verdicts = s.switchedOff()
		return
	}
	var valid []translate.Overlay
	for _, name := range slices.Sorted(maps.Keys(s.overlays.known)) {
		if e := s.overlays.known[name]; e.fault == nil {
			valid = append(valid, e.value)
		}
	}
	inEffect, verdicts := translate.JudgeOverlays(valid, s.overlayViews(valid))
	for name, e := range s.overlays.known {
		if e.fault != nil {
			verdicts[name] = translate.Verdict{Reason: translate.OverlayInvalid,
				Message: strings.ReplaceAll(e.fault.Error(), "\n", "; ")}
		}
	}
	same := reflect.DeepEqual(s.overlays.inEffect, inEffect)
	s.overlays.inEffect, s.overlays.verdicts = inEffect, verdicts
	if same {
		return
	}
	for _, o := range s.offers {
		o.corrected = nil
	}
	for name := range s.pools {
		s.poolChanged(name)
	}
	for class := range s.offers {
		s.catalogChanged(class)
	}
}

// overlayViews lists the catalogues as pools see them, one for all pools that share a catalogue and the overlays that
// concern them.
func (s *Store) overlayViews(list []translate.Overlay) []translate.View {
	if len(list) == 0 {
		return nil
	}
	type view struct {
		offer *offer
		names string
	}
	seen := map[view]bool{}
	var views []translate.View
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		e := s.pools[name]
		o := s.offers[classOf(e.object.Spec.Template.Spec.NodeClassRef)]
		if o == nil {
			continue
		}
		_, names := concerned(list, o.catalog, e.base.Requirements)
		if key := (view{o, names}); !seen[key] {
			seen[key] = true
			views = append(views, translate.View{Catalog: o.catalog, Pool: e.base.Requirements})
		}
	}
	return views
}

// concerned returns the overlays that concern a pool, and their names as one text.
func concerned(list []translate.Overlay, c catalog.Catalog, pool requirement.Set) ([]translate.Overlay, string) {
	var own []translate.Overlay
	var names []string
	for _, o := range list {
		if o.Concerns(c, pool) {
			own, names = append(own, o), append(names, o.Name)
		}
	}
	return own, strings.Join(names, "/")
}

// offerFor returns what a node class offers to a pool, after overlays; nil when it offers nothing. An unknown pool has
// no labels.
func (s *Store) offerFor(ref *karpenterv1.NodeClassReference, pool string) *offer {
	base := s.offers[classOf(ref)]
	own, names := s.overlaysOn(base, pool)
	if len(own) == 0 {
		return base
	}
	if base.corrected[names] == nil {
		if base.corrected == nil {
			base.corrected = map[string]*offer{}
		}
		base.corrected[names] = s.compile(translate.Correct(base.catalog, own))
	}
	return base.corrected[names]
}

func (s *Store) overlaysOn(base *offer, pool string) ([]translate.Overlay, string) {
	if base == nil || len(s.overlays.inEffect) == 0 {
		return nil, ""
	}
	set := requirement.NewSet()
	if e := s.pools[pool]; e != nil {
		set = e.base.Requirements
	}
	return concerned(s.overlays.inEffect, base.catalog, set)
}

// Corrected returns a catalogue of the claim's node class after the overlays for the claim's pool. It is for
// launching: what planning found cheapest must be cheapest there too.
func (s *Store) Corrected(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, pool := claim.Spec.NodeClassRef, translate.PoolOf(claim)
	base, c := s.offers[classOf(ref)], s.config.Off.unreserved(c)
	own, _ := s.overlaysOn(base, pool)
	if len(own) == 0 {
		return c
	}
	if equalCatalogs(base.catalog, c) {
		return s.offerFor(ref, pool).catalog
	}
	return translate.Correct(c, own)
}

// Overlaid reports whether overlays change the price, and whether they change the capacity, of any of these instance
// types, for a pool of that node class (K-47).
func (s *Store) Overlaid(ref *karpenterv1.NodeClassReference, pool string, types []string) (price, capacity bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := s.offers[classOf(ref)]
	own, _ := s.overlaysOn(base, pool)
	if len(own) == 0 {
		return false, false
	}
	for _, t := range base.catalog.Types {
		if slices.Contains(types, t.Name) {
			p, c := translate.Changes(base.catalog, own, t)
			price, capacity = price || p, capacity || c
		}
	}
	return price, capacity
}

// OverlayVerdict returns the verdict on a NodeOverlay, and the generation of the object it refers to; false if the
// Store has not seen the object.
func (s *Store) OverlayVerdict(name string) (translate.Verdict, int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.overlays.known[name]
	if e == nil {
		return translate.Verdict{}, 0, false
	}
	return s.overlays.verdicts[name], e.generation, true
}
