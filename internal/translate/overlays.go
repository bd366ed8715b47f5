package translate

import (
	"fmt"
	"maps"
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// View is a catalogue as a pool sees it. Overlays are judged on views.
type View struct {
	Catalog catalog.Catalog
	Pool    requirement.Set // what the pool requires, with its name
}

// Why an overlay has no effect; the reason is empty if it has one.
const (
	OverlayInvalid  = "RuntimeValidation"
	OverlayConflict = "Conflict"
)

// OverlayWhole is the reason of an overlay in effect that chooses only some offerings of a type, but changes the
// capacity of the whole type.
const OverlayWhole = "WholeType"

// GateDisabled is the reason if a feature gate is off.
const GateDisabled = "FeatureGateDisabled"

// Verdict is the result of judging an overlay.
type Verdict struct {
	Reason  string // OverlayInvalid, OverlayConflict, GateDisabled, or "" for one in effect
	Whole   bool   // in effect, and its capacity holds for more offerings than it chooses (K-46)
	Message string // for people
}

// JudgeOverlays returns the overlays that are in effect on these views, in order of precedence, and a verdict on each
// by name. An overlay has no effect at all if an earlier one by name, of the same weight, changes the same price or
// resource of the same offering on any view. Neither of the two is surely right, but the first by name is at least
// always the same one.
func JudgeOverlays(overlays []Overlay, views []View) ([]Overlay, map[string]Verdict) {
	var accepted []Overlay
	verdicts := map[string]Verdict{}
	for _, o := range slices.SortedFunc(slices.Values(overlays), byWeight) {
		verdict := o.judge(accepted, views)
		verdicts[o.Name] = verdict
		if verdict.Reason == "" {
			accepted = append(accepted, o)
		}
	}
	return accepted, verdicts
}

func (o Overlay) judge(accepted []Overlay, views []View) Verdict {
	found, whole := false, ""
	for _, view := range views {
		if !o.Concerns(view.Catalog, view.Pool) {
			continue
		}
		var rivals []Overlay
		for _, other := range accepted {
			if other.Weight == o.Weight && other.Concerns(view.Catalog, view.Pool) {
				rivals = append(rivals, other)
			}
		}
		for _, t := range view.Catalog.Types {
			chosen, n := o.chooses(view.Catalog, t)
			if n == 0 {
				continue
			}
			found = true
			if n < len(t.Offerings) && len(o.Capacity) > 0 && whole == "" {
				whole = fmt.Sprintf(
					"spec.requirements choose %d of the %d offerings of instance type %s, and spec.capacity "+
						"is expected of all of them, as an instance type has one capacity: a node of another offering would "+
						"lack it", n, len(t.Offerings), t.Name)
			}
			for _, rival := range rivals {
				if what := o.clash(rival, view.Catalog, t, chosen); what != "" {
					return Verdict{Reason: OverlayConflict,
						Message: fmt.Sprintf("NodeOverlay %s, of the same weight %d, changes %s of "+
							"instance type %s too: give one of the two another spec.weight, or requirements that keep them apart",
							rival.Name, o.Weight, what, t.Name)}
				}
			}
		}
	}
	if !found && len(views) > 0 {
		return Verdict{
			Message: "spec.requirements choose no instance type that any pool's node class offers at present",
		}
	}
	return Verdict{Whole: whole != "", Message: whole}
}

// Changes reports whether the overlays change the price of an offering of a type, and whether they change its
// capacity. All of them must concern the pool.
func Changes(c catalog.Catalog, overlays []Overlay, t catalog.Type) (price, capacity bool) {
	for _, o := range overlays {
		if _, n := o.chooses(c, t); n > 0 {
			price, capacity = price || o.Price != nil, capacity || len(o.Capacity) > 0
		}
	}
	return price, capacity
}

// SetOverlaid writes onto a new claim that NodeOverlays changed the price or the capacity of instance types that it
// may get (K-47). The claim's annotations must not be nil.
func SetOverlaid(claim *karpenterv1.NodeClaim, price, capacity bool) {
	if price {
		claim.Annotations[karpenterv1.PriceOverlayAppliedAnnotationKey] = "true"
	}
	if capacity {
		claim.Annotations[karpenterv1.CapacityOverlayAppliedAnnotationKey] = "true"
	}
}

// clash returns what both overlays change of a type; "" for nothing. chosen are the offerings that o chooses.
func (o Overlay) clash(rival Overlay, c catalog.Catalog, t catalog.Type, chosen []bool) string {
	both, n := rival.chooses(c, t)
	if n == 0 {
		return ""
	}
	for i := range both {
		if both[i] && chosen[i] && o.Price != nil && rival.Price != nil {
			return "the price"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Capacity)) {
		if _, set := rival.Capacity[name]; set {
			return name
		}
	}
	return ""
}
