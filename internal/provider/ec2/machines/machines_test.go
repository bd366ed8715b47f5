package machines_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// clock shows the endpoint's time. Delayed calls happen soon, so asks wait only briefly for others.
type clock struct{ of *ec2test.Server }

func (c clock) Now() time.Time { return c.of.Now() }

func (clock) AfterFunc(_ time.Duration, f func()) func() {
	return timer.Real{}.AfterFunc(50*time.Millisecond, f)
}

type account struct {
	*ec2test.Server
	ms     *machines.Machines
	t      *testing.T
	client *ec2.Client // of who sets the stage
	subnet ec2test.Subnet
}

func newAccount(t *testing.T, o ec2test.Options) *account {
	t.Helper()
	a := &account{Server: ec2test.Start(t, o), t: t}
	a.client = ec2.NewFromConfig(a.OthersConfig())
	subnets, group := a.AddNetwork("c1", "us-east-1a")
	a.subnet = subnets[0]
	image := a.AddImage(ec2test.Image{Name: "amazon-eks-node-al2023-x86_64-standard-1.33-v20260801"})
	_, err := a.client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("nodes"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: &image.ID, SecurityGroupIds: []string{group.ID},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.ms = machines.New(t.Context(), machines.Config{EC2: ec2.NewFromConfig(a.Config()), Clock: clock{a.Server},
		Cluster: "c1", ZoneOf: func(string) string { return a.subnet.Zone }})
	return a
}

// launch makes n machines with tags, and returns their provider IDs.
func (a *account) launch(n int32, kind ec2types.DefaultTargetCapacityType, tags ...string) []string {
	a.t.Helper()
	in := &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(n), DefaultTargetCapacityType: kind,
		},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String("nodes"), Version: aws.String("$Latest"),
			},
			Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{
				{InstanceType: "m5.large", SubnetId: &a.subnet.ID},
			},
		}},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance}},
	}
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		in.TagSpecifications[0].Tags = append(in.TagSpecifications[0].Tags, ec2types.Tag{Key: &key, Value: &value})
	}
	out, err := a.client.CreateFleet(a.t.Context(), in)
	if err != nil {
		a.t.Fatal(err)
	}
	var ids []string
	for _, i := range out.Instances {
		for _, id := range i.InstanceIds {
			ids = append(ids, machines.ProviderID(a.subnet.Zone, id))
		}
	}
	slices.Sort(ids)
	return ids
}

var (
	onDemand = ec2types.DefaultTargetCapacityTypeOnDemand
	spot     = ec2types.DefaultTargetCapacityTypeSpot
)

func ours(more ...string) []string {
	return append([]string{tag.Pool + "=p", tag.Class + "=default", tag.ClusterName + "=c1", tag.Owner("c1") +
		"=owned"}, more...)
}

func idsOf(list []machines.Machine) []string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ProviderID())
	}
	return ids
}

// E-55: the machines of this cluster are listed, whoever launched them, in pages of any size, and no others.
func TestWhichMachinesAreListed(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{PageSize: 2})
	mine := append(a.launch(4, onDemand, ours()...),
		a.launch(1, spot, ours("karpenter.sh/nodeclaim=x", "team=blue")...)...)
	slices.Sort(mine)
	a.launch(1, onDemand, tag.Pool+"=p", tag.Class+"=default", tag.ClusterName+"=c2")
	a.launch(1, onDemand, tag.ClusterName+"=c1")
	a.launch(1, onDemand)
	list, err := a.ms.List(t.Context())
	if err != nil || !slices.Equal(idsOf(list), mine) {
		t.Errorf("listed %v, error %v; want %v", idsOf(list), err, mine)
	}
	for _, m := range list {
		want := karpenterv1.CapacityTypeOnDemand
		if m.Tags["team"] == "blue" {
			want = karpenterv1.CapacityTypeSpot
		}
		if m.CapacityType != want || m.Type != "m5.large" || m.Zone != "us-east-1a" || m.Launched.IsZero() ||
			len(m.Groups) != 1 || m.Ending || len(m.Addresses) == 0 {
			t.Errorf("%+v is incomplete, or not %s", m, want)
		}
	}
	if err := a.ms.End(t.Context(), mine[0], time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	a.Advance(time.Second)
	if list, _ = a.ms.List(t.Context()); len(list) != 5 ||
		!slices.ContainsFunc(list, func(m machines.Machine) bool { return m.Ending && m.ProviderID() == mine[0] }) {
		t.Errorf("while one ends %v are listed, want all 5 and that one ending", idsOf(list))
	}
	a.Advance(time.Minute)
	if list, _ = a.ms.List(t.Context()); !slices.Equal(idsOf(list), mine[1:]) {
		t.Errorf("after one has ended %v are listed, want %v", idsOf(list), mine[1:])
	}
}

