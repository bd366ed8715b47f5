package kwok

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// EC2Types is the setting that selects the embedded catalogue of EC2 instance types; see [LoadInventory].
const EC2Types = "aws"

// The overhead of every machine, as in Karpenter's provider.
const (
	overheadCPU    = 100      // milli-cores
	overheadMemory = 10 << 20 // bytes
	defaultPods    = 110      // of a type in a file without it
)

// Inventory is what the simulated cloud sells: a catalogue, and the size of each reservation. It is immutable. The
// zero value sells nothing.
type Inventory struct {
	catalog      catalog.Catalog
	reservations []reservation
}

// has reports whether there is an instance type of that name, available or not.
func (i Inventory) has(name string) bool {
	return slices.ContainsFunc(i.catalog.Types, func(t catalog.Type) bool { return t.Name == name })
}

// reservation bounds the machines of one offering of capacity type reserved.
type reservation struct {
	kind, offering int // positions in the catalogue
	capacity       int
}

// LoadInventory returns the inventory of a setting: "" is the default one, "aws" the EC2 types, anything else the path
// of a file, which read reads. The setting is Karpenter's INSTANCE_TYPES_FILE_PATH.
func LoadInventory(setting string, read func(path string) ([]byte, error)) (Inventory, error) {
	switch setting {
	case "":
		return GenericInventory()
	case EC2Types:
		return EC2Inventory()
	}
	data, err := read(setting)
	if err != nil {
		return Inventory{}, fmt.Errorf("reading the instance types file: %w", err)
	}
	inventory, err := ParseInventory(data)
	if err != nil {
		return Inventory{}, fmt.Errorf("instance types file %s: %w", setting, err)
	}
	return inventory, nil
}

// newInventory makes an inventory of a list of types. It adds well-known labels, and checks that planning can work
// with it.
func newInventory(types []catalog.Type, reservations []reservation) (Inventory, error) {
	c := catalog.Catalog{Types: types, WellKnown: map[requirement.Key]bool{
		catalog.LabelInstanceType: true, catalog.LabelZone: true, catalog.LabelCapacityType: true,
	}}
	for _, t := range types {
		for r := range t.Labels.All() {
			c.WellKnown[r.Key()] = true
		}
		for _, o := range t.Offerings {
			for r := range o.Labels.All() {
				c.WellKnown[r.Key()] = true
			}
		}
	}
	for _, r := range reservations {
		types[r.kind].Offerings[r.offering].Reservation = r.capacity
	}
	if err := c.Validate(); err != nil {
		return Inventory{}, err
	}
	return Inventory{catalog: c, reservations: reservations}, nil
}

// Catalog returns the catalogue when nothing is launched.
func (v Inventory) Catalog() catalog.Catalog { return v.left(nil) }

// left returns the catalogue with reservations unavailable that the instances use up.
func (v Inventory) left(instances []provider.Instance) catalog.Catalog {
	if len(v.reservations) == 0 {
		return v.catalog
	}
	c := v.catalog
	c.Types = slices.Clone(c.Types)
	copied := map[int]bool{}
	for _, r := range v.reservations {
		t := &c.Types[r.kind]
		if used(instances, t.Name, t.Offerings[r.offering]) < r.capacity {
			continue
		}
		if !copied[r.kind] {
			t.Offerings = slices.Clone(t.Offerings)
			copied[r.kind] = true
		}
		t.Offerings[r.offering].Available = false
	}
	return c
}

func used(instances []provider.Instance, typeName string, o catalog.Offering) int {
	n := 0
	for _, instance := range instances {
		if instance.Type == typeName && instance.Zone == o.Zone && instance.CapacityType == o.CapacityType &&
			o.Labels.Matches(instance.Labels) {
			n++
		}
	}
	return n
}

// overhead returns what a plain machine keeps for itself.
func overhead() resources.Amounts {
	return resources.Amounts{resources.NameCPU: overheadCPU, resources.NameMemory: overheadMemory}
}
