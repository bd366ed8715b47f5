// Package choose selects the offerings of a catalogue for a claim: the compatible ones, reserved capacity first, then
// by price (P-11). Providers of simulated machines take the best one. A real cloud gets the list in this order.
package choose

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const labelHostname requirement.Key = "kubernetes.io/hostname"

// Demand is what a claim asks for.
type Demand struct {
	Requirements requirement.Set
	Requests     resources.Amounts
	Hostname     string // of the future machine
	// Tie decides between offerings of one type at the same price, so that claims spread over zones. It is any text
	// that is constant for a claim.
	Tie string
}

// Choice is an offering that can satisfy a demand.
type Choice struct {
	Type     catalog.Type
	Offering catalog.Offering
	// Labels are the values that catalogue and demand together allow for each label of the machine.
	Labels requirement.Set
}

// Best returns the preferred offering among the available ones that are compatible with d: a reserved one, or else the
// cheapest. At the same price spot comes before on-demand. The error is a *provider.InsufficientCapacityError.
func (d Demand) Best(c catalog.Catalog) (Choice, error) {
	var best *Choice
	for _, t := range c.Types {
		if !d.takes(c, t) {
			continue
		}
		for _, o := range t.Offerings {
			if !d.sold(o) || best != nil && d.Compare(t, o, best.Type, best.Offering) >= 0 {
				continue // comparing labels comes last: it costs most
			}
			if choice, possible := d.choice(c, t, o); possible {
				best = &choice
			}
		}
	}
	if best == nil {
		return Choice{}, d.failure(c)
	}
	return *best, nil
}

// All returns the available offerings that are compatible with d, the preferred one first. If there are none, the
// error is a *provider.InsufficientCapacityError.
func (d Demand) All(c catalog.Catalog) ([]Choice, error) {
	var list []Choice
	for _, t := range c.Types {
		if !d.takes(c, t) {
			continue
		}
		for _, o := range t.Offerings {
			if choice, possible := d.choice(c, t, o); possible && d.sold(o) {
				list = append(list, choice)
			}
		}
	}
	if len(list) == 0 {
		return nil, d.failure(c)
	}
	slices.SortFunc(list, func(a, b Choice) int { return d.Compare(a.Type, a.Offering, b.Type, b.Offering) })
	return list, nil
}

// Of returns an offering of the catalogue as a choice for d, available or not; false when it is not compatible. is
// tells apart offerings of the same type, zone and capacity type, as reservations are.
func (d Demand) Of(c catalog.Catalog, o provider.Offering, is func(catalog.Offering) bool) (Choice, bool) {
	for _, t := range c.Types {
		if t.Name != o.Type || !d.takes(c, t) {
			continue
		}
		for _, each := range t.Offerings {
			if each.Zone == o.Zone && each.CapacityType == o.CapacityType && is(each) {
				if choice, possible := d.choice(c, t, each); possible {
					return choice, true
				}
			}
		}
	}
	return Choice{}, false
}

// takes reports whether d asks for the type, and the type is large enough.
func (d Demand) takes(c catalog.Catalog, t catalog.Type) bool {
	return d.Requirements.Get(catalog.LabelInstanceType).Has(t.Name) && d.short(c, t) == ""
}

// choice returns an offering of a type that d takes as a choice, false if it is not compatible.
func (d Demand) choice(c catalog.Catalog, t catalog.Type, o catalog.Offering) (Choice, bool) {
	offered := labelsOf(t, o, d.Hostname)
	if len(d.conflicts(c, offered)) > 0 {
		return Choice{}, false
	}
	return Choice{Type: t, Offering: o, Labels: offered.And(d.Requirements)}, true
}

// sold reports whether an offering is available, and d asks for its zone and capacity type.
func (d Demand) sold(o catalog.Offering) bool {
	zones, capacityTypes := d.Requirements.Get(catalog.LabelZone), d.Requirements.Get(catalog.LabelCapacityType)
	return o.Available && zones.Has(o.Zone) && capacityTypes.Has(o.CapacityType)
}

// Name returns the offering as messages and shortages name it.
func Name(t catalog.Type, o catalog.Offering) provider.Offering {
	return provider.Offering{Type: t.Name, Zone: o.Zone, CapacityType: o.CapacityType}
}

