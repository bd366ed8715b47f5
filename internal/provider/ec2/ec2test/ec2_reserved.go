package ec2test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// CapacityReservation is a capacity reservation.
type CapacityReservation struct {
	ID, Type, Zone string
	Owner          string // the account when empty
	Match          string // open or targeted (the default)
	Kind           string // default or capacity-block
	State          string // active when empty
	Interruptible  bool
	Total          int
	Ends           time.Time // zero for never
	Tags           map[string]string

	free int
}

// PlacementGroup is a placement group.
type PlacementGroup struct {
	ID, Name   string
	Strategy   string // cluster, partition or spread
	Partitions int
	Tags       map[string]string
}

// AddCapacityReservation adds a reservation, all of it free; what is empty is filled in.
func (s *Server) AddCapacityReservation(r CapacityReservation) CapacityReservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ID == "" {
		r.ID = s.newID("cr")
	}
	r.Owner, r.Match = cmp.Or(r.Owner, Account), cmp.Or(r.Match, "targeted")
	r.Kind, r.State, r.free = cmp.Or(r.Kind, "default"), cmp.Or(r.State, "active"), r.Total
	s.reservations[r.ID] = &r
	return r
}

// EndReservation makes a reservation expired.
func (s *Server) EndReservation(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reservations[id]; r != nil {
		s.expire(r)
	}
}

// ResizeReservation changes how many machines an active reservation has place for, to no less than it has now.
func (s *Server) ResizeReservation(id string, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reservations[id]; r != nil && r.State == "active" {
		used := r.Total - r.free
		r.Total = max(total, used)
		r.free = r.Total - used
	}
}

// FreePlaces returns how many more machines a reservation takes: none if it is not active.
func (s *Server) FreePlaces(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reservations[id]; r != nil && r.State == "active" {
		return r.free
	}
	return 0
}

// expire ends a reservation. Its instances run on outside of it.
func (s *Server) expire(r *CapacityReservation) {
	r.State = "expired"
	for _, i := range s.machines {
		if i.Reservation == r.ID && r.Kind != "capacity-block" {
			i.Reservation = ""
		}
	}
}

// AddPlacementGroup adds a placement group.
func (s *Server) AddPlacementGroup(g PlacementGroup) PlacementGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.ID == "" {
		g.ID = s.newID("pg")
	}
	s.placements[g.Name] = g
	return g
}

// blockEndsBefore is how long before the end of a capacity block its instances end.
const blockEndsBefore = 30 * time.Minute

// expireReservations ends those whose time is over, and the instances of capacity blocks half an hour before it.
func (s *Server) expireReservations() {
	for _, r := range s.reservations {
		if r.Ends.IsZero() {
			continue
		}
		if end := r.Ends.Add(-blockEndsBefore); r.Kind == "capacity-block" && !s.now().Before(end) {
			for _, id := range slices.Sorted(maps.Keys(s.machines)) {
				if i := s.machines[id]; i.Reservation == r.ID {
					s.end(i, end, "Server.CapacityBlockEnded", "Server.CapacityBlockEnded: the capacity block ends")
				}
			}
		}
		if r.State == "active" && !s.now().Before(r.Ends) {
			s.expire(r)
		}
	}
}

type describeReservationsIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"CapacityReservationId"`
}

type capacityReservationXML struct {
	ID            string `xml:"capacityReservationId"`
	ARN           string `xml:"capacityReservationArn"`
	Owner         string `xml:"ownerId"`
	Type          string `xml:"instanceType"`
	Platform      string `xml:"instancePlatform"`
	Zone          string `xml:"availabilityZone"`
	ZoneID        string `xml:"availabilityZoneId"`
	Tenancy       string `xml:"tenancy"`
	Total         int    `xml:"totalInstanceCount"`
	Free          int    `xml:"availableInstanceCount"`
	State         string `xml:"state"`
	EndKind       string `xml:"endDateType"`
	Ends          string `xml:"endDate,omitempty"`
	Match         string `xml:"instanceMatchCriteria"`
	Kind          string `xml:"reservationType"`
	Interruptible bool   `xml:"interruptible"`
	Tags          []tag  `xml:"tagSet>item"`
}

type describeReservationsOut struct {
	Reservations list[capacityReservationXML] `xml:"capacityReservationSet"`
	Next         *string                      `xml:"nextToken"`
}

var reservationFilters = fields[*CapacityReservation]{
	"instance-type":           one(func(r *CapacityReservation) string { return r.Type }),
	"owner-id":                one(func(r *CapacityReservation) string { return r.Owner }),
	"state":                   one(func(r *CapacityReservation) string { return r.State }),
	"availability-zone":       one(func(r *CapacityReservation) string { return r.Zone }),
	"instance-match-criteria": one(func(r *CapacityReservation) string { return r.Match }),
}

func describeCapacityReservations(c *call, in *describeReservationsIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "capacityReservationIds"); err != nil {
		return nil, err
	}
	list, err := named(c.reservations, in.IDs, "InvalidCapacityReservationId.NotFound",
		"The capacity reservation '%s' does not exist")
	if err != nil {
		return nil, err
	}
	list, err = filtered(list, in.Filters, reservationFilters,
		func(r *CapacityReservation) map[string]string { return r.Tags })
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(r *CapacityReservation) string { return r.ID }, in.paging, bounds{1, 1000})
	out := describeReservationsOut{Next: next}
	for _, r := range list {
		x := capacityReservationXML{
			ID: r.ID, ARN: c.arn("capacity-reservation", r.ID), Owner: r.Owner, Type: r.Type, Platform: "Linux/UNIX",
			Zone:   r.Zone,
			ZoneID: zoneID(r.Zone), Tenancy: "default", Total: r.Total, Free: r.free, State: r.State,
			EndKind: "unlimited", Match: r.Match, Kind: r.Kind, Interruptible: r.Interruptible, Tags: tagList(r.Tags),
		}
		if !r.Ends.IsZero() {
			x.EndKind, x.Ends = "limited", stamp(r.Ends)
		}
		out.Reservations.Items = append(out.Reservations.Items, x)
	}
	return out, err
}

// reservation returns the reservation that a launch from a pool would use: the target of its template, or an open one
// that fits; nil for none.
func (l *launch) reservation(p pool) (*CapacityReservation, error) {
	spec := p.template.data.Reservation
	if spec != nil && spec.Target != nil && spec.Target.ID != "" {
		r := l.reservations[spec.Target.ID]
		switch {
		case r == nil:
			return nil, refuse(400, "InvalidCapacityReservationId.NotFound",
				"The capacity reservation '%s' does not exist", spec.Target.ID)
		case r.State != "active":
			return nil, refuse(400, "InvalidCapacityReservationState.Unavailable",
				"The capacity reservation '%s' is %s", r.ID, r.State)
		case !r.takes(p) || r.free < 1:
			return nil, refuse(400, "ReservationCapacityExceeded",
				"The requested reservation does not have sufficient compatible and "+
					"available capacity for this request.")
		}
		return r, nil
	}
	if l.capacityType == spot || spec != nil && spec.Preference == "none" {
		return nil, nil
	}
	for _, id := range slices.Sorted(maps.Keys(l.reservations)) {
		if r := l.reservations[id]; r.Match == "open" && r.State == "active" && r.free > 0 && r.takes(p) {
			return r, nil
		}
	}
	if spec != nil && spec.Preference == "capacity-reservations-only" {
		return nil, refuse(400, "ReservationCapacityExceeded",
			"No open capacity reservation has capacity for this request.")
	}
	return nil, nil
}

func (r *CapacityReservation) takes(p pool) bool { return r.Type == p.kind && r.Zone == p.zone }

func (l *launch) hasReservation(p pool) error {
	_, err := l.reservation(p)
	return err
}

type describePlacementsIn struct {
	checked
	Filters []filter `query:"Filter"`
	IDs     []string `query:"GroupId"`
	Names   []string `query:"GroupName"`
}

type placementXML struct {
	ID         string `xml:"groupId"`
	Name       string `xml:"groupName"`
	ARN        string `xml:"groupArn"`
	State      string `xml:"state"`
	Strategy   string `xml:"strategy"`
	Partitions *int   `xml:"partitionCount"`
	Level      string `xml:"spreadLevel,omitempty"`
	Tags       []tag  `xml:"tagSet>item"`
}

type describePlacementsOut struct {
	Groups list[placementXML] `xml:"placementGroupSet"`
}

var placementFilters = fields[PlacementGroup]{
	"group-name": one(func(g PlacementGroup) string { return g.Name }),
	"strategy":   one(func(g PlacementGroup) string { return g.Strategy }),
	"state":      one(func(PlacementGroup) string { return "available" }),
}

const unknownPlacement = "InvalidPlacementGroup.Unknown"

func describePlacementGroups(c *call, in *describePlacementsIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	list, err := named(c.placements, in.Names, unknownPlacement, "The Placement Group '%s' is unknown.")
	if err != nil {
		return nil, err
	}
	for _, id := range in.IDs {
		if !slices.ContainsFunc(list, func(g PlacementGroup) bool { return g.ID == id }) {
			return nil, refuse(400, unknownPlacement, "The Placement Group '%s' is unknown.", id)
		}
	}
	list = slices.DeleteFunc(list, func(g PlacementGroup) bool {
		return len(in.IDs) > 0 && !slices.Contains(in.IDs,
			g.ID)
	})
	list, err = filtered(list, in.Filters, placementFilters, func(g PlacementGroup) map[string]string {
		return g.Tags
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b PlacementGroup) int { return strings.Compare(a.Name, b.Name) })
	var out describePlacementsOut
	for _, g := range list {
		x := placementXML{ID: g.ID, Name: g.Name, ARN: c.arn("placement-group", g.Name), State: "available",
			Strategy: g.Strategy, Tags: tagList(g.Tags)}
		if g.Strategy == "partition" {
			x.Partitions = &g.Partitions
		}
		if g.Strategy == "spread" {
			x.Level = "rack"
		}
		out.Groups.Items = append(out.Groups.Items, x)
	}
	return out, nil
}

// placement finds the group that a template names.
func (s *Server) placement(d *templateData) (PlacementGroup, bool) {
	if d.Placement == nil || d.Placement.Group == "" && d.Placement.GroupID == "" {
		return PlacementGroup{}, false
	}
	for _, g := range s.placements {
		if g.Name == d.Placement.Group || g.ID == d.Placement.GroupID {
			return g, true
		}
	}
	return PlacementGroup{Name: d.Placement.Group, ID: d.Placement.GroupID}, true
}

// spreadLimit is how many instances a spread group has in a zone.
const spreadLimit = 7

// hasPlacement refuses a group that does not exist or does not support the type, and more than spreadLimit instances
// of a spread group in a zone.
func (l *launch) hasPlacement(p pool) error {
	g, wanted := l.placement(&p.template.data)
	if !wanted {
		return nil
	}
	info := l.types[p.kind]
	switch {
	case g.Strategy == "":
		return refuse(400, unknownPlacement, "The Placement Group '%s' is unknown.", cmp.Or(g.Name, g.ID))
	case info.PlacementGroupInfo == nil || !slices.Contains(texts(info.PlacementGroupInfo.SupportedStrategies),
		g.Strategy):
		return refuse(400, codeBadTogether, "%s placement groups are not supported by the '%s' instance type.",
			g.Strategy, p.kind)
	case g.Strategy != "spread":
		return nil
	}
	count := 0
	for _, i := range l.machines {
		if of, in := l.placement(&i.data); in && i.runs() && i.Zone == p.zone && of.Name == g.Name {
			count++
		}
	}
	if count < spreadLimit {
		return nil
	}
	return refuse(500, "InsufficientInstanceCapacity",
		"Placement group %s has %d instances in %s, and that is the most.", g.Name, count, p.zone)
}
