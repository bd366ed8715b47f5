package launch_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

func override(kind, zone, template string, price resources.Money) launch.Override {
	return launch.Override{Type: kind, Zone: zone, Subnet: "subnet-" + zone, Image: "ami-" + template,
		Template: template, Price: price}
}

// request is a launch of two machines from five pools.
func request(changes ...func(*launch.Request)) launch.Request {
	r := launch.Request{
		ID: "joiner-1", Count: 2, CapacityType: catalog.Spot, Tags: map[string]string{"b": "2", "a": "1"},
		Overrides: []launch.Override{override("m5.large", "a", "x86", 5), override("m5.large", "b", "x86", 3),
			override("c6g.large", "a", "arm", 3), override("c6g.large", "b", "arm", 2),
			override("m5.large", "a", "x86", 9)},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// E-28, E-36, E-57: type, token, number, pools by template and cheapest first, each once, and tags.
func TestFleets(t *testing.T) {
	t.Parallel()
	in := launch.Fleet(request())
	if in.Type != ec2types.FleetTypeInstant || *in.ClientToken != "joiner-1" || in.Context != nil ||
		*in.TargetCapacitySpecification.TotalTargetCapacity != 2 {
		t.Errorf("%+v", in)
	}
	var got []string
	for _, config := range in.LaunchTemplateConfigs {
		spec := config.LaunchTemplateSpecification
		got = append(got, *spec.LaunchTemplateName+"@"+*spec.Version)
		for _, o := range config.Overrides {
			got = append(got, fmt.Sprintf("%s/%s/%s/%s", o.InstanceType, *o.AvailabilityZone, *o.SubnetId, *o.ImageId))
		}
	}
	want := "arm@1 c6g.large/b/subnet-b/ami-arm c6g.large/a/subnet-a/ami-arm " +
		"x86@1 m5.large/b/subnet-b/ami-x86 m5.large/a/subnet-a/ami-x86"
	if strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", got, want)
	}
	var tags []string
	for _, spec := range in.TagSpecifications {
		tags = append(tags, string(spec.ResourceType))
		for _, tag := range spec.Tags {
			tags = append(tags, *tag.Key+*tag.Value)
		}
	}
	if got := strings.Join(tags, " "); got != "fleet a1 b2 instance a1 b2 volume a1 b2" {
		t.Errorf("tags: %s", got)
	}
	if *launch.Fleet(request(func(r *launch.Request) { r.Context = "some" })).Context != "some" {
		t.Error("the context is lost")
	}
	again := launch.Fleet(request(func(r *launch.Request) { slices.Reverse(r.Overrides[:4]) }))
	if !reflect.DeepEqual(again, in) {
		t.Errorf("in another order: %+v, want %+v", again, in)
	}
}

// E-28: strategies by capacity type; EC2 gets our ranking by price only if our prices are not its own.
func TestStrategies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		capacityType string
		kind         launch.Kind
		ranked       bool
		want         string
	}{
		{catalog.Spot, "", false, "spot price-capacity-optimized"},
		{catalog.Spot, "", true, "spot capacity-optimized-prioritized 0 1 1 2"},
		{catalog.OnDemand, "", false, "on-demand lowest-price"},
		{catalog.OnDemand, "", true, "on-demand prioritized 0 1 1 2"},
		{catalog.Reserved, launch.Plain, false, "on-demand lowest-price"},
		{catalog.Reserved, launch.Block, false, "capacity-block"},
		{catalog.Reserved, launch.Interruptible, false, "reserved-capacity interruptible-capacity-reservation"},
	} {
		in := launch.Fleet(request(func(r *launch.Request) {
			r.CapacityType, r.Kind, r.Ranked = c.capacityType, c.kind, c.ranked
		}))
		got := string(in.TargetCapacitySpecification.DefaultTargetCapacityType)
		if in.SpotOptions != nil {
			got += " " + string(in.SpotOptions.AllocationStrategy)
		}
		if in.OnDemandOptions != nil {
			got += " " + string(in.OnDemandOptions.AllocationStrategy)
		}
		if in.ReservedCapacityOptions != nil {
			got += " " + string(in.ReservedCapacityOptions.ReservationTypes[0])
		}
		for _, config := range in.LaunchTemplateConfigs {
			for _, o := range config.Overrides {
				if o.Priority != nil {
					got += fmt.Sprint(" ", *o.Priority)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.capacityType, c.kind, got, c.want)
		}
	}
}

