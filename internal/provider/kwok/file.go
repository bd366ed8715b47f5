package kwok

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Bounds of a file. They are far above any real catalogue; a larger file is a mistake.
const (
	maxFileBytes    = 64 << 20
	maxTypes        = 10_000
	maxOfferings    = 1_000 // of a type, after zones and capacity types are multiplied out
	maxSystems      = 10
	maxRequirements = 50
	maxValues       = 200
	maxReservation  = 1_000_000
)

const allowedLabelValue = "a string that can be a label value: 1 to 63 letters, digits, '-', '_' and '.'"

// ParseInventory reads an instance types file in Karpenter's format: a JSON array of
//
//	{"name", "architecture", "operatingSystems": [...], "resources": {...},
//	 "offerings": [{"Price", "Available", "ReservationCapacity", "Requirements": [{"key", "operator", "values"}]}]}
//
// Price is in dollars per hour. An offering needs requirements In for the zone and the capacity type; several values
// mean an offering for each. Available is true by default, resources.pods 110. Every error names the element, the
// field, the value and what is allowed; no input makes it panic.
func ParseInventory(data []byte) (Inventory, error) {
	if len(data) > maxFileBytes {
		return Inventory{}, fmt.Errorf("%d bytes; want at most %d", len(data), maxFileBytes)
	}
	if err := syntax(data); err != nil {
		return Inventory{}, err
	}
	elements, err := value{path: "instance types", raw: data}.array(maxTypes)
	if err != nil {
		return Inventory{}, err
	}
	var types []catalog.Type
	var reservations []reservation
	for i, element := range elements {
		t, capacities, err := parseType(element.at(fmt.Sprintf("instance type %d", i)))
		if err != nil {
			return Inventory{}, err
		}
		for offering, capacity := range capacities {
			if t.Offerings[offering].CapacityType == catalog.Reserved {
				reservations = append(reservations, reservation{kind: i, offering: offering, capacity: capacity})
			}
		}
		types = append(types, t)
	}
	return newInventory(types, reservations)
}

func parseType(v value) (catalog.Type, []int, error) {
	fields, err := v.object("name", "offerings", "architecture", "operatingSystems", "resources")
	if err != nil {
		return catalog.Type{}, nil, err
	}
	name, err := fields["name"].text(allowedLabelValue, isLabelValue)
	if err != nil {
		return catalog.Type{}, nil, err
	}
	named := func(field string) value { return fields[field].at(fmt.Sprintf("%s (%s).%s", v.path, name, field)) }
	arch, err := named("architecture").text(allowedLabelValue, isLabelValue)
	if err != nil {
		return catalog.Type{}, nil, err
	}
	systems, err := named("operatingSystems").texts(maxSystems, allowedLabelValue, isLabelValue)
	if err != nil {
		return catalog.Type{}, nil, err
	}
	if len(systems) == 0 {
		return catalog.Type{}, nil, named("operatingSystems").badValue("at least one operating system")
	}
	quantities, err := parseResources(named("resources"))
	if err != nil {
		return catalog.Type{}, nil, err
	}
	t := catalog.Type{
		Name:     name,
		Labels:   typeLabels(name, arch, systems, quantities.cpu, quantities.memory),
		Capacity: quantities.amounts,
		Overhead: overhead(),
	}
	var capacities []int
	t.Offerings, capacities, err = parseOfferings(named("offerings"), t)
	return t, capacities, err
}

// quantities are the resources of a type: as amounts, and the two for labels as text.
type quantities struct {
	amounts     resources.Amounts
	cpu, memory string
}

func parseResources(v value) (quantities, error) {
	fields, err := v.object()
	if err != nil {
		return quantities{}, err
	}
	parsed := quantities{amounts: resources.Amounts{resources.NamePods: defaultPods}}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names) // so that of several errors always the same one is reported
	for _, name := range names {
		if len(validation.IsQualifiedName(name)) > 0 || name == resources.NameNodes {
			return quantities{},
				fmt.Errorf("%s: unknown field %q; want names of resources such as cpu, memory or nvidia.com/gpu",
					v.path, name)
		}
		amount, text, err := parseQuantity(name, fields[name])
		if err != nil {
			return quantities{}, err
		}
		parsed.amounts[name] = amount
		switch name {
		case resources.NameCPU:
			parsed.cpu = text
		case resources.NameMemory:
			parsed.memory = text
		}
	}
	if parsed.amounts[resources.NameCPU] <= overheadCPU {
		return quantities{},
			value{path: v.path + ".cpu", raw: fields["cpu"].raw}.badValue("more than the machine's own part, 100m")
	}
	if parsed.amounts[resources.NameMemory] <= overheadMemory {
		return quantities{},
			value{path: v.path + ".memory", raw: fields["memory"].raw}.badValue(
				"more than the machine's own part, 10Mi")
	}
	return parsed, nil
}

// parseQuantity returns an amount in base units and the quantity's canonical text.
func parseQuantity(name string, v value) (int64, string, error) {
	const allowed = `a quantity such as "4", "500m" or "16Gi", at least 0 and at most 1Pi (cpu: 1M)`
	text := string(v.raw)
	var unquoted string
	if json.Unmarshal(v.raw, &unquoted) == nil {
		text = unquoted
	}
	if hasHugeExponent(text) {
		return 0, "", v.badValue("%s", allowed)
	}
	quantity, err := resource.ParseQuantity(text)
	limit := resource.NewQuantity(1<<50, resource.BinarySI)
	if name == resources.NameCPU {
		limit = resource.NewQuantity(1_000_000, resource.DecimalSI)
	}
	if err != nil || quantity.Sign() < 0 || quantity.Cmp(*limit) > 0 {
		return 0, "", v.badValue("%s", allowed)
	}
	if name == resources.NameCPU {
		return quantity.MilliValue(), quantity.String(), nil
	}
	return quantity.Value(), quantity.String(), nil
}

// hasHugeExponent reports exponents of three digits and more. Parsing such a quantity can build a number with that
// many digits: "1e-2000000000" would never end.
func hasHugeExponent(text string) bool {
	digits := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '+' || c == '-':
		case c == 'e' || c == 'E':
			return digits > 2
		default:
			return false
		}
	}
	return false
}

func isLabelValue(s string) bool { return s != "" && len(validation.IsValidLabelValue(s)) == 0 }

func isLabelKey(s string) bool { return len(validation.IsQualifiedName(s)) == 0 }

func parsePrice(v value) (resources.Money, error) {
	const allowed = "a number of dollars per hour from 0 to 1000000"
	if v.missing() || v.raw[0] == '"' {
		return 0, v.badValue(allowed)
	}
	dollars, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil {
		return 0, v.badValue(allowed)
	}
	price, err := resources.FromDollars(dollars)
	if err != nil {
		return 0, v.badValue(allowed)
	}
	return price, nil
}
