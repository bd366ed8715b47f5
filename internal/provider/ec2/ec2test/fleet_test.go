package ec2test_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// account is an endpoint with the resources of a launch.
type account struct {
	*ec2test.Server
	t       *testing.T
	client  *ec2.Client
	subnets []ec2test.Subnet
	group   ec2test.SecurityGroup
	image   ec2test.Image
}

func newAccount(t *testing.T, f ec2test.Faults) *account {
	t.Helper()
	return accountOf(t, ec2test.Options{Faults: f})
}

func accountOf(t *testing.T, o ec2test.Options) *account {
	t.Helper()
	o.Unjudged = raw
	a := &account{Server: ec2test.Start(t, o), t: t}
	a.client = client(a.Server)
	a.subnets, a.group = a.AddNetwork("c1", "us-east-1a", "us-east-1b", "us-east-1c")
	a.image = a.AddImage(ec2test.Image{Name: "amazon-eks-node-al2023-x86_64-standard-1.33-v20260801"})
	a.template("t1", func(*ec2types.RequestLaunchTemplateData) {})
	return a
}

func (a *account) template(name string, change func(*ec2types.RequestLaunchTemplateData)) {
	a.t.Helper()
	data := &ec2types.RequestLaunchTemplateData{
		ImageId: &a.image.ID, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh"))),
		SecurityGroupIds: []string{a.group.ID},
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{
			DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{
				VolumeSize: aws.Int32(30),
			},
		}},
	}
	change(data)
	_, err := a.client.CreateLaunchTemplate(a.t.Context(),
		&ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("karpenter.k8s.aws/" + name),
			LaunchTemplateData: data})
	wantCode(a.t, err, "")
}

// fleet is a request for n machines of some types in all zones.
func (a *account) fleet(n int32, kind ec2types.DefaultTargetCapacityType, types ...string) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(n),
			DefaultTargetCapacityType: kind},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String("karpenter.k8s.aws/t1"), Version: aws.String("$Latest"),
			},
		}},
		TagSpecifications: []ec2types.TagSpecification{
			{ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("joiner.sh/launch"),
				Value: aws.String("l1")}}},
			{ResourceType: ec2types.ResourceTypeVolume, Tags: []ec2types.Tag{{Key: aws.String("of"),
				Value: aws.String("volume")}}},
		},
	}
	if kind == ec2types.DefaultTargetCapacityTypeSpot {
		strategy := ec2types.SpotAllocationStrategyPriceCapacityOptimized
		in.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: strategy}
	} else {
		strategy := ec2types.FleetOnDemandAllocationStrategyLowestPrice
		in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: strategy}
	}
	for _, kind := range types {
		for _, n := range a.subnets {
			in.LaunchTemplateConfigs[0].Overrides = append(in.LaunchTemplateConfigs[0].Overrides,
				ec2types.FleetLaunchTemplateOverridesRequest{
					InstanceType: ec2types.InstanceType(kind), SubnetId: aws.String(n.ID),
					AvailabilityZone: aws.String(n.Zone),
				})
		}
	}
	return in
}

const (
	spot     = ec2types.DefaultTargetCapacityTypeSpot
	onDemand = ec2types.DefaultTargetCapacityTypeOnDemand
)

func (a *account) launch(in *ec2.CreateFleetInput) *ec2.CreateFleetOutput {
	a.t.Helper()
	out, err := a.client.CreateFleet(a.t.Context(), in)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// taken prints the result of a fleet: "2 c5.large/us-east-1a, InsufficientInstanceCapacity c5.large/us-east-1b".
func taken(out *ec2.CreateFleetOutput) string {
	var list []string
	for _, i := range out.Instances {
		list = append(list, fmt.Sprintf("%d %s/%s", len(i.InstanceIds), i.InstanceType,
			*i.LaunchTemplateAndOverrides.Overrides.AvailabilityZone))
	}
	for _, e := range out.Errors {
		o := e.LaunchTemplateAndOverrides.Overrides
		list = append(list, fmt.Sprintf("%s %s/%s", *e.ErrorCode, o.InstanceType, *o.AvailabilityZone))
	}
	return strings.Join(list, ", ")
}

// E-63: the cheapest pool gives, by spot price of the zone and by on-demand price of the type.
func TestTheCheapestPoolGives(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.SetPrice("c5.large", 0.08)
	a.SetPrice("m5.large", 0.09)
	a.SetSpotPrice("m5.large", "us-east-1b", 0.001)
	if got, want := taken(a.launch(a.fleet(3, onDemand, "m5.large", "c5.large"))),
		"3 c5.large/us-east-1a"; got != want {
		t.Errorf("on demand: %s, want %s", got, want)
	}
	if got, want := taken(a.launch(a.fleet(3, spot, "m5.large", "c5.large"))), "3 m5.large/us-east-1b"; got != want {
		t.Errorf("spot: %s, want %s", got, want)
	}
}

// E-63, E-41: pools are finite, and an answer has instances and errors.
func TestPoolsAreFinite(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{Pools: []ec2test.Pool{
		{Type: "c5.large", Zone: "us-east-1a", CapacityType: "*", Free: 2},
		{Type: "c5.large", Zone: "us-east-1b", CapacityType: "on-demand", Code: "UnfulfillableCapacity"},
		{Type: "c5.large", Zone: "*", CapacityType: "on-demand", Free: 1},
	}})
	out := a.launch(a.fleet(5, onDemand, "c5.large"))
	want := "2 c5.large/us-east-1a, 1 c5.large/us-east-1c, InsufficientInstanceCapacity c5.large/us-east-1a, " +
		"UnfulfillableCapacity c5.large/us-east-1b, InsufficientInstanceCapacity c5.large/us-east-1c"
	if got := taken(out); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	_, err := a.client.TerminateInstances(t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: out.Instances[0].InstanceIds})
	wantCode(t, err, "")
	if got := taken(a.launch(a.fleet(2, onDemand, "c5.large"))); got != "2 c5.large/us-east-1a" {
		t.Errorf("after an end: %s, want what was given back", got)
	}
}

