package offering

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
)

const (
	// expiresWithin is how long before its end a capacity block stops to take machines (E-13).
	expiresWithin = 40 * time.Minute
	capacityBlock = "capacity-block"
	expiring      = "expiring"
	// reservedPart divides the on-demand price of a type to get its price in a reservation, which is paid for in any
	// case. The result is lower than any other price, and keeps the order of the types.
	reservedPart = 1000
	// reservedUnknown is that price for a type without an on-demand price, sold only in capacity blocks.
	reservedUnknown = resources.Dollar
)

// reservation is a way to buy a type in reserved capacity.
type reservation struct {
	id, zone  string
	labels    requirement.Set
	covers    int // machines of this cluster, including those in it
	available bool
}

// reservations returns the reservations of the class in zones of its subnets, by type, each list by zone and id. It
// leaves out ended ones.
func (w *work) reservations() map[string][]reservation {
	all := map[string][]reservation{}
	for _, r := range w.in.Class.Status.CapacityReservations {
		labels, known := w.zones[r.AvailabilityZone]
		if !known || r.EndTime != nil && !w.in.Now.Before(r.EndTime.Time) {
			continue
		}
		left, _ := w.in.Reservations.Left(r.ID)
		labels = labels.And(requirement.FromLabels(map[string]string{
			string(LabelReservationID): r.ID, string(LabelReservationType): cmp.Or(r.ReservationType, "default"),
			string(LabelReservationInterruptible): strconv.FormatBool(r.Interruptible),
		}))
		covers := min(left+max(0, w.in.InReservation[r.ID]), math.MaxInt32)
		all[r.InstanceType] = append(all[r.InstanceType], reservation{
			id: r.ID, zone: r.AvailabilityZone, labels: labels, covers: int(covers),
			available: left > 0 && !ends(r, w.in.Now),
		})
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b reservation) int {
			return cmp.Or(strings.Compare(a.zone, b.zone), strings.Compare(a.id, b.id))
		})
	}
	return all
}

// ends reports whether a reservation takes no more machines because it will end soon. Only a capacity block ends its
// machines; those of other reservations continue as on-demand.
func ends(r awsv1.CapacityReservation, now time.Time) bool {
	return r.State == expiring ||
		r.ReservationType == capacityBlock && r.EndTime != nil && !now.Add(expiresWithin).Before(r.EndTime.Time)
}

// left returns the free addresses of a subnet.
func (w *work) left(id string) int64 { return w.state.free[id].left }

// atRest is left without launches under way.
func (w *work) atRest(id string) int64 { return w.state.free[id].atRest }

// offerings returns the offerings of a type for the class: by zone, on-demand before spot, and reserved ones at the
// end.
func (w *work) offerings(k *kind, node instancetype.Node) []catalog.Offering {
	enough := w.roomFor(k, node.Pods)
	list := make([]catalog.Offering, 0, 2*len(k.zones)+len(w.state.reserved[k.name]))
	onDemand, priced := w.in.Prices.OnDemand(k.name)
	if !priced {
		onDemand = Unknown
	}
	hasOnDemand, hasSpot := k.onDemand && w.allowed(k, catalog.OnDemand), k.spot && w.allowed(k, catalog.Spot)
	for _, zone := range k.zones {
		labels, ours := w.zones[zone]
		if !ours {
			continue
		}
		offer := func(capacityType string, price resources.Money, has bool) {
			has = has && enough[zone] && !w.lacks(Pool{Type: k.name, Zone: zone, CapacityType: capacityType})
			list = append(list, catalog.Offering{Zone: zone, CapacityType: capacityType, Labels: labels, Price: price,
				Available: has})
		}
		if k.onDemand {
			offer(catalog.OnDemand, onDemand, hasOnDemand)
		}
		if k.spot {
			price, priced := w.in.Prices.Spot(k.name, zone)
			if !priced {
				price = Unknown
			}
			offer(catalog.Spot, price, hasSpot)
		}
	}
	for _, r := range w.state.reserved[k.name] {
		if !slices.Contains(k.zones, r.zone) {
			continue
		}
		pool := Pool{Type: k.name, Zone: r.zone, CapacityType: catalog.Reserved, Reservation: r.id}
		list = append(list, catalog.Offering{
			Zone: r.zone, CapacityType: catalog.Reserved, Labels: r.labels, Price: reservedPrice(onDemand),
			Reservation: r.covers,
			Available:   r.available && enough[r.zone] && w.allowed(k, catalog.Reserved) && !w.lacks(pool),
		})
	}
	return list
}

// dedicated returns the offerings of a type on dedicated machines, all on-demand. EC2 does not publish their spot
// prices, or the tenancy of capacity reservations.
func (w *work) dedicated(k *kind, node instancetype.Node) []catalog.Offering {
	price, sold := w.in.Prices.Dedicated(k.name)
	if !sold || !k.onDemand {
		return nil
	}
	var list []catalog.Offering
	enough, allowed := w.roomFor(k, node.Pods), w.allowed(k, catalog.OnDemand)
	for _, zone := range k.zones {
		if labels, ours := w.zones[zone]; ours {
			pool := Pool{Type: k.name, Zone: zone, CapacityType: catalog.OnDemand}
			list = append(list, catalog.Offering{Zone: zone, CapacityType: catalog.OnDemand, Labels: labels,
				Price: price, Available: allowed && enough[zone] && !w.lacks(pool)})
		}
	}
	return list
}

// allowed reports whether no known quota is used up for a type (E-43).
func (w *work) allowed(k *kind, capacityType string) bool {
	return !w.state.marks.Marked(k.name, k.vcpus, capacityType)
}

func reservedPrice(onDemand resources.Money) resources.Money {
	if onDemand == Unknown {
		return reservedUnknown
	}
	return onDemand / reservedPart
}

// lacks reports whether a pool of the class counts as short. A pool that is short in general is also short in a
// placement group, but not the other way round.
func (w *work) lacks(p Pool) bool {
	if w.state.lacking[p.Type][p] {
		return true
	}
	p.PlacementGroup = w.state.placement.ID
	return p.PlacementGroup != "" &&
		(w.state.lacking[p.Type][p] || w.state.lacking[""][SpreadZone(p.PlacementGroup, p.Zone)])
}
