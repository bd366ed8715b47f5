package cloud

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// Market is a set of markets. A market is a zone with a capacity type; capacity runs out by market.
type Market uint8

// AllMarkets are the four markets.
const AllMarkets Market = 1<<4 - 1

// marketNames returns the markets in the order of their bits.
func marketNames() [4][2]string {
	return [4][2]string{{"zone-a", catalog.Spot}, {"zone-a", catalog.OnDemand}, {"zone-b", catalog.Spot},
		{"zone-b", catalog.OnDemand}}
}

// Names returns the zones and capacity types of a set.
func (m Market) Names() [][2]string {
	var names [][2]string
	for i, name := range marketNames() {
		if m&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String names the markets of a set.
func (m Market) String() string {
	var parts []string
	for _, name := range m.Names() {
		parts = append(parts, name[0]+"/"+name[1])
	}
	return strings.Join(parts, ",")
}

// Offers are what the cloud sells, for every set of sold-out markets. They never change, so all simulations of a
// process share them.
type Offers struct {
	without [AllMarkets + 1]kwok.Inventory
	disks   int // that machines state, or NothingStated
}

// NothingStated means that the number of disks that machines attach is not stated.
const NothingStated = -1

// NewOffers returns five small types in four markets, which state that they attach this number of disks.
func NewOffers(disks int) (*Offers, error) {
	offers := Offers{disks: disks}
	for out := range offers.without {
		inventory, err := kwok.ParseInventory([]byte(describe(Market(out), disks, nil, nil)))
		if err != nil {
			return nil, fmt.Errorf("reading the simulated cloud's types: %w", err)
		}
		offers.without[out] = inventory
	}
	return &offers, nil
}

// kinds returns the types.
func kinds() []machineKind {
	return []machineKind{
		{"c.2", 2, 4, 8, 0.027, 0.085}, {"m.2", 2, 8, 8, 0.031, 0.096}, {"m.4", 4, 16, 16, 0.061, 0.192},
		{"c.8", 8, 16, 30, 0.105, 0.340}, {"m.8", 8, 32, 30, 0.122, 0.384},
	}
}

type machineKind struct {
	name                 string
	cpus, memory, pods   int
	spotPrice, fullPrice float64
}

// FullPrice returns the on-demand price of a type, in dollars per hour; 0 for an unknown type.
func FullPrice(name string) float64 {
	for _, kind := range kinds() {
		if kind.name == name {
			return kind.fullPrice
		}
	}
	return 0
}

// Types returns the names of the types.
func Types() []string {
	var names []string
	for _, kind := range kinds() {
		names = append(names, kind.name)
	}
	return names
}

// lot is a reservation, and whether it has room.
type lot struct {
	Reservation
	sold bool
}

// reservedPart divides the full price of a type to get its price in a reservation, as the provider for EC2 does.
const reservedPart = 1000

// describe returns the types as an instance types file, in which sold-out markets are unavailable. lots are by type.
// spot has the factors on spot prices by zone, where they are not 1.
func describe(out Market, disks int, lots map[string][]lot, spot map[string]float64) string {
	var types []string
	stated := ""
	if disks != NothingStated {
		stated = fmt.Sprintf(`, "attachable-volumes-csi-disk.example.com": "%d"`, disks)
	}
	for _, kind := range kinds() {
		var offerings []string
		for i, market := range marketNames() {
			price := kind.fullPrice
			if market[1] == catalog.Spot {
				price = kind.spotPrice
				if factor, changed := spot[market[0]]; changed {
					price *= factor
				}
			}
			offerings = append(offerings, fmt.Sprintf(`{"Price": %g, "Available": %t, "Requirements": [
				{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [%q]},
				{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [%q]}]}`, price, out&(1<<i) == 0,
				market[1], market[0]))
		}
		for _, each := range lots[kind.name] {
			offerings = append(offerings, fmt.Sprintf(`{"Price": %g, "Available": %t, "ReservationCapacity": %d,
				"Requirements": [
				{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [%q]},
				{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [%q]}]}`,
				kind.fullPrice/reservedPart, each.sold, each.Count, catalog.Reserved, each.Zone))
		}
		types = append(types, fmt.Sprintf(`{"name": %q, "architecture": "amd64", "operatingSystems": ["linux"],
			"resources": {"cpu": "%d", "memory": "%dGi", "pods": "%d", "ephemeral-storage": "20Gi"%s}, "offerings": [%s]}`,
			kind.name, kind.cpus, kind.memory, kind.pods, stated, strings.Join(offerings, ",")))
	}
	return "[" + strings.Join(types, ",") + "]"
}