// E-37: the answers to a repeated client token.
func TestClientTokens(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	in := a.fleet(2, onDemand, "c5.large")
	in.ClientToken = aws.String("token-1")
	first := a.launch(in)
	again := a.launch(in)
	if *again.FleetId != *first.FleetId || taken(again) != taken(first) ||
		!slices.Equal(again.Instances[0].InstanceIds,
			first.Instances[0].InstanceIds) {
		t.Errorf("replayed as %s %s, want %s %s", *again.FleetId, taken(again), *first.FleetId, taken(first))
	}
	other := a.fleet(2, onDemand, "c5.large", "m5.large")
	other.ClientToken = in.ClientToken
	_, err := a.client.CreateFleet(t.Context(), other)
	wantCode(t, err, "IdempotentParameterMismatch")
	for _, c := range []struct {
		tokens ec2test.TokenBehaviour
		code   string
		got    string
		sum    int
	}{
		{ec2test.TokenFleetOnly, "", "", 2},
		{ec2test.TokenMismatch, "IdempotentParameterMismatch", "", 2},
		{ec2test.TokenIgnore, "", "2 c5.large/us-east-1a", 4},
	} {
		if err := a.SetFaults(ec2test.Faults{Tokens: c.tokens}); err != nil {
			t.Fatal(err)
		}
		out, err := a.client.CreateFleet(t.Context(), in)
		wantCode(t, err, c.code)
		if err == nil &&
			(taken(out) != c.got || c.tokens == ec2test.TokenFleetOnly && *out.FleetId != *first.FleetId) {
			t.Errorf("%s: %s %s", c.tokens, *out.FleetId, taken(out))
		}
		if n := len(a.Instances()); n != c.sum {
			t.Errorf("%s: %d instances, want %d", c.tokens, n, c.sum)
		}
	}
}

