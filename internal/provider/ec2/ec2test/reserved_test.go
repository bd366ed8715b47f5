package ec2test_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// by makes the fleet use another template of the account.
func by(in *ec2.CreateFleetInput, name string) *ec2.CreateFleetInput {
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("karpenter.k8s.aws/" +
		name)
	return in
}

func (a *account) free(id string) int32 {
	a.t.Helper()
	out, err := a.client.DescribeCapacityReservations(a.t.Context(),
		&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}})
	if err != nil {
		a.t.Fatal(err)
	}
	return *out.CapacityReservations[0].AvailableInstanceCount
}

// E-13, E-14: reserved capacity is counted down by launches that name it, and by launches that let EC2 use open
// reservations.
func TestReservations(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{Pools: []ec2test.Pool{{Type: "*", Zone: "*", CapacityType: "*", Free: 0}}})
	target := a.AddCapacityReservation(ec2test.CapacityReservation{Type: "c5.large", Zone: "us-east-1b", Total: 2})
	open := a.AddCapacityReservation(ec2test.CapacityReservation{Type: "m5.large", Zone: "us-east-1c", Total: 1,
		Match: "open"})
	for name, spec := range map[string]*ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
		"target": {CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: &target.ID}},
		"none":   {CapacityReservationPreference: ec2types.CapacityReservationPreferenceNone},
	} {
		a.template(name, func(d *ec2types.RequestLaunchTemplateData) { d.CapacityReservationSpecification = spec })
	}
	out := a.launch(by(a.fleet(3, onDemand, "c5.large"), "target"))
	if got := taken(out); !strings.HasPrefix(got, "2 c5.large/us-east-1b, ReservationCapacityExceeded") ||
		a.free(target.ID) != 0 {
		t.Errorf("by target: %s, %d left", got, a.free(target.ID))
	}
	if got := taken(a.launch(by(a.fleet(1, onDemand, "m5.large"), "none"))); !strings.HasPrefix(got,
		"InsufficientInstanceCapacity") {
		t.Errorf("without reservations: %s", got)
	}
	if got := taken(a.launch(a.fleet(1, onDemand, "m5.large"))); !strings.HasPrefix(got, "1 m5.large/us-east-1c") ||
		a.free(open.ID) != 0 {
		t.Errorf("by an open one: %s, %d left", got, a.free(open.ID))
	}
	_, err := a.client.TerminateInstances(t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: out.Instances[0].InstanceIds})
	wantCode(t, err, "")
	if n := a.free(target.ID); n != 2 {
		t.Errorf("%d left after the end, want 2", n)
	}
	a.EndReservation(target.ID)
	got := taken(a.launch(by(a.fleet(1, onDemand, "c5.large"), "target")))
	if !strings.HasPrefix(got, "InvalidCapacityReservationState.Unavailable") {
		t.Errorf("by one that has ended: %s", got)
	}
}

// E-13: a reservation with an end ends.
func TestReservationsEnd(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.AddCapacityReservation(ec2test.CapacityReservation{
		Type: "p5.48xlarge", Zone: "us-east-1a", Total: 1, Kind: "capacity-block", Ends: a.Now().Add(time.Hour),
	})
	active := func() int {
		filters := []ec2types.Filter{{Name: aws.String("state"), Values: []string{"active"}}}
		out, err := a.client.DescribeCapacityReservations(t.Context(),
			&ec2.DescribeCapacityReservationsInput{Filters: filters})
		wantCode(t, err, "")
		return len(out.CapacityReservations)
	}
	if n := active(); n != 1 {
		t.Errorf("%d active, want 1", n)
	}
	a.Advance(time.Hour)
	if n := active(); n != 0 {
		t.Errorf("%d active after its end", n)
	}
}

// E-13: the instances of a capacity block end half an hour before it; those of another reservation go on.
func TestACapacityBlockEndsItsInstances(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	for name, kind := range map[string]string{"block": "capacity-block", "plain": "default"} {
		r := a.AddCapacityReservation(ec2test.CapacityReservation{Type: "c5.large", Zone: "us-east-1b", Total: 1,
			Kind: kind, Ends: a.Now().Add(time.Hour)})
		a.template(name, func(d *ec2types.RequestLaunchTemplateData) {
			d.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
				CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: &r.ID}}
		})
		if out := a.launch(by(a.fleet(1, onDemand, "c5.large"), name)); len(out.Instances) != 1 {
			t.Fatalf("%s: %s", name, taken(out))
		}
	}
	ended := func() (codes []string) {
		for _, i := range a.Instances() {
			if i.Code != "" {
				codes = append(codes, i.Template+" "+i.Code)
			}
		}
		return codes
	}
	a.Advance(30*time.Minute - time.Second)
	if codes := ended(); len(codes) > 0 {
		t.Errorf("%v ended too early", codes)
	}
	a.Advance(time.Second)
	if codes := ended(); len(codes) != 1 || codes[0] != "karpenter.k8s.aws/block Server.CapacityBlockEnded" {
		t.Errorf("%v ended, want that in the block", codes)
	}
}

// E-15: a spread group has seven instances in a zone; a cluster group does not take every type.
func TestPlacementGroups(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	for _, strategy := range []string{"spread", "cluster"} {
		a.AddPlacementGroup(ec2test.PlacementGroup{Name: "g-" + strategy, Strategy: strategy})
	}
	for _, name := range []string{"g-spread", "g-cluster", "g-none"} {
		a.template(name, func(d *ec2types.RequestLaunchTemplateData) {
			d.Placement = &ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String(name)}
		})
	}
	if got := taken(a.launch(by(a.fleet(8, onDemand, "c5.large"), "g-spread"))); got !=
		"7 c5.large/us-east-1a, 1 c5.large/us-east-1b, InsufficientInstanceCapacity c5.large/us-east-1a" {
		t.Errorf("spread: %s", got)
	}
	if got := taken(a.launch(by(a.fleet(1, onDemand, "t3.large"), "g-cluster"))); !strings.HasPrefix(got,
		"InvalidParameterCombination") {
		t.Errorf("cluster: %s", got)
	}
	if got := taken(a.launch(by(a.fleet(1, onDemand, "c5.large"), "g-none"))); !strings.HasPrefix(got,
		"InvalidPlacementGroup.Unknown") {
		t.Errorf("unknown: %s", got)
	}
	out, err := a.client.DescribePlacementGroups(t.Context(),
		&ec2.DescribePlacementGroupsInput{GroupNames: []string{"g-spread"}})
	if err != nil || len(out.PlacementGroups) != 1 ||
		out.PlacementGroups[0].Strategy != ec2types.PlacementStrategySpread {
		t.Errorf("%+v %v", out, err)
	}
}
