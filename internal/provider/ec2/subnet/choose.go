package subnet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Choice is the chosen subnet of a zone.
type Choice struct {
	Zone, ID string
	Left     int64 // addresses
	// Enough is true if a machine may be launched there. Otherwise the zone's offerings of the type are unavailable.
	Enough bool
}

// Choose returns for each zone the subnet with the most free addresses, ordered by zone, and whether these are enough
// for a machine. If no zone has enough, the one with the most counts as enough anyway, and short is the text of an
// event: our count may be too low, and EC2 knows best. left returns the count of [Free].
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
