package launch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Override is a pool that a fleet may take machines from.
type Override struct {
	Type, Zone, Subnet, Image string
	Template                  string          // name of the launch template for it
	Reservation               string          // id of the capacity reservation it takes from, "" for none
	Price                     resources.Money // per hour; resources.Unpriced when unknown
}

// Least is a claim's minValues for a label: the number of different values that must stay among the types (P-13).
type Least struct {
	// Value returns the value that a type has, "" for none.
	Value func(kind string) string
	Least int
}

// Bounds are what EC2 accepts in one call.
type Bounds struct {
	Types, Overrides int
	Bytes            int // of the request's overrides, as Size counts them
	Templates        int // 0 for any number
}

// FleetBounds returns the bounds of CreateFleet. EC2 documents 300 overrides and 50 templates. 60 types and 100 KiB
// are familiar to Karpenter's users, and keep requests below every limit of the service (E-28).
func FleetBounds() Bounds { return Bounds{Types: 60, Overrides: 300, Bytes: 100 << 10, Templates: 50} }

// Size returns the approximate bytes of an override in the request: its values and its priority, and the names of its
// five parameters with their numbers.
func (o Override) Size() int {
	const names = 4*len("&LaunchTemplateConfigs.1.Overrides.300.AvailabilityZone=") +
		len("&LaunchTemplateConfigs.1.Overrides.300.Priority=300")
	return names + len(o.Type) + len(o.Zone) + len(o.Subnet) + len(o.Image)
}

// Cut reduces overrides to EC2's bounds and returns them cheapest first. It drops the dearest ones, but keeps the last
// of each zone and those that a minimum needs. So it may return more than the bounds allow. EC2 refuses overrides with
// the same type and zone; Cut keeps the first.
func Cut(overrides []Override, bounds Bounds, minima []Least) []Override {
	list := slices.Clone(overrides)
	seen := map[[2]string]bool{}
	list = slices.DeleteFunc(list, func(o Override) bool {
		key := [2]string{o.Type, o.Zone}
		double := seen[key]
		seen[key] = true
		return double
	})
	slices.SortStableFunc(list, func(a, b Override) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone))
	})
	c := newCut(list, minima)
	c.dropTypes(bounds.Types)
	c.dropTemplates(bounds.Templates)
	for i := len(c.list) - 1; i >= 0 && (c.kept > bounds.Overrides || c.bytes > bounds.Bytes); i-- {
		if c.stays[i] && c.spare(i) {
			c.drop(i)
		}
	}
	var left []Override
	for i, o := range c.list {
		if c.stays[i] {
			left = append(left, o)
		}
	}
	return left
}

// cut tracks what is left.
type cut struct {
	list        []Override
	stays       []bool // by position in list
	kept, bytes int
	byZone      map[string]int
	byType      map[string][]int // positions that stay
	minima      []Least
	values      []map[string]int // by minimum: the number of types of each value
}

func newCut(list []Override, minima []Least) *cut {
	c := &cut{list: list, stays: make([]bool, len(list)), kept: len(list), minima: minima,
		byZone: map[string]int{}, byType: map[string][]int{}}
	for i, o := range list {
		c.stays[i] = true
		c.bytes += o.Size()
		c.byZone[o.Zone]++
		c.byType[o.Type] = append(c.byType[o.Type], i)
	}
	for _, m := range minima {
		values := map[string]int{}
		for kind := range c.byType {
			if value := m.Value(kind); value != "" {
				values[value]++
			}
		}
		c.values = append(c.values, values)
	}
	return c
}

// dropTypes drops whole types until there are at most most of them. It starts with those whose cheapest override is
// dearest.
func (c *cut) dropTypes(most int) {
	var kinds []string // cheapest first, since the list is
	listed := map[string]bool{}
	for _, o := range c.list {
		if !listed[o.Type] {
			listed[o.Type] = true
			kinds = append(kinds, o.Type)
		}
	}
	for i := len(kinds) - 1; i >= 0 && len(c.byType) > most; i-- {
		if !c.needsType(kinds[i]) && !c.lastOfAZone(kinds[i]) {
			for _, at := range slices.Clone(c.byType[kinds[i]]) {
				c.drop(at)
			}
		}
	}
}

// dropTemplates drops overrides by template until there are at most most templates, as far as possible. It starts with
// templates whose cheapest override is dearest.
func (c *cut) dropTemplates(most int) {
	var names []string // cheapest first
	at := map[string][]int{}
	for i, o := range c.list {
		if !c.stays[i] {
			continue
		}
		if at[o.Template] == nil {
			names = append(names, o.Template)
		}
		at[o.Template] = append(at[o.Template], i)
	}
	left := len(names)
	for i := len(names) - 1; i >= 0 && most > 0 && left > most; i-- {
		spared := true
		for _, position := range slices.Backward(at[names[i]]) {
			if c.spare(position) {
				c.drop(position)
			} else {
				spared = false
			}
		}
		if spared {
			left--
		}
	}
}

// spare reports whether an override may go: its zone has others, and its type stays or is not needed.
func (c *cut) spare(i int) bool {
	o := c.list[i]
	return c.byZone[o.Zone] > 1 && (len(c.byType[o.Type]) > 1 || !c.needsType(o.Type))
}

// needsType reports whether a minimum needs the type.
func (c *cut) needsType(kind string) bool {
	for i, m := range c.minima {
		if value := m.Value(kind); value != "" && c.values[i][value] == 1 && len(c.values[i]) <= m.Least {
			return true
		}
	}
	return false
}

// lastOfAZone reports whether some zone has its last override in the type.
func (c *cut) lastOfAZone(kind string) bool {
	return slices.ContainsFunc(c.byType[kind], func(i int) bool { return c.byZone[c.list[i].Zone] == 1 })
}

func (c *cut) drop(i int) {
	o := c.list[i]
	c.stays[i] = false
	c.kept--
	c.bytes -= o.Size()
	c.byZone[o.Zone]--
	c.byType[o.Type] = slices.DeleteFunc(c.byType[o.Type], func(at int) bool { return at == i })
	if len(c.byType[o.Type]) > 0 {
		return
	}
	delete(c.byType, o.Type)
	for at, m := range c.minima {
		if value := m.Value(o.Type); value != "" {
			if c.values[at][value]--; c.values[at][value] == 0 {
				delete(c.values[at], value)
			}
		}
	}
}
