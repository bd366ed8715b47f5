package resolve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

const (
	describeReservations = "ec2:DescribeCapacityReservations"
	// reservationsFor is how long an answer holds (E-13).
	reservationsFor = time.Minute
	// expiringFor is how long before its end a capacity block stops to take machines (E-13). EC2 ends instances half
	// an hour before the end, and pods need time to leave.
	expiringFor = 40 * time.Minute
	// mostReservations is how many ids one call has. EC2 documents no bound; its answers have 1,000.
	mostReservations = 200
)

// Values of fields of a reservation in the status.
const (
	reservationActive   = "active"
	reservationExpiring = "expiring"
	capacityBlock       = "capacity-block"
)

// Reservation is a capacity reservation, with fields that change too often for a status.
type Reservation struct {
	awsv1.CapacityReservation
	Total, Available int64 // machines

	state, platform string
}

func reservationOf(c ec2types.CapacityReservation) Reservation {
	r := Reservation{
		CapacityReservation: awsv1.CapacityReservation{
			ID: value(c.CapacityReservationId), AvailabilityZone: value(c.AvailabilityZone),
			InstanceMatchCriteria: string(c.InstanceMatchCriteria), InstanceType: value(c.InstanceType),
			Interruptible: value(c.Interruptible), OwnerID: value(c.OwnerId),
			ReservationType: string(c.ReservationType),
		},
		Total: int64(value(c.TotalInstanceCount)), Available: int64(value(c.AvailableInstanceCount)),
		state: string(c.State), platform: string(c.InstancePlatform),
	}
	if c.EndDate != nil {
		r.EndTime = &metav1.Time{Time: *c.EndDate}
	}
	return r
}

// at returns the reservation with its state at now.
func (c Reservation) at(now time.Time) Reservation {
	c.State = reservationActive
	if c.ReservationType == "" {
		c.ReservationType = "default"
	}
	if c.ReservationType == capacityBlock && c.EndTime != nil && c.EndTime.Sub(now) <= expiringFor {
		c.State = reservationExpiring
	}
	return c
}

// what returns a text with the id, type and zone of a reservation.
func (c Reservation) what() string {
	return fmt.Sprintf("%s (%s in %s)", c.ID, c.InstanceType, c.AvailabilityZone)
}

// Expiring reports whether it is a capacity block near its end: it takes no new machines, and its machines are drained
// (E-13).
func (c Reservation) Expiring() bool { return c.State == reservationExpiring }

// useless returns why no machine of the class can use a reservation; "" when one can. zones are those of the class's
// subnets; nil when unknown.
func (c Reservation) useless(zones map[string]bool, now time.Time) string {
	what := c.what()
	switch {
	case c.state != reservationActive:
		return what + " is " + c.state
	case c.EndTime != nil && !c.EndTime.After(now):
		return what + " has ended"
	case c.platform != "" && !strings.HasPrefix(c.platform, "Linux"):
		return what + " is for " + c.platform
	case zones != nil && !zones[c.AvailabilityZone]:
		return what + " is in a zone where the class has no subnet"
	}
	return ""
}

func reservationKey(term awsv1.CapacityReservationSelectorTerm) string {
	if term.ID != "" {
		return idKey(term.ID)
	}
	return termKey(term)
}

// askReservations asks for the reservations of all classes: those by id together, each other term once.
func (r *Resolver) askReservations(ctx context.Context, classes []*awsv1.EC2NodeClass) {
	wanted := map[string]awsv1.CapacityReservationSelectorTerm{}
	for _, class := range classes {
		for _, term := range class.Spec.CapacityReservationSelectorTerms {
			wanted[reservationKey(term)] = term
		}
	}
	holds := func(string, []Reservation) time.Duration { return reservationsFor }
	var ids []string
	for _, key := range r.knownReservations.due(r.now(), slices.Collect(maps.Keys(wanted)), holds) {
		term := wanted[key]
		if term.ID != "" {
			ids = append(ids, term.ID)
			continue
		}
		asked := r.now()
		in := &ec2.DescribeCapacityReservationsInput{Filters: reservationFilters(term)}
		if found, err := r.listReservations(ctx, in); err != nil {
			r.knownReservations.failed(key, r.now(), failureOf(describeReservations, err))
		} else {
			r.knownReservations.answered(key, asked, found)
		}
	}
	for chunk := range slices.Chunk(ids, mostReservations) {
		r.askReservationIDs(ctx, chunk)
	}
}

