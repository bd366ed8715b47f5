package translate

import (
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Prospect is what is known of a node before its instance is known: what all offerings that its claim may still get
// have in common. It is immutable.
type Prospect struct {
	// Labels have the same value whichever offering comes.
	Labels map[string]string
	// Open are the labels that depend on the offering.
	Open requirement.Set
	// Allocatable is the least, Capacity the most of each component over the instance types.
	Allocatable, Capacity resources.Vector
}

// NewProspect returns the prospect of the offerings of index that set allows, false if there are none. Unavailable
// ones count too: a launch may be under way in an offering that has just run out.
func NewProspect(index *catalog.Index, set requirement.Set) (*Prospect, bool) {
	offers := index.All()
	for r := range set.All() {
		if index.Known(r.Key()) {
			index.Compatible(r).AndTo(offers)
		}
	}
	if offers.Empty() {
		return nil, false
	}
	p := &Prospect{Labels: map[string]string{}}
	for i, t := range index.TypesByPrice(offers) {
		p.Capacity = p.Capacity.Max(index.Types[t].Capacity)
		if i == 0 {
			p.Allocatable = slices.Clone(index.Types[t].Allocatable)
		}
		for component := range p.Allocatable {
			p.Allocatable[component] = min(p.Allocatable[component], index.Types[t].Allocatable.At(component))
		}
	}
	p.label(index, set, offers)
	return p, true
}

func (p *Prospect) label(index *catalog.Index, set requirement.Set, offers catalog.Bits) {
	having := map[requirement.Key]int{}
	for i := range offers.All() {
		for r := range index.Offers[i].Labels.All() {
			having[r.Key()]++
		}
	}
	total := offers.Count()
	var open []requirement.Requirement
	for _, key := range slices.Sorted(maps.Keys(having)) {
		values := slices.DeleteFunc(index.Values(key, offers),
			func(value string) bool { return !set.Get(key).Has(value) })
		switch {
		case having[key] < total:
			open = append(open, requirement.Any(key)) // some instances come without the label: nothing is sure
		case len(values) == 1:
			p.Labels[string(key)] = values[0]
		default:
			open = append(open, requirement.OneOf(key, values...))
		}
	}
	p.Open = requirement.NewSet(open...)
}

// Price returns the price per hour of a node in an offering, resources.Unpriced if the index does not have it or its
// price is unknown. index may be nil.
func Price(index *catalog.Index, instanceType, zone, capacityType string) resources.Money {
	if index == nil {
		return resources.Unpriced
	}
	for i := range index.OfType(instanceType).All() {
		if o := index.Offers[i]; o.Zone == zone && o.CapacityType == capacityType {
			return o.Price.OfNode()
		}
	}
	return resources.Unpriced
}
