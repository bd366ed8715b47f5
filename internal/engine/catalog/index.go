package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Offer is an offering together with its type, as planning sees it.
type Offer struct {
	Type         int // position in Index.Types
	Zone         string
	CapacityType string
	Price        resources.Money
	Available    bool
	Reservation  int             // see Offering
	Labels       requirement.Set // of type and offering together, with instance type, zone and capacity type
	// Commitment is the number, from 1, of the commitment that pays for a node of this offer. Its Price is 0 then, and
	// List what the offer costs without. 0 for an offer as the provider sells it (see Index.Covered).
	Commitment int
	List       resources.Money
}

// IndexedType is a type with its amounts as vectors of the space that the Index was made with.
type IndexedType struct {
	Name        string
	Capacity    resources.Vector
	Allocatable resources.Vector
}

// Index is a Catalog compiled for planning. It is immutable.
type Index struct {
	// Types is ordered by name.
	Types []IndexedType
	// Offers holds every offering: reserved ones first, because they are paid for whether they run or not (P-11), then
	// by price, list price, type, zone and capacity type.
	Offers []Offer
	// Available are the offers that can be had at present.
	Available Bits
	// Room are the thresholds of what each offer leaves to pods and daemons.
	Room *Thresholds

	wellKnown map[requirement.Key]bool
	byKey     map[requirement.Key][]class
	byType    map[string]Bits
	covered   Bits            // offers that a commitment pays for; nil for none
	terms     map[place]terms // what is bought on demand, by where; nil without commitments
}

// class is a distinct set of values that offers have for a key, and the offers that have it.
type class struct {
	values requirement.Requirement
	offers Bits
}

// NewIndex compiles c, which must be valid, with the components of space.
func NewIndex(c Catalog, space *resources.Space) *Index {
	types := slices.Clone(c.Types)
	slices.SortFunc(types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	var indexed []IndexedType
	var offers []Offer
	for i, t := range types {
		capacity := space.Vector(t.Capacity)
		indexed = append(indexed, IndexedType{Name: t.Name, Capacity: capacity,
			Allocatable: capacity.Minus(space.Vector(t.Overhead))})
		for _, o := range t.Offerings {
			offers = append(offers, offer(i, t, o))
		}
	}
	slices.SortFunc(offers, compareOffers)
	return Compile(indexed, offers, slices.Collect(maps.Keys(c.WellKnown)))
}

// Compile makes an Index from its parts: Types, Offers and [Index.WellKnown] of an Index give it once more, apart from
// its commitments ([Index.Covered]). types are ordered by name, and offers as in Index.Offers. The Type of each offer
// is a position in types.
func Compile(types []IndexedType, offers []Offer, wellKnown []requirement.Key) *Index {
	x := &Index{Types: types, Offers: offers, wellKnown: map[requirement.Key]bool{},
		byKey: map[requirement.Key][]class{}, byType: map[string]Bits{}}
	for _, key := range wellKnown {
		x.wellKnown[key] = true
	}
	x.Available = NewBits(len(x.Offers))
	for _, t := range x.Types {
		x.byType[t.Name] = NewBits(len(x.Offers))
	}
	for i, o := range x.Offers {
		if o.Available {
			x.Available.Add(i)
		}
		x.byType[x.Types[o.Type].Name].Add(i)
		for r := range o.Labels.All() {
			x.wellKnown[r.Key()] = true
		}
	}
	for key := range x.wellKnown {
		x.byKey[key] = x.classes(key)
	}
	x.Room = NewThresholds(len(x.Offers), func(i int) resources.Vector {
		return x.Types[x.Offers[i].Type].Allocatable
	})
	return x
}

func compareOffers(a, b Offer) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Price, b.Price), cmp.Compare(a.List, b.List),
		cmp.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType),
		cmp.Compare(a.Commitment, b.Commitment))
}

func rank(o Offer) int {
	if o.CapacityType == Reserved {
		return 0
	}
	return 1
}

func offer(position int, t Type, o Offering) Offer {
	labels := t.Labels.And(o.Labels).And(requirement.NewSet(
		requirement.OneOf(LabelInstanceType, t.Name),
		requirement.OneOf(LabelZone, o.Zone),
		requirement.OneOf(LabelCapacityType, o.CapacityType),
	))
	return Offer{Type: position, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price, Available: o.Available,
		Reservation: o.Reservation, Labels: labels}
}

