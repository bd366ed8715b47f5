// Package catalog describes what a provider can launch: instance types, and for each the offerings (zone and
// capacity type) with their price and availability (P-11).
//
// A [Catalog] is plain data that a provider hands out and never changes afterwards. An [Index] is the same, compiled
// for planning. It has the offerings of all types in one list, reserved ones first and then by price. For every label
// value it has the offerings with that value as a bit set, so that "which offerings still fit" is an AND of a few
// words.
//
// The package imports the standard library only.
package catalog

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// The labels that every offering has, and the values of the capacity type.
const (
	LabelInstanceType requirement.Key = "node.kubernetes.io/instance-type"
	LabelZone         requirement.Key = "topology.kubernetes.io/zone"
	LabelCapacityType requirement.Key = "karpenter.sh/capacity-type"

	OnDemand = "on-demand"
	Spot     = "spot"
	Reserved = "reserved"
)

// Type is an instance type.
type Type struct {
	Name string
	// Labels are the label values that a node of this type may have: architecture, operating system, family and so
	// on. The instance type, zone and capacity type need not be among them: they are added from the fields.
	Labels requirement.Set
	// Capacity is what the machine has, by resource name in base units.
	Capacity resources.Amounts
	// Overhead is the part of Capacity that pods cannot use (system and kubelet reservations, eviction threshold).
	Overhead  resources.Amounts
	Offerings []Offering
}

// Offering is a way to buy a type: where and how, at which price.
type Offering struct {
	Zone         string
	CapacityType string // OnDemand, Spot or Reserved
	// Labels are label values beyond the zone and the capacity type that a node of this offering has.
	Labels    requirement.Set
	Price     resources.Money // per hour
	Available bool            // false: the provider would refuse it at present
	// Reservation is how many machines of this cluster an offering of capacity type Reserved covers, with those that
	// run in it already: planning counts them by their labels. 0: not stated, and nothing is counted.
	Reservation int
}

// Catalog is what one node class offers. It is immutable once handed out.
type Catalog struct {
	// Types in any order; names are unique.
	Types []Type
	// WellKnown are the labels whose values the provider decides. A label that is neither well known nor defined by
	// a pool is absent from the pool's nodes (P-02). The keys of all types' and offerings' labels belong to it.
	WellKnown map[requirement.Key]bool
}

// Validate returns an error that names the first type or offering that planning could not handle: a name twice or
// empty, no offering, a negative amount, an overhead above the capacity, a price below 0 or too high, or a reservation
// on an offering that is not reserved.
func (c Catalog) Validate() error {
	seen := map[string]bool{}
	for _, t := range c.Types {
		if t.Name == "" {
			return fmt.Errorf("instance type without a name")
		}
		if seen[t.Name] {
			return fmt.Errorf("instance type %s: listed twice", t.Name)
		}
		seen[t.Name] = true
		if err := t.validate(); err != nil {
			return fmt.Errorf("instance type %s: %w", t.Name, err)
		}
	}
	return nil
}

func (t Type) validate() error {
	if len(t.Offerings) == 0 {
		return fmt.Errorf("has no offering; want at least one zone and capacity type")
	}
	for name, amount := range t.Capacity {
		if amount < 0 {
			return fmt.Errorf("capacity %s is %d; want 0 or more", name, amount)
		}
	}
	for name, amount := range t.Overhead {
		if amount < 0 || amount > t.Capacity[name] {
			return fmt.Errorf("overhead %s is %d; want 0 to the capacity, %d", name, amount, t.Capacity[name])
		}
	}
	for i, o := range t.Offerings {
		if err := o.validate(); err != nil {
			return fmt.Errorf("offering %d: %w", i, err)
		}
	}
	return nil
}

func (o Offering) validate() error {
	switch {
	case o.Zone == "":
		return fmt.Errorf("the zone is empty; want a name")
	case o.CapacityType != OnDemand && o.CapacityType != Spot && o.CapacityType != Reserved:
		return fmt.Errorf("zone %s: the capacity type is %q; want on-demand, spot or reserved", o.Zone, o.CapacityType)
	case o.Reservation < 0 || o.Reservation > 0 && o.CapacityType != Reserved:
		return fmt.Errorf(
			"%s in %s: the reservation is for %d machines; want 0 or more, and 0 unless the capacity type is reserved",
			o.CapacityType, o.Zone, o.Reservation)
	case o.Price < 0 || o.Price > resources.MaxPrice:
		return fmt.Errorf("%s in %s: the price is %s; want 0 to %s dollars per hour", o.CapacityType, o.Zone, o.Price,
			resources.MaxPrice)
	}
	return nil
}
