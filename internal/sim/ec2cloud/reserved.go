package ec2cloud

import (
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// This file gives accounts capacity reservations.

// ReservationLabel has the id of a node's reservation.
const ReservationLabel = string(offering.LabelReservationID)

// reserved is what is reserved for a type in a zone, by the ids of the reservations.
type reserved struct {
	cloud.Reservation
	ids []string
}

// chosen is the tag by which the node class chooses reservations.
func chosen() map[string]string { return map[string]string{"cluster": clusterName} }

// Type returns the EC2 type for a type of the simulated cloud; "" for none.
func Type(name string) string {
	if i := slices.Index(cloud.Types(), name); i >= 0 && i < len(types()) {
		return types()[i]
	}
	return ""
}

// Reserving is how reservations are bought.
type Reserving struct {
	// Open ones take every machine that fits and does not ask to stay out.
	Open bool
	// Split buys two reservations instead of one; each has half of the places.
	Split bool
}

// Reserve changes the size of the reservations for a type in a zone, to no less than what is used. A size of 0 ends
// them: their machines run on, on demand.
func (a *Account) Reserve(r cloud.Reservation, how Reserving) {
	at := slices.IndexFunc(a.reserved, func(old reserved) bool { return old.Type == r.Type && old.Zone == r.Zone })
	switch {
	case at < 0 && r.Count > 0:
		made := reserved{Reservation: r}
		match, parts := "targeted", 1
		if how.Open {
			match = "open"
		}
		if how.Split {
			parts = 2
		}
		for part := range parts {
			made.ids = append(made.ids, a.endpoint.AddCapacityReservation(ec2test.CapacityReservation{Type: r.Type,
				Zone: r.Zone, Total: (r.Count + part) / parts, Match: match, Tags: chosen()}).ID)
		}
		a.reserved = append(a.reserved, made)
	case at >= 0 && r.Count > 0:
		for part, id := range a.reserved[at].ids {
			a.endpoint.ResizeReservation(id, (r.Count+part)/len(a.reserved[at].ids))
		}
		a.reserved[at].Count = r.Count
	case at >= 0:
		for _, id := range a.reserved[at].ids {
			a.endpoint.EndReservation(id)
		}
		a.reserved = slices.Delete(a.reserved, at, at+1)
		a.leave()
	}
}

// leave notes which machines are in no reservation any more.
func (a *Account) leave() {
	for _, i := range a.endpoint.Instances() {
		if m := a.byID[i.ID]; m != nil {
			m.CapacityType = capacityType(&i)
			m.Node.Labels[karpenterv1.CapacityTypeLabelKey] = m.CapacityType
			m.Instance.Labels[ReservationLabel] = i.Reservation
		}
	}
}

// capacityType returns the capacity type of an instance in Karpenter's terms. Only machines that were sent into a
// reservation are in one: on-demand ones stay out of open ones too (E-14).
func capacityType(i *ec2test.Instance) string {
	if i.Reservation != "" {
		return catalog.Reserved
	}
	return i.CapacityType
}

// Reservations returns the reservations, each with the number of places that no machine uses.
func (a *Account) Reservations() map[cloud.Reservation]int {
	free := map[cloud.Reservation]int{}
	for _, r := range a.reserved {
		for _, id := range r.ids {
			free[r.Reservation] += a.endpoint.FreePlaces(id)
		}
	}
	return free
}