// E-37: the machines of a launch are found by its tag.
func TestMachinesOfALaunch(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	one, two := launchid.New([]string{"u1", "u2"}, 0), launchid.New([]string{"u3"}, 0)
	want := a.launch(2, onDemand, ours(launchid.Key+"="+string(one))...)
	a.launch(1, onDemand, ours(launchid.Key+"="+string(two))...)
	list, err := a.ms.OfLaunches(t.Context(), []launchid.ID{one})
	if err != nil || !slices.Equal(idsOf(list), want) {
		t.Errorf("found %v, error %v; want %v", idsOf(list), err, want)
	}
	if list, err := a.ms.OfLaunches(t.Context(), []launchid.ID{one, two}); err != nil || len(list) != 3 {
		t.Errorf("found %v of both, error %v; want 3", idsOf(list), err)
	}
	if list, err := a.ms.OfLaunches(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("found %v of none, error %v", idsOf(list), err)
	}
}

// E-64: fields that some other servers leave out of an answer are taken from elsewhere.
func TestLooserAnswers(t *testing.T) {
	t.Parallel()
	a := newAccount(t,
		ec2test.Options{Faults: ec2test.Faults{Omit: []string{"spot-request", "zone-id", "groups", "token"}}})
	id := a.launch(1, spot, ours()...)[0]
	m, err := a.ms.Get(t.Context(), id, time.Time{})
	if err != nil || m.CapacityType != karpenterv1.CapacityTypeSpot || m.ProviderID() != id {
		t.Errorf("%+v, error %v", m, err)
	}
}

// ending is a client of a server that answers shutting-down for every instance to end, like moto.
type ending struct{ *ec2.Client }

func (e ending) TerminateInstances(ctx context.Context, in *ec2.TerminateInstancesInput,
	options ...func(*ec2.Options)) (
	*ec2.TerminateInstancesOutput, error,
) {
	out, err := e.Client.TerminateInstances(ctx, in, options...)
	if err == nil {
		for i := range out.TerminatingInstances {
			out.TerminatingInstances[i].CurrentState = &ec2types.InstanceState{
				Name: ec2types.InstanceStateNameShuttingDown,
			}
		}
	}
	return out, err
}

// E-64: an instance that has ended before the call is gone, whatever state the server reports.
func TestWhatHadEndedIsGone(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	id := a.launch(1, onDemand, ours()...)[0]
	ms := machines.New(t.Context(), machines.Config{EC2: ending{ec2.NewFromConfig(a.Config())}, Clock: clock{a.Server},
		Cluster: "c1"})
	if err := ms.End(t.Context(), id, time.Time{}, nil); err != nil {
		t.Errorf("ending it: %v", err)
	}
	a.Advance(time.Hour / 2)
	if err := ms.End(t.Context(), id, time.Time{}, nil); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("ending it again: error %v, want ErrNotFound", err)
	}
}

// in is a client of a server that shows every instance in one zone.
type in struct {
	*ec2.Client
	zone string
}

func (c in) DescribeInstances(ctx context.Context, ask *ec2.DescribeInstancesInput, options ...func(*ec2.Options)) (
	*ec2.DescribeInstancesOutput, error,
) {
	out, err := c.Client.DescribeInstances(ctx, ask, options...)
	if err == nil {
		for _, r := range out.Reservations {
			for i := range r.Instances {
				r.Instances[i].Placement = &ec2types.Placement{AvailabilityZone: &c.zone}
			}
		}
	}
	return out, err
}

// E-46: what is listed is found and ended by that provider ID, however its zone is named: a Wavelength Zone, one whose
// name nobody knows yet, or none that the server tells.
func TestAMachineOfAnyZoneIsFoundAndEnded(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"us-east-1-wl1-bos-wlz-1", "us-west-2-lax-1a", "moon", ""} {
		a := newAccount(t, ec2test.Options{})
		a.launch(1, onDemand, ours()...)
		ms := machines.New(t.Context(), machines.Config{EC2: in{ec2.NewFromConfig(a.Config()), zone},
			Clock: clock{a.Server}, Cluster: "c1"})
		list, err := ms.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("zone %q: listed %v, error %v", zone, idsOf(list), err)
		}
		id := list[0].ProviderID()
		if m, err := ms.Get(t.Context(), id, time.Time{}); err != nil || m.ProviderID() != id {
			t.Errorf("Get(%q) returns %+v, error %v", id, m, err)
		}
		if err := ms.End(t.Context(), id, time.Time{}, nil); err != nil {
			t.Errorf("End(%q): %v, want it to be accepted", id, err)
		}
		if state := a.Instances()[0].State; state != ec2test.ShuttingDown && state != ec2test.Terminated {
			t.Errorf("the instance %q is %s, want it to end", id, state)
		}
	}
}