// E-41 to E-43: the refusal of a pool is reported beside the pool.
func TestWhatAPoolIsRefusedFor(t *testing.T) {
	t.Parallel()
	a := newAccount(t,
		ec2test.Faults{Quotas: []ec2test.Quota{{Group: "standard", CapacityType: "on-demand", VCPUs: 2}}})
	arm := a.AddImage(ec2test.Image{Name: "arm", Architecture: "arm64"})
	old := a.image.ID
	for name, c := range map[string]struct {
		change func(*ec2types.RequestLaunchTemplateData)
		types  string
		want   string
	}{
		"image": {func(d *ec2types.RequestLaunchTemplateData) { d.ImageId = aws.String("ami-0123456789abcdef0") },
			"c5.large", "InvalidAMIID.NotFound"},
		"arm": {func(d *ec2types.RequestLaunchTemplateData) { d.ImageId = &arm.ID }, "c5.large",
			"InvalidParameterValue"},
		"group": {func(d *ec2types.RequestLaunchTemplateData) { d.SecurityGroupIds = []string{"sg-1"} }, "c5.large",
			"InvalidGroup.NotFound"},
		"volume": {func(d *ec2types.RequestLaunchTemplateData) {
			d.BlockDeviceMappings[0].Ebs.VolumeSize = aws.Int32(8)
		},
			"c5.large", "InvalidBlockDeviceMapping"},
		"enclaves": {func(d *ec2types.RequestLaunchTemplateData) {
			d.ImageId, d.EnclaveOptions = &old, &ec2types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)}
		}, "t3.micro", "Unsupported"},
		"quota": {func(d *ec2types.RequestLaunchTemplateData) { d.ImageId = &old }, "c5.xlarge",
			"VcpuLimitExceeded"},
		"nowhere": {func(d *ec2types.RequestLaunchTemplateData) { d.ImageId = &old }, "no.such",
			"InvalidParameterValue"},
	} {
		a.template("for-"+name, c.change)
		out := a.launch(by(a.fleet(1, onDemand, c.types), "for-"+name))
		if len(out.Instances) > 0 || len(out.Errors) != 3 || *out.Errors[0].ErrorCode != c.want {
			t.Errorf("%s: %s, want three times %s", name, taken(out), c.want)
		}
	}
	if got := taken(a.launch(a.fleet(2, onDemand, "c5.large"))); !strings.HasPrefix(got,
		"1 c5.large/us-east-1a, VcpuLimitExceeded") {
		t.Errorf("a quota of 2 vCPUs: %s", got)
	}
	elsewhere := a.AddSubnet(ec2test.Subnet{Zone: "us-east-1e"})
	foreign := a.AddSubnet(ec2test.Subnet{Zone: "us-east-1a", VPC: "vpc-2"})
	for subnet, c := range map[string][2]string{elsewhere.ID: {"m7i.large", "Unsupported"}, foreign.ID: {"c5.large",
		"InvalidParameter"}} {
		in := a.fleet(1, spot)
		in.LaunchTemplateConfigs[0].Overrides = []ec2types.FleetLaunchTemplateOverridesRequest{{
			InstanceType: ec2types.InstanceType(c[0]), SubnetId: &subnet,
		}}
		if got := taken(a.launch(in)); !strings.HasPrefix(got, c[1]+" ") {
			t.Errorf("%s, want %s", got, c[1])
		}
	}
	missing := a.fleet(1, onDemand, "c5.large")
	missing.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("gone")
	_, err := a.client.CreateFleet(t.Context(), missing)
	wantCode(t, err, "InvalidLaunchTemplateName.NotFoundException")
	_, err = a.client.CreateFleet(t.Context(), a.fleet(10001, onDemand, "c5.large"))
	wantCode(t, err, "InvalidParameterValue")
	twice := a.fleet(1, onDemand, "c5.large", "c5.large")
	_, err = a.client.CreateFleet(t.Context(), twice)
	wantCode(t, err, "InvalidFleetConfig")
}

// E-41, E-42: errors that name no pool, instead of instances and beside them.
func TestErrorsWithoutAPool(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{FleetErrors: []ec2test.FleetError{
		{Code: "UnfulfillableCapacity", Share: 1, Times: 1, Instead: true}, {Code: "RequestLimitExceeded", Share: 1,
			Times: 1},
	}})
	for _, want := range []struct {
		instances int
		code      string
	}{{0, "UnfulfillableCapacity"}, {2, "RequestLimitExceeded"}, {2, ""}} {
		out := a.launch(a.fleet(2, onDemand, "c5.large"))
		count, code := 0, ""
		for _, i := range out.Instances {
			count += len(i.InstanceIds)
		}
		for _, e := range out.Errors {
			code = *e.ErrorCode
			if e.LaunchTemplateAndOverrides != nil {
				t.Errorf("%s names a pool: %+v", code, e.LaunchTemplateAndOverrides)
			}
		}
		if count != want.instances || code != want.code {
			t.Errorf("%d instances and %q, want %d and %q", count, code, want.instances, want.code)
		}
	}
}

// E-12: a subnet has only a limited number of addresses.
func TestSubnetsFill(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	for i, free := range []int{1, 20, 1} {
		if err := a.SetFaults(ec2test.Faults{FreeAddresses: map[string]int{a.subnets[i].ID: free}}); err != nil {
			t.Fatal(err)
		}
	}
	a.template("t2", func(d *ec2types.RequestLaunchTemplateData) {
		d.NetworkInterfaces = []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			{DeviceIndex: aws.Int32(0), Groups: d.SecurityGroupIds, Ipv4PrefixCount: aws.Int32(1)},
		}
		d.SecurityGroupIds = nil
	})
	in := a.fleet(2, onDemand, "c5.large")
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("karpenter.k8s.aws/t2")
	want := "1 c5.large/us-east-1b, InsufficientFreeAddressesInSubnet c5.large/us-east-1a, " +
		"InsufficientFreeAddressesInSubnet c5.large/us-east-1b, InsufficientFreeAddressesInSubnet c5.large/us-east-1c"
	if got := taken(a.launch(in)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	out, err := a.client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{a.subnets[1].ID}})
	if err != nil || *out.Subnets[0].AvailableIpAddressCount != 20-17 {
		t.Errorf("%+v %v, want 3 addresses left", out, err)
	}
	a.End(a.Instances()[0].ID, "Server.InternalError", "gone")
	if n := a.FreeAddresses(a.subnets[1].ID); n != 20 {
		t.Errorf("%d addresses are left after the end, want 20", n)
	}
}