// E-28: a request keeps within all bounds, and among them EC2's 50 templates.
func TestFleetsAreBounded(t *testing.T) {
	t.Parallel()
	r := request(func(r *launch.Request) { r.Overrides = nil })
	for i := range 80 {
		for j := range 8 {
			r.Overrides = append(r.Overrides, override(fmt.Sprintf("m%d.large", i), fmt.Sprintf("us-east-1%c", 'a'+j),
				fmt.Sprintf("karpenter.k8s.aws/%d", i), resources.Money(i)))
		}
	}
	in := launch.Fleet(r)
	count := 0
	for _, config := range in.LaunchTemplateConfigs {
		count += len(config.Overrides)
	}
	if n := len(in.LaunchTemplateConfigs); n != 300/8+1 || count != 300 {
		t.Errorf("%d templates and %d overrides", n, count)
	}
	for i := range r.Overrides {
		r.Overrides[i].Zone = "us-east-1a"
	}
	if n := len(launch.Fleet(r).LaunchTemplateConfigs); n != 50 {
		t.Errorf("%d templates, want 50", n)
	}
}

// answer parses "m5.large a", EC2's answer about a pool; "-" is none.
func answer(text string) *ec2types.LaunchTemplateAndOverridesResponse {
	var kind, zone string
	if _, err := fmt.Sscan(text, &kind, &zone); err != nil {
		return nil
	}
	o := &ec2types.FleetLaunchTemplateOverrides{}
	if kind != "-" {
		o.InstanceType = ec2types.InstanceType(kind)
	}
	if zone != "-" {
		o.AvailabilityZone = aws.String(zone)
	}
	return &ec2types.LaunchTemplateAndOverridesResponse{Overrides: o}
}