// E-39: an instance that EC2 does not show yet is not gone; one that has ended is, and so is one that stays unknown.
func TestWhenAMachineIsGone(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{Faults: ec2test.Faults{Visibility: ec2test.Visibility{Share: 1,
		Least: metav1.Duration{Duration: 90 * time.Second}, Most: metav1.Duration{Duration: 90 * time.Second}}}})
	launched := a.Now()
	id := a.launch(1, onDemand, ours()...)[0]
	for range 3 {
		if _, err := a.ms.Get(t.Context(), id, launched); err == nil || errors.Is(err, provider.ErrNotFound) {
			t.Errorf("not shown yet: error %v, want one that leaves it open", err)
		}
		a.Advance(25 * time.Second)
	}
	a.Advance(time.Minute)
	if m, err := a.ms.Get(t.Context(), id, launched); err != nil || m.ProviderID() != id {
		t.Errorf("shown at last: %+v, error %v", m, err)
	}
	const never = "aws:///us-east-1a/i-00000000000000bad"
	if err := a.ms.End(t.Context(), never, time.Time{}, nil); err == nil || errors.Is(err, provider.ErrNotFound) {
		t.Errorf("the first answer that does not know it: error %v, want one that leaves it open", err)
	}
	a.Advance(3 * time.Minute)
	_, _ = a.ms.Get(t.Context(), never, time.Time{})
	a.Advance(11 * time.Second)
	if _, err := a.ms.Get(t.Context(), never, time.Time{}); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("unknown for minutes: error %v, want ErrNotFound", err)
	}
	for _, bad := range []string{"", "kwok://n1"} {
		if _, err := a.ms.Get(t.Context(), bad, time.Time{}); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: error %v, want ErrNotFound", bad, err)
		}
	}
}

// E-54: ends are asked for together; one that EC2 refuses fails alone, with its message.
func TestEnds(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	ids := a.launch(20, onDemand, ours()...)
	a.Protect(ids[7][strings.LastIndex(ids[7], "/")+1:])
	ended := make([]error, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() { ended[i] = a.ms.End(context.WithoutCancel(t.Context()), id, time.Time{}, nil) })
	}
	group.Wait()
	for i, err := range ended {
		if i == 7 {
			if err == nil || !strings.Contains(err.Error(), "OperationNotPermitted") {
				t.Errorf("the protected one: error %v, want EC2's", err)
			}
		} else if err != nil {
			t.Errorf("machine %d: %v", i, err)
		}
	}
	a.Advance(time.Hour / 2)
	if err := a.ms.End(t.Context(), ids[0], time.Time{}, nil); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("ending one that has ended: error %v, want ErrNotFound", err)
	}
	if calls := a.Counts()["ec2:TerminateInstances"]; calls > 12 {
		t.Errorf("%d calls for 20 machines", calls)
	}
}

// E-61: an instance that EC2 has reported as ended is not asked about again: the claim asks after its node has ended
// the machine.
func TestWhatHasEndedIsNotAskedAboutAgain(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	id := a.launch(1, onDemand, ours()...)[0]
	if err := a.ms.End(t.Context(), id, time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	a.Advance(time.Minute)
	if err := a.ms.End(t.Context(), id, time.Time{}, nil); !errors.Is(err, provider.ErrNotFound) {
		t.Fatalf("ending it again: error %v, want ErrNotFound", err)
	}
	a.Forget()
	if _, err := a.ms.Get(t.Context(), id, time.Time{}); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("asking for it: error %v, want ErrNotFound", err)
	}
	if err := a.ms.End(t.Context(), id, time.Time{}, nil); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("ending it once more: error %v, want ErrNotFound", err)
	}
	if counts := a.Counts(); len(counts) != 0 {
		t.Errorf("calls %v, want none", counts)
	}
	a.Advance(2 * time.Hour) // EC2 itself has forgotten it
	if _, err := a.ms.Get(t.Context(), id, a.Now()); err == nil || a.Counts()["ec2:DescribeInstances"] == 0 {
		t.Errorf("after a while: error %v, calls %v, want EC2 to be asked", err, a.Counts())
	}
}

// A cluster's machines are read in one call, and throttling is reported as throttling.
func TestQuestionsAreGathered(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	ids := a.launch(30, onDemand, ours()...)
	var group sync.WaitGroup
	failed := make(chan error, len(ids))
	for _, id := range ids {
		group.Go(func() {
			if m, err := a.ms.Get(t.Context(), id, time.Time{}); err != nil || m.ProviderID() != id {
				failed <- fmt.Errorf("%s: %+v, %w", id, m, err)
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if calls := a.Counts()["ec2:DescribeInstances"]; calls > 15 {
		t.Errorf("%d calls for 30 machines", calls)
	}
	if err := a.SetFaults(ec2test.Faults{Throttle: map[string]ec2test.Bucket{"ec2:*": {}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ms.List(t.Context()); !errors.Is(err, provider.ErrThrottled) {
		t.Errorf("throttled: error %v, want ErrThrottled", err)
	}
	if _, err := a.ms.Get(t.Context(), ids[0], time.Time{}); !errors.Is(err, provider.ErrThrottled) {
		t.Errorf("throttled: error %v, want ErrThrottled", err)
	}
}
