package cloud

import (
	"fmt"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// Reservation is capacity that is paid for whether machines use it or not: so many of a type in a zone.
type Reservation struct {
	Type, Zone string
	Count      int
}

// covers reports whether a machine runs in the reservation.
func (r Reservation) covers(m *Machine) bool {
	return m.CapacityType == catalog.Reserved && m.Type == r.Type && m.Zone == r.Zone
}

// Reserve changes the size of the reservation for a type in a zone, to no less than what is used. A size of 0 ends the
// reservation: its machines run on, on demand. It returns these.
func (c *Cloud) Reserve(r Reservation) []*Machine {
	var inside []*Machine
	for _, m := range c.Machines() {
		if r.covers(m) {
			inside = append(inside, m)
		}
	}
	c.reserved = slices.DeleteFunc(c.reserved, func(old Reservation) bool {
		return old.Type == r.Type && old.Zone == r.Zone
	})
	if r.Count > 0 {
		r.Count = max(r.Count, len(inside))
		c.reserved = append(c.reserved, r)
		return nil
	}
	for _, m := range inside {
		m.CapacityType = catalog.OnDemand
		m.Instance.Labels[karpenterv1.CapacityTypeLabelKey] = catalog.OnDemand
		m.Node.Labels[karpenterv1.CapacityTypeLabelKey] = catalog.OnDemand
	}
	return inside
}

// Reservations returns the reservations, each with the number of places that no machine uses.
func (c *Cloud) Reservations() map[Reservation]int {
	free := map[Reservation]int{}
	for _, r := range c.reserved {
		free[r] = r.Count
		for _, m := range c.Machines() {
			if r.covers(m) {
				free[r]--
			}
		}
	}
	return free
}

// inventory returns what is on sale now: without these markets, with the reservations that have room, at the prices of
// now.
func (c *Cloud) inventory(out Market) (kwok.Inventory, error) {
	if len(c.reserved) == 0 && len(c.spot) == 0 {
		return c.config.Offers.without[out], nil
	}
	lots := map[string][]lot{}
	for r, free := range c.Reservations() {
		lots[r.Type] = append(lots[r.Type], lot{Reservation: r, sold: free > 0})
	}
	for _, each := range lots {
		slices.SortFunc(each, func(a, b lot) int { return strings.Compare(a.Zone, b.Zone) })
	}
	text := describe(out, c.config.Offers.disks, lots, c.spot)
	if found, known := c.inventories[text]; known {
		return found, nil
	}
	parsed, err := kwok.ParseInventory([]byte(text))
	if err != nil {
		return kwok.Inventory{}, fmt.Errorf("reading the simulated cloud's types: %w", err)
	}
	c.inventories[text] = parsed
	return parsed, nil
}
