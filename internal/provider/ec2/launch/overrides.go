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

// Least is a claim's minValues for a label: so many different values of it have to stay among the types (P-13).
type Least struct {
	// Value returns the value that a type has, "" for none.
	Value func(kind string) string
	Least int
}

// Bounds are what EC2 takes in one call.
type Bounds struct {
	Types, Overrides int
	Bytes            int // of the request's overrides, as Size counts them
	Templates        int // 0 for any number
}

// FleetBounds are those of CreateFleet. EC2 documents 300 overrides and 50 templates; 60 types and 100 KiB are what
// Karpenter's users are used to, and keep requests below every limit of the service (E-28).
func FleetBounds() Bounds { return Bounds{Types: 60, Overrides: 300, Bytes: 100 << 10, Templates: 50} }

// Size is about how many bytes an override takes in the request: its values and its priority, and the names of its
// five parameters with their numbers.
func (o Override) Size() int {
	const names = 4*len("&LaunchTemplateConfigs.1.Overrides.300.AvailabilityZone=") +
		len("&LaunchTemplateConfigs.1.Overrides.300.Priority=300")
	return names + len(o.Type) + len(o.Zone) + len(o.Subnet) + len(o.Image)
}

// Cut returns as many overrides as EC2 takes, cheapest first: the dear ones go, but none that is the last of its zone,
// nor one without which a minimum would not be met any more. So it may return more than the bounds when these leave no
// choice. Of overrides with one type and zone, which EC2 refuses, the first stays.
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

// cut counts what is left.
type cut struct {
	list        []Override
	stays       []bool // by position in list
	kept, bytes int
	byZone      map[string]int
	byType      map[string][]int // positions that stay
	minima      []Least
	values      []map[string]int // by minimum: the types of each value
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

// dropTypes drops whole types, from those whose cheapest override is dearest, until there are no more than most.
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

// dropTemplates drops what needs one of the templates whose cheapest override is dearest, until there are no more than
// most, as far as it can be spared.
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

// spare reports whether an override may go: others are left in its zone, and its type stays or is not needed.
func (c *cut) spare(i int) bool {
	o := c.list[i]
	return c.byZone[o.Zone] > 1 && (len(c.byType[o.Type]) > 1 || !c.needsType(o.Type))
}

// needsType reports whether a minimum would not be met without the type.
func (c *cut) needsType(kind string) bool {
	for i, m := range c.minima {
		if value := m.Value(kind); value != "" && c.values[i][value] == 1 && len(c.values[i]) <= m.Least {
			return true
		}
	}
	return false
}

// lastOfAZone reports whether a zone would have no override without the type.
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
