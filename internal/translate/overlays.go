package translate

import (
	"fmt"
	"maps"
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// View is a catalogue as a pool sees it: what overlays are judged on.
type View struct {
	Catalog catalog.Catalog
	Pool    requirement.Set // what the pool requires, its name among it
}

// Why an overlay has no effect; the empty reason is that of one that has.
const (
	OverlayInvalid  = "RuntimeValidation"
	OverlayConflict = "Conflict"
)

// OverlayWhole is the reason of one in effect whose capacity holds for whole types, although it chooses some of their offerings.
const OverlayWhole = "WholeType"

// GateDisabled is the reason of what has no effect because a feature gate is off.
const GateDisabled = "FeatureGateDisabled"

// Verdict is what is to be said about an overlay.
type Verdict struct {
	Reason  string // OverlayInvalid, OverlayConflict, GateDisabled, or "" for one in effect
	Whole   bool   // in effect, and its capacity holds for more offerings than it chooses (K-46)
	Message string // for people
}

// JudgeOverlays returns which overlays are in effect on these views, in the order in which they hold, and a verdict on
// each by name. An overlay has no effect at all when one of the same weight, before it by name, changes the same price or
// the same resource of the same offering anywhere (of overlays that contradict each other none would be right for sure,
// but the first at least always is the same one)).
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
				whole = fmt.Sprintf("spec.requirements choose %d of the %d offerings of instance type %s, and spec.capacity "+
					"is expected of all of them, as an instance type has one capacity: a node of another offering would "+
					"lack it", n, len(t.Offerings), t.Name)
			}
			for _, rival := range rivals {
				if what := o.clash(rival, view.Catalog, t, chosen); what != "" {
					return Verdict{Reason: OverlayConflict, Message: fmt.Sprintf("NodeOverlay %s, of the same weight %d, changes %s of "+
						"instance type %s too: give one of the two another spec.weight, or requirements that keep them apart",
						rival.Name, o.Weight, what, t.Name)}
				}
			}
		}
	}
	if !found && len(views) > 0 {
		return Verdict{Message: "spec.requirements choose no instance type that any pool's node class offers at present"}
	}
	return Verdict{Whole: whole != "", Message: whole}
}

// Changes returns what of an offered type the overlays change, those that are about the pool: the price of an offering, the
// capacity.
func Changes(c catalog.Catalog, overlays []Overlay, t catalog.Type) (price, capacity bool) {
	for _, o := range overlays {
		if _, n := o.chooses(c, t); n > 0 {
			price, capacity = price || o.Price != nil, capacity || len(o.Capacity) > 0
		}
	}
	return price, capacity
}

// SetOverlaid writes on a claim that is to be made, which has annotations, that NodeOverlays changed the price or the capacity
// of instance types that it may become (K-47).
func SetOverlaid(claim *karpenterv1.NodeClaim, price, capacity bool) {
	if price {
		claim.Annotations[karpenterv1.PriceOverlayAppliedAnnotationKey] = "true"
	}
	if capacity {
		claim.Annotations[karpenterv1.CapacityOverlayAppliedAnnotationKey] = "true"
	}
}

// clash names what both overlays change of a type; "" for nothing. chosen are the offerings that o chooses.
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
