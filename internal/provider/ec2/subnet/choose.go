package subnet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Choice is the subnet of a zone.
type Choice struct {
	Zone, ID string
	Left     int64 // addresses
	// Enough says that a machine may be launched there. Else the zone's offerings of the type are unavailable.
	Enough bool
}

// Choose returns for each zone the subnet with most addresses left, ordered by zone, and whether that is what a
// machine needs. When no zone has enough, the one with most left is used all the same, and short says so, for an
// event: what is counted as taken may not be, and EC2 knows best. left is what [Free] counts.
func Choose(subnets []Subnet, left func(id string) int64, need Need) (choices []Choice, short string) {
	byZone := map[string]Choice{}
	for _, s := range subnets {
		choice := Choice{Zone: s.Zone, ID: s.ID, Left: left(s.ID)}
		choice.Enough = choice.Left >= need.Total()
		if best, any := byZone[s.Zone]; !any || better(choice, best) {
			byZone[s.Zone] = choice
		}
	}
	for _, choice := range byZone {
		choices = append(choices, choice)
	}
	slices.SortFunc(choices, func(a, b Choice) int { return strings.Compare(a.Zone, b.Zone) })
	if len(choices) == 0 || slices.ContainsFunc(choices, func(c Choice) bool { return c.Enough }) {
		return choices, ""
	}
	most := 0
	for i, c := range choices {
		if c.Left > choices[most].Left {
			most = i
		}
	}
	choices[most].Enough = true
	best := choices[most]
	return choices, fmt.Sprintf("no subnet has the %d free addresses that a node may need: trying %s in %s, "+
		"which has %d; add subnets to the class, or addresses to these", need.Total(), best.ID, best.Zone, best.Left)
}

func better(a, b Choice) bool {
	return cmp.Or(cmp.Compare(b.Left, a.Left), strings.Compare(a.ID, b.ID)) < 0
}