// Reservations returns capacity reservations by id, whether a class chooses them or not: machines may run in one that
// no class chooses any more. It asks for unknown and old ones.
func (r *Resolver) Reservations(ctx context.Context, ids []string) []Reservation {
	var keys []string
	for _, id := range ids {
		keys = append(keys, idKey(id))
	}
	due := r.knownReservations.due(r.now(), keys, func(string, []Reservation) time.Duration { return reservationsFor })
	var ask []string
	for _, id := range ids {
		if slices.Contains(due, idKey(id)) {
			ask = append(ask, id)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patienceWithAll)
	defer cancel()
	for chunk := range slices.Chunk(ask, mostReservations) {
		r.askReservationIDs(ctx, chunk)
	}
	var found []Reservation
	for _, id := range ids {
		for _, c := range r.knownReservations.get(idKey(id)).value {
			found = append(found, c.at(r.now()))
		}
	}
	return found
}

func reservationFilters(term awsv1.CapacityReservationSelectorTerm) (filters []ec2types.Filter) {
	add := func(name, value string) {
		if value != "" {
			filters = append(filters, ec2types.Filter{Name: &name, Values: []string{value}})
		}
	}
	add("owner-id", term.OwnerID)
	add("instance-match-criteria", term.InstanceMatchCriteria)
	for _, key := range slices.Sorted(maps.Keys(term.Tags)) {
		if term.Tags[key] == "*" {
			add("tag-key", key)
		} else {
			add("tag:"+key, term.Tags[key])
		}
	}
	return filters
}

// askReservationIDs asks by id. There is no filter for ids, so EC2 refuses a call with an id that does not exist. That
// id is taken out, and the call is repeated for the others.
func (r *Resolver) askReservationIDs(ctx context.Context, ids []string) {
	ask := func(ctx context.Context, ids []string) error {
		asked := r.now()
		found, err := r.listReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: ids})
		if err != nil {
			return err
		}
		for _, id := range ids {
			mine := slices.DeleteFunc(slices.Clone(found), func(c Reservation) bool { return c.ID != id })
			r.knownReservations.answered(idKey(id), asked, mine)
		}
		return nil
	}
	failed := batch.Apart(ctx, ids, ask, func(err error) batch.Fault {
		if noSuchReservation(err) {
			return batch.OfAnID
		}
		return batch.OfTheCall
	})
	for _, id := range ids {
		if err := failed[id]; err != nil && noSuchReservation(err) {
			r.knownReservations.answered(idKey(id), r.now(), nil)
		} else if err != nil {
			r.knownReservations.failed(idKey(id), r.now(), failureOf(describeReservations, err))
		}
	}
}

func noSuchReservation(err error) bool {
	return strings.HasPrefix(refusal.Of(err).Code, "InvalidCapacityReservationId.")
}

func (r *Resolver) listReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput) (
	found []Reservation, err error,
) {
	err = pages(ctx, func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.config.EC2.DescribeCapacityReservations(ctx, in)
		if err != nil || out.CapacityReservations == nil {
			return nil, cmp.Or(err, errNoContent)
		}
		for _, c := range out.CapacityReservations {
			found = append(found, reservationOf(c))
		}
		return out.NextToken, nil
	})
	return found, err
}

// Untaken adds to a result that no NodePool can use some reservations. why has the reasons, by id (E-77). In the
// condition, a term that finds only such reservations counts as finding none. They stay in the status, since a pool
// may change.
func (r *Resolver) Untaken(class *awsv1.EC2NodeClass, of Result, why map[string]string) Result {
	at := slices.IndexFunc(of.Conditions, func(c karpenterv1.Condition) bool {
		return c.Type == CapacityReservationsReady
	})
	if at < 0 || len(why) == 0 {
		return of
	}
	again := Result{Status: of.Status}
	r.judgeReservations(class, &again, why, r.now())
	of.Conditions = slices.Clone(of.Conditions)
	of.Conditions[at] = again.Conditions[0]
	return of
}

// judgeReservations decides which reservations a class may use. untaken are those that no pool can use. It is not
// called for a class without terms.
func (r *Resolver) judgeReservations(
	class *awsv1.EC2NodeClass, into *Result, untaken map[string]string, now time.Time,
) {
	b := newBasis()
	var problems []string
	usable := map[string]Reservation{}
	for i, term := range class.Spec.CapacityReservationSelectorTerms {
		a := r.knownReservations.get(reservationKey(term))
		b.add(a.state, reservationsFor)
		some := false
		var why []string
		for _, c := range a.value {
			if text := c.useless(into.zones(), now); text != "" {
				why = append(why, text)
				continue
			}
			usable[c.ID] = c.at(now)
			if text := untaken[c.ID]; text != "" {
				why = append(why, c.what()+" "+text)
				continue
			}
			some = true
		}
		if !some {
			problems = append(problems, fmt.Sprintf("spec.capacityReservationSelectorTerms[%d] (%s): %s", i,
				reservationText(term), whyNone(why)))
		}
	}
	if !b.known {
		into.keep(CapacityReservationsReady, r, class, b, now)
		return
	}
	into.Reservations, into.ReservationsAsked, into.Status.CapacityReservations = nil, b.asked, nil
	for _, id := range slices.Sorted(maps.Keys(usable)) {
		into.Reservations = append(into.Reservations, usable[id])
		into.Status.CapacityReservations = append(into.Status.CapacityReservations, usable[id].CapacityReservation)
	}
	if len(problems) > 0 {
		text := strings.Join(problems, "; ") + "; machines are launched without what is missing"
		into.add(unmet(CapacityReservationsReady, CapacityReservationNotFound, text), b, now)
		return
	}
	into.add(met(CapacityReservationsReady, ""), b, now)
}

func whyNone(why []string) string {
	if len(why) == 0 {
		return "there is none"
	}
	return listed(why)
}

func reservationText(term awsv1.CapacityReservationSelectorTerm) string {
	parts := []string{termText(term.ID, "", term.Tags)}
	if term.OwnerID != "" {
		parts = append(parts, "owner "+term.OwnerID)
	}
	if term.InstanceMatchCriteria != "" {
		parts = append(parts, term.InstanceMatchCriteria)
	}
	return strings.TrimPrefix(strings.Join(parts, ", "), ", ")
}
