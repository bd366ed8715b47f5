package resolve_test

import (
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

func reserved(list ...awsv1.CapacityReservationSelectorTerm) func(*awsv1.EC2NodeClassSpec) {
	return func(s *awsv1.EC2NodeClassSpec) { s.CapacityReservationSelectorTerms = list }
}

func reservations(class *awsv1.EC2NodeClass) string {
	var list []string
	for _, r := range class.Status.CapacityReservations {
		list = append(list, r.ID)
	}
	return strings.Join(list, " ")
}

// E-13: reservations by id, tags, owner and match criteria; their free capacity is beside the status.
func TestReservationsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tags := map[string]string{"team": "a"}
	add := w.AddCapacityReservation
	add(ec2test.CapacityReservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Total: 3, Tags: tags})
	add(ec2test.CapacityReservation{ID: "cr-2", Type: "c5.large", Zone: "us-east-1b", Match: "open", Tags: tags,
		Interruptible: true})
	add(ec2test.CapacityReservation{ID: "cr-3", Type: "c5.large", Zone: "us-east-1b", Owner: "999988887777"})
	for name, c := range map[string]struct {
		terms []awsv1.CapacityReservationSelectorTerm
		want  string
	}{
		"ids":  {[]awsv1.CapacityReservationSelectorTerm{{ID: "cr-3"}, {ID: "cr-1"}}, "cr-1 cr-3"},
		"tags": {[]awsv1.CapacityReservationSelectorTerm{{Tags: tags}}, "cr-1 cr-2"},
		"any": {
			[]awsv1.CapacityReservationSelectorTerm{
				{Tags: map[string]string{"team": "*"}, InstanceMatchCriteria: "open"},
			}, "cr-2",
		},
		"targeted": {
			[]awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "targeted", OwnerID: ec2test.Account}},
			"cr-1",
		},
		"twice": {[]awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}, {Tags: tags}}, "cr-1 cr-2"},
	} {
		class := w.class(name, reserved(c.terms...))
		w.resolve()
		if got := reservations(class); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		w.expect(class, resolve.CapacityReservationsReady, "True", resolve.CapacityReservationsReady)
		if r := w.results[name].Reservations[0]; r.ID == "cr-1" &&
			(r.Available != 3 || r.Total != 3 || r.State != "active") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	class := w.classes[len(w.classes)-1]
	edit(class, reserved())
	w.resolve()
	if got := reservations(class); got != "" || strings.Contains(kinds(class), resolve.CapacityReservationsReady) {
		t.Errorf("without terms: %s, conditions %s", got, kinds(class))
	}
}

// E-13: a capacity block is expiring in its last 40 minutes, and then gone.
func TestACapacityBlockExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ends := w.Now().Add(time.Hour)
	w.AddCapacityReservation(ec2test.CapacityReservation{
		ID: "cr-1", Type: "p5.48xlarge", Zone: "us-east-1a", Kind: "capacity-block", Ends: ends,
	})
	class := w.class("a", reserved(awsv1.CapacityReservationSelectorTerm{ID: "cr-1"}))
	state := func(want string) {
		t.Helper()
		w.resolve()
		if r := class.Status.CapacityReservations; len(r) != 1 || r[0].State != want ||
			!r[0].EndTime.Time.Equal(ends) {
			t.Errorf("%+v, want it %s", r, want)
		}
	}
	state("active")
	w.Advance(19 * time.Minute)
	state("active")
	w.Advance(time.Minute)
	state("expiring")
	w.Advance(40 * time.Minute)
	w.resolve()
	w.expect(class, resolve.CapacityReservationsReady, "False", resolve.CapacityReservationNotFound,
		"cr-1 (p5.48xlarge in us-east-1a)")
	w.expect(class, ready, "True", "Ready")
}

// E-77: unusable reservations are named with their purpose; an unknown one does not hide the others.
func TestReservationsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a"})
	w.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-2", Type: "m5.large", Zone: "us-east-1f"})
	w.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-3", Type: "m5.large", Zone: "us-east-1b"})
	w.EndReservation("cr-3")
	class := w.class("a", reserved(awsv1.CapacityReservationSelectorTerm{ID: "cr-0"},
		awsv1.CapacityReservationSelectorTerm{ID: "cr-1"},
		awsv1.CapacityReservationSelectorTerm{ID: "cr-2"}, awsv1.CapacityReservationSelectorTerm{ID: "cr-3"}))
	w.ready()
	if got := reservations(class); got != "cr-1" {
		t.Errorf("found %s, want cr-1", got)
	}
	w.expect(class, resolve.CapacityReservationsReady, "False", resolve.CapacityReservationNotFound,
		"[0] (id cr-0): there is none", "cr-2 (m5.large in us-east-1f) is in a zone where the class has no subnet",
		"cr-3 (m5.large in us-east-1b) is expired")
}
