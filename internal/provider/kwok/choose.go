package kwok

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

// demand is what a claim asks for.
type demand struct {
	requirements requirement.Set
	requests     resources.Amounts
	hostname     string
	// tie decides between offerings of one type at one price, so that claims spread over zones: any text, the same
	// for the same claim.
	tie string
}

// choice is the offering taken for a demand.
type choice struct {
	kind     catalog.Type
	offering catalog.Offering
	// labels is what catalogue and demand together allow for each label of the machine.
	labels requirement.Set
}

// choose returns the cheapest available offering that is compatible with d, reserved ones first; at one price spot goes
// before on-demand. The error is an *InsufficientCapacityError.
func choose(c catalog.Catalog, d demand) (choice, error) {
	var best *choice
	for _, t := range c.Types {
		if !d.requirements.Get(catalog.LabelInstanceType).Has(t.Name) || d.short(c, t) != "" {
			continue
		}
		for _, o := range t.Offerings {
			if !o.Available || !d.sold(o) || best != nil && d.compare(t, o, best.kind, best.offering) >= 0 {
				continue // comparing labels comes last: it costs most
			}
			if offered := labelsOf(t, o, d.hostname); len(d.conflicts(c, offered)) == 0 {
				best = &choice{kind: t, offering: o, labels: offered.And(d.requirements)}
			}
		}
	}
	if best == nil {
		return choice{}, d.failure(c)
	}
	return *best, nil
}

// sold reports whether an offering's zone and capacity type are asked for.
func (d demand) sold(o catalog.Offering) bool {
	return d.requirements.Get(catalog.LabelZone).Has(o.Zone) && d.requirements.Get(catalog.LabelCapacityType).Has(o.CapacityType)
}

func identify(t catalog.Type, o catalog.Offering) provider.Offering {
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

// compare orders offerings by how much they are to be preferred, the best first.
func (d demand) compare(t catalog.Type, o catalog.Offering, otherType catalog.Type, other catalog.Offering) int {
	return cmp.Or(
		cmp.Compare(paid(o), paid(other)),
		cmp.Compare(o.Price, other.Price),
		cmp.Compare(rank(o.CapacityType), rank(other.CapacityType)),
		strings.Compare(t.Name, otherType.Name),
		cmp.Compare(d.lot(o), d.lot(other)),
	)
}

// paid is 0 for what is paid for whether it runs or not, which therefore comes first (P-11).
func paid(o catalog.Offering) int {
	if o.CapacityType == catalog.Reserved {
		return 0
	}
	return 1
}

func rank(capacityType string) int {
	return slices.Index([]string{catalog.Reserved, catalog.Spot, catalog.OnDemand}, capacityType)
}

func (d demand) lot(o catalog.Offering) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, d.tie+"/"+o.Zone) // a hash never fails to write
	return hash.Sum64()
}

// conflicts returns the labels for which what is offered and what is asked have no value in common. A label that the
// catalogue knows and the offering lacks is absent; any other label the claim itself brings along.
func (d demand) conflicts(c catalog.Catalog, offered requirement.Set) []requirement.Key {
	var keys []requirement.Key
	for r := range d.requirements.All() {
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

// short names a resource of which the type has less than the demand, or "". A resource that no type of the catalogue
// has is not the machines' matter: a NodeOverlay adds it, and the machine is given what was asked.
func (d demand) short(c catalog.Catalog, t catalog.Type) string {
	for _, name := range slices.Sorted(maps.Keys(d.requests)) {
		if amount := d.requests[name]; amount > 0 && amount > t.Capacity[name]-t.Overhead[name] && !foreign(c, name) {
			return name
		}
	}
	return ""
}

func foreign(c catalog.Catalog, resource string) bool {
	return !slices.ContainsFunc(c.Types, func(t catalog.Type) bool { return t.Capacity[resource] > 0 })
}

// failure says why nothing could be chosen: which offerings match but are unavailable, or when there are none, what
// keeps the one that comes closest from matching.
func (d demand) failure(c catalog.Catalog) error {
	failure := &provider.InsufficientCapacityError{Asked: d.String(), Conflict: "the catalogue is empty"}
	fewest := -1
	for _, t := range c.Types {
		for _, o := range t.Offerings {
			problems := d.problems(c, t, o)
			if len(problems) == 0 {
				failure.Tried = append(failure.Tried, identify(t, o))
			}
			if fewest < 0 || len(problems) < fewest {
				fewest = len(problems)
				failure.Conflict = fmt.Sprintf("closest is %s: %s", identify(t, o), strings.Join(problems, "; "))
			}
		}
	}
	if len(failure.Tried) > 0 {
		failure.Conflict = ""
	}
	return failure
}

// problems says in words what keeps an offering from matching.
func (d demand) problems(c catalog.Catalog, t catalog.Type, o catalog.Offering) []string {
	var problems []string
	offered := labelsOf(t, o, d.hostname)
	for _, key := range d.conflicts(c, offered) {
		has := "!" + string(key)
		if offered.Holds(key) {
			has = offered.Get(key).String()
		}
		problems = append(problems, fmt.Sprintf("has %s, asked is %s", has, d.requirements.Get(key)))
	}
	if resource := d.short(c, t); resource != "" {
		problems = append(problems, "has too little "+resource)
	}
	return problems
}

// String prints the demand for messages.
func (d demand) String() string {
	space := resources.NewSpace()
	text := d.requirements.String()
	if vector := space.Vector(d.requests); !vector.IsZero() {
		text += " with " + space.Names().Format(vector)
	}
	return text
}