// E-28, E-64: a claim shows what was really launched, even if an answer lacks fields.
func TestMachinesOfAnAnswer(t *testing.T) {
	t.Parallel()
	reserved := func(r *launch.Request) {
		r.CapacityType, r.Kind = catalog.Reserved, launch.Plain
		r.Overrides = []launch.Override{override("m5.large", "a", "t", 0)}
		r.Overrides[0].Reservation = "cr-1"
	}
	for name, c := range map[string]struct {
		change    func(*launch.Request)
		lifecycle ec2types.InstanceLifecycle
		group     ec2types.CreateFleetInstance
		want      string
	}{
		"by its pool": {lifecycle: "spot", group: ec2types.CreateFleetInstance{
			LaunchTemplateAndOverrides: answer("m5.large b"),
		},
			want: "m5.large b subnet-b ami-x86 x86 3 spot"},
		"by what is said of it": {lifecycle: "spot", group: ec2types.CreateFleetInstance{InstanceType: "c6g.large",
			AvailabilityZone: aws.String("a")}, want: "c6g.large a subnet-a ami-arm arm 3 spot"},
		"by type and subnet": {group: ec2types.CreateFleetInstance{InstanceType: "c6g.large",
			SubnetId: aws.String("subnet-b")},
			want: "c6g.large b subnet-b ami-arm arm 2 spot"},
		"a lifecycle that was not asked for": {lifecycle: "on-demand", group: ec2types.CreateFleetInstance{
			LaunchTemplateAndOverrides: answer("m5.large b")}, want: "m5.large b subnet-b ami-x86 x86 3 on-demand"},
		"a pool that was not asked for": {lifecycle: "spot", group: ec2types.CreateFleetInstance{
			LaunchTemplateAndOverrides: answer("r5.large c")}, want: "r5.large c    unknown spot"},
		"several pools that it may be": {lifecycle: "spot", group: ec2types.CreateFleetInstance{
			InstanceType: "m5.large",
		},
			want: "m5.large     unknown spot"},
		"reserved, which EC2 calls on-demand": {change: reserved, lifecycle: "on-demand",
			want: "m5.large a subnet-a ami-t t 0 reserved"},
		"a block": {change: reserved, lifecycle: "capacity-block",
			want: "m5.large a subnet-a ami-t t 0 reserved"},
	} {
		r := request()
		if c.change != nil {
			r = request(c.change)
		}
		c.group.Lifecycle, c.group.InstanceIds = c.lifecycle, []string{"i-1"}
		instances, refused := launch.Read(r,
			&ec2.CreateFleetOutput{Instances: []ec2types.CreateFleetInstance{c.group}})
		if len(instances) != 1 || len(refused) != 0 {
			t.Errorf("%s: %v %v", name, instances, refused)
			continue
		}
		i := instances[0]
		price := fmt.Sprint(int64(i.Price))
		if i.Price == resources.Unpriced {
			price = "unknown"
		}
		got := fmt.Sprintf("%s %s %s %s %s %s %s", i.Type, i.Zone, i.Subnet, i.Image, i.Template, price,
			i.CapacityType)
		if got != c.want || (i.CapacityType == catalog.Reserved) != (i.Reservation == "cr-1") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// E-29: machines come in a fixed order, each once.
func TestMachinesComeInOrder(t *testing.T) {
	t.Parallel()
	group := func(ids ...string) ec2types.CreateFleetInstance {
		return ec2types.CreateFleetInstance{InstanceIds: ids, LaunchTemplateAndOverrides: answer("m5.large b")}
	}
	instances, _ := launch.Read(request(), &ec2.CreateFleetOutput{Instances: []ec2types.CreateFleetInstance{
		group("i-3", "i-1"), group(), group("i-2", "i-3")}})
	var got []string
	for _, i := range instances {
		got = append(got, i.ID)
	}
	if strings.Join(got, " ") != "i-1 i-2 i-3" {
		t.Errorf("%s", got)
	}
	if instances, refused := launch.Read(request(), nil); instances != nil || refused != nil {
		t.Errorf("%v %v of no answer", instances, refused)
	}
}

// E-41, E-42: an error with a pool applies to that pool; one without applies to all, for a minute. Only four classes
// of errors apply to pools at all.
func TestRefusalsOfAnAnswer(t *testing.T) {
	t.Parallel()
	const all = "c6g.large/b c6g.large/a m5.large/b m5.large/a"
	for name, c := range map[string]struct {
		code, pool string
		class      refusal.Class
		want       string // pools
		lasts      time.Duration
	}{
		"one pool":        {"InsufficientInstanceCapacity", "m5.large b", refusal.Capacity, "m5.large/b", 0},
		"no pool":         {"UnfulfillableCapacity", "", refusal.Capacity, all, time.Minute},
		"a pool, unclear": {"UnfulfillableCapacity", "m5.large b", refusal.Capacity, "m5.large/b", 0},
		"a type": {"InsufficientInstanceCapacity", "m5.large -", refusal.Capacity, "m5.large/b m5.large/a",
			time.Minute},
		"a zone": {"InsufficientInstanceCapacity", "- a", refusal.Capacity, "c6g.large/a m5.large/a",
			time.Minute},
		"another pool":       {"Unsupported", "r5.large c", refusal.Capacity, "r5.large/c", 0},
		"another type":       {"Unsupported", "r5.large -", refusal.Capacity, "", 0},
		"quota":              {"MaxSpotInstanceCountExceeded", "m5.large b", refusal.Quota, "m5.large/b", 0},
		"subnet":             {"InsufficientFreeAddressesInSubnet", "c6g.large a", refusal.Subnet, "c6g.large/a", 0},
		"throttled":          {"RequestLimitExceeded", "m5.large b", refusal.Throttle, "", 0},
		"no rights":          {"UnauthorizedOperation", "m5.large b", refusal.Rights, "", 0},
		"trouble of AWS":     {"InternalError", "", refusal.Server, "", 0},
		"a wrong request":    {"InvalidParameterValue", "m5.large b", refusal.Request, "", 0},
		"one nobody knows":   {"Whatever", "m5.large b", refusal.Unknown, "", 0},
		"a missing template": {"InvalidLaunchTemplateId.NotFound", "m5.large b", refusal.Template, "", 0},
	} {
		e := ec2types.CreateFleetError{ErrorCode: aws.String(c.code), ErrorMessage: aws.String("why"),
			LaunchTemplateAndOverrides: answer(c.pool), Lifecycle: "spot"}
		_, refused := launch.Read(request(), &ec2.CreateFleetOutput{Errors: []ec2types.CreateFleetError{e, e}})
		if len(refused) != 1 {
			t.Errorf("%s: %+v, want one refusal", name, refused)
			continue
		}
		one := refused[0]
		var pools []string
		for _, o := range one.Pools {
			pools = append(pools, o.Type+"/"+o.Zone)
		}
		if one.Class != c.class || one.Code != c.code || one.Message != "why" || one.CapacityType != catalog.Spot ||
			strings.Join(pools, " ") != c.want || one.For != c.lasts {
			t.Errorf("%s: %+v", name, one)
		}
	}
	single := request(func(r *launch.Request) { r.Overrides = r.Overrides[:1] })
	_, refused := launch.Read(single, &ec2.CreateFleetOutput{Errors: []ec2types.CreateFleetError{
		{ErrorCode: aws.String("UnfulfillableCapacity")}, {}}})
	if len(refused) != 2 || refused[0].For != 0 || len(refused[0].Pools) != 1 || refused[1].Class != refusal.Unknown {
		t.Errorf("of one pool it is clear which: %+v", refused)
	}
}