// E-39, E-45, E-54: the life of an instance, as listings show it.
func TestTheLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	minute := metav1.Duration{Duration: time.Minute}
	a := newAccount(t, ec2test.Faults{Visibility: ec2test.Visibility{Share: 1, Least: minute, Most: minute}})
	id := a.launch(a.fleet(1, spot, "c5.large")).Instances[0].InstanceIds[0]
	describe := func() (ec2types.Instance, error) {
		out, err := a.client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
		if err != nil {
			return ec2types.Instance{}, err
		}
		return out.Reservations[0].Instances[0], nil
	}
	_, err := describe()
	wantCode(t, err, "InvalidInstanceID.NotFound")
	a.Advance(time.Minute)
	i, err := describe()
	wantCode(t, err, "")
	if i.State.Name != ec2types.InstanceStateNameRunning ||
		i.InstanceLifecycle != ec2types.InstanceLifecycleTypeSpot || i.SpotInstanceRequestId == nil ||
		!strings.HasPrefix(*i.PrivateDnsName, "ip-10-") || len(i.BlockDeviceMappings) != 1 ||
		*i.SecurityGroups[0].GroupId != a.group.ID {
		t.Errorf("running as %+v", i)
	}
	_, err = a.client.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id},
		Tags: []ec2types.Tag{{Key: aws.String("Name"), Value: aws.String("n")}}})
	wantCode(t, err, "")
	if i, _ = describe(); len(i.Tags) != 2 {
		t.Errorf("tags %+v, want two", i.Tags)
	}
	a.Interrupt(id)
	a.Advance(2*time.Minute - time.Second)
	if i, _ = describe(); i.State.Name != ec2types.InstanceStateNameRunning {
		t.Errorf("%s before the deadline of the interruption", i.State.Name)
	}
	a.Advance(time.Second)
	if i, _ = describe(); i.State.Name != ec2types.InstanceStateNameShuttingDown ||
		*i.StateReason.Code != "Server.SpotInstanceTermination" {
		t.Errorf("%s after it: %+v", i.State.Name, i.StateReason)
	}
	a.Advance(time.Minute)
	if i, _ = describe(); i.State.Name != ec2types.InstanceStateNameTerminated {
		t.Errorf("%s, want terminated", i.State.Name)
	}
	a.Advance(time.Hour)
	_, err = describe()
	wantCode(t, err, "InvalidInstanceID.NotFound")
}

// E-54: one invalid id fails the call completely; a protected instance fails only with those of its zone.
func TestTerminatingMany(t *testing.T) {
	t.Parallel()
	a := newAccount(t,
		ec2test.Faults{Pools: []ec2test.Pool{{Type: "*", Zone: "us-east-1a", CapacityType: "*", Free: 2}}})
	var ids []string
	for _, i := range a.launch(a.fleet(3, onDemand, "c5.large")).Instances {
		ids = append(ids, i.InstanceIds...)
	}
	end := func(ids ...string) error {
		_, err := a.client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids})
		return err
	}
	states := func() string {
		var all []string
		for _, i := range a.Instances() {
			all = append(all, i.State)
		}
		return strings.Join(all, " ")
	}
	err := end(append(ids, "i-0123456789abcdef0")...)
	wantCode(t, err, "InvalidInstanceID.NotFound")
	if !strings.Contains(err.Error(), "'i-0123456789abcdef0'") {
		t.Errorf("%v names no id", err)
	}
	wantCode(t, end("nonsense"), "InvalidInstanceID.Malformed")
	if got := states(); got != "pending pending pending" {
		t.Errorf("%s after failed calls", got)
	}
	a.Protect(ids[0])
	wantCode(t, end(ids...), "OperationNotPermitted")
	if got := states(); got != "pending pending shutting-down" {
		t.Errorf("%s: the zone of the protected one stays, others end", got)
	}
}

// E-62: dry runs return what would happen, and change nothing.
func TestDryRuns(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	in := a.fleet(1, onDemand, "c5.large")
	in.DryRun = aws.Bool(true)
	run := &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "c5.large",
		SubnetId:       &a.subnets[0].ID,
		LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("karpenter.k8s.aws/t1")},
	}
	try := func(want string) {
		t.Helper()
		_, err := a.client.CreateFleet(t.Context(), in)
		wantCode(t, err, want)
		_, err = a.client.RunInstances(t.Context(), run)
		wantCode(t, err, want)
	}
	try("DryRunOperation")
	a.Deny(func(ask ec2test.Ask) string {
		if strings.HasPrefix(ask.Resource, "arn:aws:ec2:us-east-1:111122223333:launch-template/") {
			return "because no permissions boundary allows it"
		}
		return ""
	})
	try("UnauthorizedOperation")
	if n := len(a.Instances()); n != 0 {
		t.Errorf("%d instances after dry runs", n)
	}
}
