package kwok

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// offeringLabels is the content of an offering's requirements: zones, capacity types, and further labels.
type offeringLabels struct {
	zones, capacityTypes []string
	others               requirement.Set
}

// parseOfferings returns the offerings of a type, and the size of the reservation of each.
func parseOfferings(v value, t catalog.Type) ([]catalog.Offering, []int, error) {
	elements, err := v.array(maxOfferings)
	if err != nil {
		return nil, nil, err
	}
	if len(elements) == 0 {
		return nil, nil, v.badValue("at least one offering")
	}
	var list []catalog.Offering
	var capacities []int
	seen := map[string]bool{}
	for _, element := range elements {
		several, capacity, err := parseOffering(element, t)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range several {
			key := o.Zone + " " + o.CapacityType + " " + o.Labels.String()
			if seen[key] {
				return nil, nil,
					fmt.Errorf(
						"%s: zone %s, capacity type %s is offered twice; want different zones, capacity types or labels",
						element.path, o.Zone, o.CapacityType)
			}
			seen[key] = true
			list, capacities = append(list, o), append(capacities, capacity)
		}
		if len(list) > maxOfferings {
			return nil, nil, fmt.Errorf("%s: more than %d offerings; want at most that many", v.path, maxOfferings)
		}
	}
	return list, capacities, nil
}

func parseOffering(v value, t catalog.Type) ([]catalog.Offering, int, error) {
	fields, err := v.object("Price", "Available", "Requirements", "ReservationCapacity", "CapacityOverride",
		"OverheadOverride")
	if err != nil {
		return nil, 0, err
	}
	for _, unsupported := range []string{"CapacityOverride", "OverheadOverride"} {
		if !fields[unsupported].missing() {
			return nil, 0,
				fields[unsupported].badValue("null: all offerings of a simulated type have the type's resources")
		}
	}
	price, err := parsePrice(fields["Price"])
	if err != nil {
		return nil, 0, err
	}
	available, err := fields["Available"].flag(true)
	if err != nil {
		return nil, 0, err
	}
	capacity := 0
	if reserved := fields["ReservationCapacity"]; !reserved.missing() {
		if capacity, err = strconv.Atoi(string(reserved.raw)); err != nil || capacity < 0 ||
			capacity > maxReservation {
			return nil, 0, reserved.badValue("a whole number from 0 to %d", maxReservation)
		}
	}
	labels, err := parseOfferingLabels(fields["Requirements"], t)
	if err != nil {
		return nil, 0, err
	}
	var list []catalog.Offering
	for _, zone := range labels.zones {
		for _, capacityType := range labels.capacityTypes {
			list = append(list, catalog.Offering{Zone: zone, CapacityType: capacityType, Labels: labels.others,
				Price: price, Available: available})
		}
	}
	return list, capacity, nil
}

func parseOfferingLabels(v value, t catalog.Type) (offeringLabels, error) {
	elements, err := v.array(maxRequirements)
	if err != nil {
		return offeringLabels{}, err
	}
	var set requirement.Set
	for _, element := range elements {
		r, err := parseRequirement(element)
		if err != nil {
			return offeringLabels{}, err
		}
		set = set.With(r)
	}
	if conflicts := set.EmptyKeys(); len(conflicts) > 0 {
		return offeringLabels{}, v.badValue("requirements of which none contradicts another, but those of %s do",
			conflicts[0])
	}
	set, err = againstType(v, set, t)
	if err != nil {
		return offeringLabels{}, err
	}
	var labels offeringLabels
	if labels.zones, err = places(v, set, catalog.LabelZone, "one or more zones"); err != nil {
		return offeringLabels{}, err
	}
	capacityTypes := []string{catalog.OnDemand, catalog.Spot, catalog.Reserved}
	if labels.capacityTypes,
		err = places(v, set, catalog.LabelCapacityType, "any of on-demand, spot, reserved"); err != nil {
		return offeringLabels{}, err
	}
	for _, capacityType := range labels.capacityTypes {
		if !slices.Contains(capacityTypes, capacityType) {
			return offeringLabels{}, fmt.Errorf("%s: %s is %q; want on-demand, spot or reserved", v.path,
				catalog.LabelCapacityType, capacityType)
		}
	}
	labels.others = set.Without(catalog.LabelZone).Without(catalog.LabelCapacityType)
	return labels, nil
}

// places returns the values of key's requirement In.
func places(v value, set requirement.Set, key requirement.Key, allowed string) ([]string, error) {
	values, finite := set.Get(key).Values()
	if !set.Holds(key) || !finite || len(values) == 0 || set.Get(key).AllowsAbsent() {
		return nil, v.badValue("a requirement with key %s, operator In and as values %s", key, allowed)
	}
	return values, nil
}

// againstType removes from an offering's requirements those that its type states already, and refuses contradictions.
func againstType(v value, set requirement.Set, t catalog.Type) (requirement.Set, error) {
	own := t.Labels.With(requirement.OneOf(catalog.LabelInstanceType, t.Name))
	for r := range own.All() {
		if !set.Holds(r.Key()) {
			continue
		}
		if !set.Get(r.Key()).Intersects(r) {
			return set, v.badValue("nothing that contradicts the instance type, which has %s", r)
		}
		if set.Get(r.Key()).And(r).Equal(r) {
			set = set.Without(r.Key())
		}
	}
	return set, nil
}

func parseRequirement(v value) (requirement.Requirement, error) {
	fields, err := v.object("key", "operator", "values")
	if err != nil {
		return requirement.Requirement{}, err
	}
	key, err := fields["key"].text("a label key such as topology.kubernetes.io/zone", isLabelKey)
	if err != nil {
		return requirement.Requirement{}, err
	}
	operator, err := fields["operator"].text("In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte",
		func(string) bool { return true })
	if err != nil {
		return requirement.Requirement{}, err
	}
	var values []string
	if !fields["values"].missing() {
		if values, err = fields["values"].texts(maxValues, allowedLabelValue, isLabelValue); err != nil {
			return requirement.Requirement{}, err
		}
	}
	r, err := requirement.New(requirement.Key(key), requirement.Operator(operator), values...)
	if err != nil {
		return requirement.Requirement{}, fmt.Errorf("%s: %w", v.path, err)
	}
	return r, nil
}
