package ec2_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// reserve adds reservations of m5.large in us-east-1a, by id with their places, which the class has found. It returns
// what shows them to another process.
func (a *account) reserve(places map[string]int64) (know func(*ec2.Provider)) {
	class, result := a.kube.classes["default"], resolve.Result{ReservationsAsked: a.server.Now()}
	for _, id := range slices.Sorted(maps.Keys(places)) {
		a.server.AddCapacityReservation(ec2test.CapacityReservation{ID: id, Type: "m5.large", Zone: "us-east-1a",
			Total: int(places[id])})
		r := awsv1.CapacityReservation{ID: id, InstanceType: "m5.large", AvailabilityZone: "us-east-1a",
			State: "active", ReservationType: "default"}
		class.Status.CapacityReservations = append(class.Status.CapacityReservations, r)
		result.Reservations = append(result.Reservations, resolve.Reservation{CapacityReservation: r,
			Total: places[id], Available: places[id]})
	}
	know = func(p *ec2.Provider) {
		p.Resolved([]*awsv1.EC2NodeClass{class}, map[string]resolve.Result{"default": result})
	}
	know(a.Provider)
	return know
}

// E-13, E-38: a machine has the labels of the reservation in which it is, also if its class chooses two of the same
// type in the same zone. Another process lists it so, too.
func TestAMachineHasTheLabelsOfItsReservation(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{})
	know := a.reserve(map[string]int64{"cr-1": 1, "cr-2": 1})
	var launched []provider.Instance
	for _, name := range []string{"one", "other"} {
		of := claim(name, must(karpenterv1.CapacityTypeLabelKey, catalog.Reserved))
		machine, err := a.Launch(t.Context(), of, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		a.kube.bind(of, machine.ProviderID)
		launched = append(launched, machine)
	}
	a.Settle(t)
	another := a.restart(t, s, "")
	know(another)
	list, err := another.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%d machines, error %v", len(list), err)
	}
	runs := map[string]string{}
	for _, i := range a.server.Instances() {
		runs[i.ID] = i.Reservation
	}
	for _, i := range append(launched, list...) {
		in := runs[i.ProviderID[len("aws:///us-east-1a/"):]]
		if got := i.Labels[string(offering.LabelReservationID)]; i.CapacityType != catalog.Reserved || got != in {
			t.Errorf("%s is %s in reservation %q, want %q", i.ProviderID, i.CapacityType, got, in)
		}
	}
}

// E-13: a plan for places of two reservations that are alike gets them at once. EC2 refuses a fleet with both.
func TestLaunchesAreSpreadOverReservations(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	a.reserve(map[string]int64{"cr-1": 2, "cr-2": 3})
	failures := make(chan error)
	for n := range 5 {
		go func() {
			of := claim(fmt.Sprintf("n%d", n), must(karpenterv1.CapacityTypeLabelKey, catalog.Reserved))
			_, err := a.Launch(t.Context(), of, time.Time{})
			failures <- err
		}()
	}
	for range 5 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	count := map[string]int{}
	for _, i := range a.server.Instances() {
		count[i.Reservation]++
	}
	if count["cr-1"] != 2 || count["cr-2"] != 3 {
		t.Errorf("machines by reservation: %v", count)
	}
}