// classes groups the offers by their values for key; an offer that does not have the label is in the class Absent.
func (x *Index) classes(key requirement.Key) []class {
	var list []class
	position := map[string]int{}
	for i, o := range x.Offers {
		values := requirement.Absent(key)
		if o.Labels.Holds(key) {
			values = o.Labels.Get(key)
		}
		name := values.String()
		at, found := position[name]
		if !found {
			at = len(list)
			position[name] = at
			list = append(list, class{values: values, offers: NewBits(len(x.Offers))})
		}
		list[at].offers.Add(i)
	}
	return list
}

// Known reports whether the provider decides the values of key (P-02).
func (x *Index) Known(key requirement.Key) bool { return x.wellKnown[key] }

// WellKnown lists the labels that are Known, sorted.
func (x *Index) WellKnown() []requirement.Key { return slices.Sorted(maps.Keys(x.wellKnown)) }

// Ordered reports whether offers stand in the order of Index.Offers.
func Ordered(offers []Offer) bool { return slices.IsSortedFunc(offers, compareOffers) }

// All returns the set of all offers.
func (x *Index) All() Bits {
	all := NewBits(len(x.Offers))
	for i := range x.Offers {
		all.Add(i)
	}
	return all
}

// Restocked returns the index with all offers available that are not reserved.
func (x *Index) Restocked() *Index {
	own := *x
	own.Available = x.Available.Clone()
	for i, o := range x.Offers {
		if o.CapacityType != Reserved {
			own.Available.Add(i)
		}
	}
	return &own
}

// AtLeast returns the index with only those offers available whose types have this much room for pods and daemons.
func (x *Index) AtLeast(room resources.Vector) *Index {
	own := *x
	own.Available = x.Available.Clone()
	for i, o := range x.Offers {
		if !room.Fits(x.Types[o.Type].Allocatable) {
			own.Available.Remove(i)
		}
	}
	return &own
}

// OfType returns the offers of a type, nil when the type is unknown. The result must not be changed.
func (x *Index) OfType(name string) Bits { return x.byType[name] }

// Compatible returns the offers that r allows. r's key must be Known; offers that lack it count as absent.
func (x *Index) Compatible(r requirement.Requirement) Bits {
	allowed := NewBits(len(x.Offers))
	for _, c := range x.byKey[r.Key()] {
		if c.values.Intersects(r) {
			c.offers.OrTo(allowed)
		}
	}
	return allowed
}

// Narrow takes out of offers, in place, those that the requirements do not allow. It ignores requirements on labels
// that are not Known.
func (x *Index) Narrow(offers Bits, requirements requirement.Set) {
	for r := range requirements.All() {
		if x.Known(r.Key()) {
			x.Compatible(r).AndTo(offers)
		}
	}
}

// Values returns the distinct label values that the given offers have for key, sorted; key must be Known. A value
// set of more than one value (a type that can be either) counts with each of them.
func (x *Index) Values(key requirement.Key, offers Bits) []string {
	var values []string
	for _, c := range x.byKey[key] {
		if !c.offers.Intersects(offers) {
			continue
		}
		if listed, finite := c.values.Values(); finite {
			values = append(values, listed...)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// Lacking reports whether some of the given offers do not have the label key, which must be Known.
func (x *Index) Lacking(key requirement.Key, offers Bits) bool {
	for _, c := range x.byKey[key] {
		if c.values.AllowsAbsent() && c.offers.Intersects(offers) {
			return true
		}
	}
	return false
}

// CountTypes returns the number of distinct types among offers.
func (x *Index) CountTypes(offers Bits) int {
	seen, n := make([]bool, len(x.Types)), 0
	for i := range offers.All() {
		if t := x.Offers[i].Type; !seen[t] {
			seen[t] = true
			n++
		}
	}
	return n
}

// TypesByPrice returns the positions of the distinct types among offers, cheapest offer first.
func (x *Index) TypesByPrice(offers Bits) []int {
	seen, types := make([]bool, len(x.Types)), []int(nil)
	for i := range offers.All() {
		if t := x.Offers[i].Type; !seen[t] {
			seen[t] = true
			types = append(types, t)
		}
	}
	return types
}