func labelsOf(t catalog.Type, o catalog.Offering, hostname string) requirement.Set {
	return t.Labels.And(o.Labels).And(requirement.NewSet(
		requirement.OneOf(catalog.LabelInstanceType, t.Name),
		requirement.OneOf(catalog.LabelZone, o.Zone),
		requirement.OneOf(catalog.LabelCapacityType, o.CapacityType),
		requirement.OneOf(labelHostname, hostname),
	))
}

// Compare orders offerings by preference, the best first.
func (d Demand) Compare(t catalog.Type, o catalog.Offering, otherType catalog.Type, other catalog.Offering) int {
	return cmp.Or(
		cmp.Compare(paid(o), paid(other)),
		cmp.Compare(o.Price, other.Price),
		cmp.Compare(rank(o.CapacityType), rank(other.CapacityType)),
		strings.Compare(t.Name, otherType.Name),
		cmp.Compare(d.lot(o), d.lot(other)),
	)
}

// paid is 0 for reserved offerings: they are paid for whether they are used or not, and so come first (P-11).
func paid(o catalog.Offering) int {
	if o.CapacityType == catalog.Reserved {
		return 0
	}
	return 1
}

func rank(capacityType string) int {
	return slices.Index([]string{catalog.Reserved, catalog.Spot, catalog.OnDemand}, capacityType)
}

func (d Demand) lot(o catalog.Offering) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, d.Tie+"/"+o.Zone) // a hash never fails to write
	return hash.Sum64()
}

// conflicts returns the labels for which offer and demand have no common value. A label that the catalogue knows and
// the offering lacks is absent. The claim itself brings any other label.
func (d Demand) conflicts(c catalog.Catalog, offered requirement.Set) []requirement.Key {
	var keys []requirement.Key
	for r := range d.Requirements.All() {
		switch {
		case offered.Holds(r.Key()):
			if !offered.Get(r.Key()).Intersects(r) {
				keys = append(keys, r.Key())
			}
		case c.WellKnown[r.Key()] && !r.AllowsAbsent(), r.Empty():
			keys = append(keys, r.Key())
		}
	}
	return keys
}

// short returns a resource of which the type has less than the demand, or "". It ignores resources that no type of the
// catalogue has: a NodeOverlay adds them, and the machine gets the requested amount.
func (d Demand) short(c catalog.Catalog, t catalog.Type) string {
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		if amount := d.Requests[name]; amount > 0 && amount > t.Capacity[name]-t.Overhead[name] && !foreign(c, name) {
			return name
		}
	}
	return ""
}

func foreign(c catalog.Catalog, resource string) bool {
	return !slices.ContainsFunc(c.Types, func(t catalog.Type) bool { return t.Capacity[resource] > 0 })
}

// failure returns why nothing could be chosen: the offerings that match but are unavailable, or, if there are none,
// the problems of the closest offering.
func (d Demand) failure(c catalog.Catalog) error {
	failure := &provider.InsufficientCapacityError{Asked: d.String(), Conflict: "the catalogue is empty"}
	fewest := -1
	for _, t := range c.Types {
		for _, o := range t.Offerings {
			problems := d.Problems(c, t, o)
			if len(problems) == 0 {
				failure.Tried = append(failure.Tried, Name(t, o))
			}
			if fewest < 0 || len(problems) < fewest {
				fewest = len(problems)
				failure.Conflict = fmt.Sprintf("closest is %s: %s", Name(t, o), strings.Join(problems, "; "))
			}
		}
	}
	if len(failure.Tried) > 0 {
		failure.Conflict = ""
	}
	return failure
}

// Problems says why an offering does not match; empty if it matches.
func (d Demand) Problems(c catalog.Catalog, t catalog.Type, o catalog.Offering) []string {
	var problems []string
	offered := labelsOf(t, o, d.Hostname)
	for _, key := range d.conflicts(c, offered) {
		has := "!" + string(key)
		if offered.Holds(key) {
			has = offered.Get(key).String()
		}
		problems = append(problems, fmt.Sprintf("has %s, asked is %s", has, d.Requirements.Get(key)))
	}
	if resource := d.short(c, t); resource != "" {
		problems = append(problems, "has too little "+resource)
	}
	return problems
}

// String prints the demand for messages.
func (d Demand) String() string {
	space := resources.NewSpace()
	text := d.Requirements.String()
	if vector := space.Vector(d.Requests); !vector.IsZero() {
		text += " with " + space.Names().Format(vector)
	}
	return text
}
