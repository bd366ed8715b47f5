package launch

import (
	"cmp"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Kind is the kind of a capacity reservation. EC2 needs a different request for each, so a launch has one kind.
type Kind string

// The kinds, in order of use: a block ends, and an interruptible reservation may be taken back.
const (
	Plain         Kind = "default"
	Block         Kind = "capacity-block"
	Interruptible Kind = "interruptible"
)

// Reservation is the capacity reservation that an offering takes machines from.
type Reservation struct {
	ID   string
	Kind Kind
	Left int // free machines
}

// Offer is an offering that fits a claim.
type Offer struct {
	Type, Zone   string
	CapacityType string          // as in package catalog
	Price        resources.Money // per hour; resources.Unpriced when unknown
	// Reservation belongs to offers of capacity type reserved; it is the zero value for others.
	Reservation Reservation
	// Available is true if it has capacity now.
	Available bool
	// Exotic is true if the type has something that few pods need ([Exotic]).
	Exotic bool
}

// Exotic reports whether a type is bare metal, or has GPUs or other accelerators.
func Exotic(info *ec2types.InstanceTypeInfo) bool {
	metal := info.BareMetal != nil && *info.BareMetal
	return metal || info.GpuInfo != nil || info.InferenceAcceleratorInfo != nil || info.NeuronInfo != nil ||
		info.FpgaInfo != nil || info.MediaAcceleratorInfo != nil
}

// Choice is what a launch asks for.
type Choice struct {
	// CapacityType is "" when nothing is available.
	CapacityType string
	// Kind is that of the reservations, "" for other capacity types.
	Kind Kind
	// Offers are of the one capacity type and kind, cheapest first.
	Offers []Offer
}

// Choose picks the offers of a launch among those that fit its claims (E-27): the first available of reserved, spot
// and on-demand. It leaves out exotic types if a plain one fits, and spot offers that cost more than the cheapest
// on-demand offer. If all spot offers do, the launch is on-demand. Offers that a minimum needs stay. The order of the
// offers does not matter. A launch into a capacity block has one reservation, whatever the minima: EC2 does not
// document that it accepts more.
func Choose(offers []Offer, minima []Least) Choice {
	var reserved, others []Offer
	for _, o := range offers {
		switch {
		case !o.Available:
		case o.CapacityType == catalog.Reserved:
			reserved = append(reserved, o)
		default:
			others = append(others, o)
		}
	}
	slices.SortFunc(reserved, compare)
	slices.SortFunc(others, compare)
	if len(reserved) > 0 {
		return chooseReserved(reserved, minima)
	}
	spot := of(others, func(o Offer) bool { return o.CapacityType == catalog.Spot })
	onDemand := of(others, func(o Offer) bool { return o.CapacityType == catalog.OnDemand })
	mayBe := func(Offer) bool { return true }
	if slices.ContainsFunc(others, plain) {
		mayBe = plain
	}
	cheap, rest := of(spot, mayBe), of(onDemand, mayBe)
	if len(rest) > 0 {
		cheap = of(cheap, func(o Offer) bool { return o.Price <= rest[0].Price })
	}
	switch {
	case len(cheap) > 0:
		return Choice{CapacityType: catalog.Spot, Offers: restore(cheap, spot, minima)}
	case len(rest) > 0:
		return Choice{CapacityType: catalog.OnDemand, Offers: restore(rest, onDemand, minima)}
	}
	return Choice{}
}

// chooseReserved picks among reserved offers; there is at least one.
func chooseReserved(reserved []Offer, minima []Least) Choice {
	for _, kind := range []Kind{Plain, Block, Interruptible} {
		fit := of(reserved, func(o Offer) bool { return o.Reservation.Kind == kind })
		if len(fit) == 0 {
			continue
		}
		chosen := fit
		if slices.ContainsFunc(fit, plain) {
			chosen = restore(of(fit, plain), fit, minima)
		}
		if kind == Block {
			id := chosen[0].Reservation.ID
			chosen = of(chosen, func(o Offer) bool { return o.Reservation.ID == id })
		}
		return Choice{CapacityType: catalog.Reserved, Kind: kind, Offers: chosen}
	}
	return Choice{}
}

func plain(o Offer) bool { return !o.Exotic }

// of returns the offers that takes accepts, in their order.
func of(offers []Offer, takes func(Offer) bool) []Offer {
	var list []Offer
	for _, o := range offers {
		if takes(o) {
			list = append(list, o)
		}
	}
	return list
}

// compare orders offers by price. Among equal reserved ones the reservation with the most free machines comes first.
func compare(a, b Offer) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone),
		strings.Compare(a.CapacityType, b.CapacityType), cmp.Compare(b.Reservation.Left, a.Reservation.Left),
		strings.Compare(a.Reservation.ID, b.Reservation.ID))
}

// restore adds offers of all to chosen as far as unmet minima need them: plain ones before exotic ones, the cheapest
// first. all is ordered; so is the result.
func restore(chosen, all []Offer, minima []Least) []Offer {
	values := make([]map[string]bool, len(minima)) // by minimum: the present values
	take := func(o Offer) {
		for i, m := range minima {
			if value := m.Value(o.Type); value != "" {
				values[i][value] = true
			}
		}
	}
	for i := range minima {
		values[i] = map[string]bool{}
	}
	for _, o := range chosen {
		take(o)
	}
	list := slices.Clone(chosen)
	for _, o := range append(of(all, plain), of(all, func(o Offer) bool { return o.Exotic })...) {
		for i, m := range minima {
			if value := m.Value(o.Type); value != "" && !values[i][value] && len(values[i]) < m.Least {
				list = append(list, o)
				take(o)
				break
			}
		}
	}
	slices.SortStableFunc(list, compare)
	return list
}
