package offering_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
)

// E-17, E-18, E-24, E-61: the catalogue of a class, from the endpoint's data of a whole region.
func TestTheCatalogueOfARegion(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.SetPrice("m5.large", 0.096)
	a.SetSpotPrice("m5.large", "us-east-1b", 0.04)
	types, prices := offering.NewTypes(a.ec2, a.clock), a.prices(nil)
	if err := types.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := prices.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(a.Calls()); n > 50 || a.Counts()["ec2:DescribeSpotPriceHistory"] > 8 {
		t.Errorf("a start takes %d calls: %v", n, a.Counts())
	}
	in := input(types.Known(), class("us-east-1a", "us-east-1b", "us-east-1e"))
	in.Prices = prices.Known()
	result := build(t, in)
	c := result.Catalog
	if err := c.Validate(); err != nil || len(c.Types) < 700 || !slices.IsSorted(names(c)) || result.Short != "" {
		t.Errorf("%d types, valid: %v, short: %q", len(c.Types), err, result.Short)
	}
	for _, kind := range c.Types {
		for _, o := range kind.Offerings {
			if !slices.Contains(types.Known().Zones[kind.Name], o.Zone) ||
				!strings.Contains("us-east-1a us-east-1b us-east-1e", o.Zone) {
				t.Fatalf("%s is offered in %s", kind.Name, o.Zone)
			}
			if !o.Available || o.Price <= 0 || o.Price >= offering.Unknown {
				t.Fatalf("%s in %s: available %t at %s", kind.Name, o.Zone, o.Available, o.Price)
			}
			for r := range kind.Labels.And(o.Labels).All() {
				if !c.WellKnown[r.Key()] {
					t.Fatalf("%s has label %s, which is not well known", kind.Name, r.Key())
				}
			}
		}
	}
	m5 := find(t, c, "m5.large")
	if got := available(m5); got != "us-east-1a on-demand, us-east-1a spot, us-east-1b on-demand, us-east-1b spot" {
		t.Errorf("m5.large, which us-east-1e does not sell, can be had as %s", got)
	}
	if o := m5["us-east-1b spot"]; o.Price != dollars(t, 0.04) ||
		m5["us-east-1b on-demand"].Price != dollars(t, 0.096) {
		t.Errorf("m5.large costs %s as spot, %s on demand", o.Price, m5["us-east-1b on-demand"].Price)
	}
	labels := m5["us-east-1b spot"].Labels.String()
	if labels != "topology.k8s.aws/zone-id=use1-azb topology.kubernetes.io/region=us-east-1" {
		t.Errorf("the labels of an offering are %s", labels)
	}
	i := slices.Index(names(c), "m5.large")
	for key, want := range map[string]string{
		"karpenter.k8s.aws/instance-tenancy": "default", "karpenter.k8s.aws/instance-family": "m5",
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
	} {
		if got, single := c.Types[i].Labels.Get(requirement.Key(key)).Single(); !single || got != want {
			t.Errorf("m5.large has %s=%q, want %q", key, got, want)
		}
	}
	if pods := c.Types[i].Capacity[resources.NamePods]; pods != 29 {
		t.Errorf("m5.large runs %d pods", pods)
	}
}

// E-18, E-24: dedicated machines are sold on demand, at the price list's prices for them, which are asked for once
// somebody wants them; before that shared machines' stand in. What the list does not sell so is not offered.
func TestDedicatedMachines(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	for name, price := range map[string]float64{"m5.large": 0.1, "m5.metal": 4, "t2.micro": 0.01} {
		a.SetPrice(name, price)
	}
	prices := a.prices(nil)
	if err := prices.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	shared := a.Counts()["pricing:GetProducts"]
	in := input(only(sold(t, "us-east-1a", "us-east-1b"), "m5.large", "m5.metal", "t2.micro"), class("us-east-1a"))
	in.Dedicated, in.Prices = true, prices.Known()
	c := build(t, in).Catalog
	if m5 := find(t, c, "m5.large"); len(c.Types) != 3 || len(m5) != 1 ||
		m5["us-east-1a on-demand"].Price != dollars(t, 0.1) {
		t.Errorf("before the prices are known: %v, m5.large %+v", names(c), m5)
	}
	if !prices.WantDedicated() || prices.WantDedicated() || prices.Due().After(a.clock.Now()) {
		t.Error("that dedicated machines are wanted is news once, and their prices are due then")
	}
	if err := prices.Refresh(t.Context()); err != nil || a.Counts()["pricing:GetProducts"] <= shared {
		t.Errorf("asking for their prices: %v, %v", err, a.Counts())
	}
	in.Prices = prices.Known()
	c = build(t, in).Catalog
	if !slices.Equal(names(c), []string{"m5.large", "m5.metal"}) || c.Validate() != nil {
		t.Errorf("offered are %v; t2 is not sold so", names(c))
	}
	for name, price := range map[string]float64{"m5.large": 0.11, "m5.metal": 4} {
		if o := find(t, c, name); available(o) != "us-east-1a on-demand" ||
			o["us-east-1a on-demand"].Price != dollars(t, price) {
			t.Errorf("%s is offered as %+v, want it on demand for %v", name, o, price)
		}
	}
	if tenancy, _ := c.Types[0].Labels.Get(offering.LabelTenancy).Single(); tenancy != "dedicated" {
		t.Errorf("the label of the tenancy is %q", tenancy)
	}
	in.Dedicated = false
	if o := find(t, build(t, in).Catalog, "m5.large"); o["us-east-1a on-demand"].Price != dollars(t, 0.1) ||
		len(o) != 2 {
		t.Errorf("shared machines: %+v", o)
	}
}

// E-09, E-15: a type that no image fits, and one that EC2 would refuse as the class asks for it, is not offered.
func TestWhatDoesNotFitIsNotOffered(t *testing.T) {
	t.Parallel()
	all := only(sold(t, "a"), "m5.large", "m6g.large", "g5.xlarge", "g4ad.xlarge", "inf2.xlarge", "dl2q.24xlarge",
		"t3.micro", "p4d.24xlarge", "m8i.large")
	everything := strings.Join(slices.Sorted(maps.Keys(all.Types)), " ")
	efa := []awsv1.NetworkInterface{{InterfaceType: "interface"},
		{NetworkCardIndex: 3, DeviceIndex: 1, InterfaceType: "efa-only"}}
	for _, c := range []struct {
		name   string
		change func(*offering.Input)
		want   string
	}{
		{"all", func(*offering.Input) {}, everything},
		{"images of one architecture", func(in *offering.Input) {
			in.ImageFor = func(architecture, _ string) (instancetype.Image, bool) {
				return instancetype.Image{}, architecture == "arm64"
			}
		}, "m6g.large"},
		{"images for GPUs", func(in *offering.Input) {
			in.ImageFor = func(_, accelerator string) (instancetype.Image, bool) {
				return instancetype.Image{}, accelerator == offering.GPU
			}
		}, "g4ad.xlarge g5.xlarge p4d.24xlarge"},
		{"images for Inferentia", func(in *offering.Input) {
			in.ImageFor = func(_, accelerator string) (instancetype.Image, bool) {
				return instancetype.Image{}, accelerator == offering.Neuron
			}
		}, "dl2q.24xlarge inf2.xlarge"},
		{"a cluster group",
			func(in *offering.Input) { in.Placement = offering.Placement{ID: "pg-1", Strategy: "cluster"} },
			"dl2q.24xlarge g4ad.xlarge g5.xlarge inf2.xlarge m5.large m6g.large m8i.large p4d.24xlarge"},
		{"more cards than one", func(in *offering.Input) { in.Class.Spec.NetworkInterfaces = efa }, "p4d.24xlarge"},
		{"an interface", func(in *offering.Input) { in.Class.Spec.NetworkInterfaces = efa[:1] }, everything},
		{"a fabric adapter", func(in *offering.Input) {
			in.Class.Spec.NetworkInterfaces = []awsv1.NetworkInterface{{InterfaceType: "interface"},
				{DeviceIndex: 1, InterfaceType: "efa-only"}}
		}, "dl2q.24xlarge p4d.24xlarge"},
		{"virtual machines within", func(in *offering.Input) {
			in.Class.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: new("enabled")}
		}, "m8i.large"},
		{"enclaves", func(in *offering.Input) { in.Class.Spec.EnclaveOptions = &awsv1.EnclaveOptions{Enabled: true} },
			"dl2q.24xlarge g5.xlarge inf2.xlarge m6g.large p4d.24xlarge"},
		{"enclaves that are off", func(in *offering.Input) { in.Class.Spec.EnclaveOptions = &awsv1.EnclaveOptions{} },
			everything},
		{"no subnet", func(in *offering.Input) { in.Class.Status.Subnets = nil }, ""},
	} {
		in := input(all, class("a"))
		c.change(&in)
		if got := strings.Join(names(build(t, in).Catalog), " "); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

// E-42, E-43, E-15: refused offerings are in the catalogue but unavailable as long as they are marked.
func TestWhatWasRefusedIsNotAvailable(t *testing.T) {
	t.Parallel()
	all := only(sold(t, "a", "b"), "m5.large", "m5.24xlarge", "g5.xlarge")
	var shortages offering.Shortages
	var quotas quota.Marks
	in := input(all, class("a", "b"))
	in.Shortages, in.Quotas = &shortages, &quotas
	shortages.Note(offering.Pool{Type: "m5.large", Zone: "a", CapacityType: catalog.Spot}, start)
	shortages.Pause([]offering.Pool{{Type: "g5.xlarge", Zone: "b", CapacityType: catalog.OnDemand}}, start)
	shortages.Note(offering.SpreadZone("pg-1", "b"), start)
	quotas.Refused(quota.Refusal{Code: "VcpuLimitExceeded", Type: "m5.24xlarge", VCPUs: 96,
		CapacityType: catalog.OnDemand}, start)
	check := func(name string, want map[string]string) {
		t.Helper()
		c := build(t, in).Catalog
		for kind, pools := range want {
			if got := find(t, c, kind); available(got) != pools || len(got) != 4 {
				t.Errorf("%s: %s is available as %s, of %d; want %s", name, kind, available(got), len(got), pools)
			}
		}
	}
	everything := "a on-demand, a spot, b on-demand, b spot"
	check("refused", map[string]string{"m5.large": "a on-demand, b on-demand, b spot", "m5.24xlarge": "a spot, b spot",
		"g5.xlarge": "a on-demand, a spot, b spot"})
	in.Placement = offering.Placement{ID: "pg-1", Strategy: "spread"}
	check("in a group", map[string]string{"m5.large": "a on-demand", "m5.24xlarge": "a spot"})
	in.Placement = offering.Placement{}
	shortages.Clear(offering.Pool{Type: "m5.large", Zone: "a", CapacityType: catalog.Spot})
	check("had again", map[string]string{"m5.large": everything})
	in.Now = start.Add(time.Minute)
	check("a minute later", map[string]string{"m5.large": everything, "m5.24xlarge": everything,
		"g5.xlarge": everything})
}

// E-12: a zone whose subnets have too few addresses for a type does not offer it; if no zone has enough, the one with
// most addresses does, and this is reported.
func TestZonesWithoutAddressesAreNotAvailable(t *testing.T) {
	t.Parallel()
	all := only(sold(t, "a", "b", "c"), "m5.large", "m5.24xlarge") // 29 and 737 pods
	all.Zones["m5.24xlarge"] = []string{"a", "b"}
	var free = subnet.NewFree()
	in := input(all, class("a", "b", "c"))
	in.Free, in.Settings.PodAddresses = free, subnet.Secondary
	check := func(name, small, large, short string) {
		t.Helper()
		result := build(t, in)
		s, l := available(find(t, result.Catalog, "m5.large")), available(find(t, result.Catalog, "m5.24xlarge"))
		if s != small || l != large || !strings.Contains(result.Short, short) ||
			(result.Short == "") != (short == "") {
			t.Errorf("%s: m5.large %s; m5.24xlarge %s; %q", name, s, l, result.Short)
		}
	}
	of := func(zones ...string) string {
		var all []string
		for _, zone := range zones {
			all = append(all, zone+" on-demand", zone+" spot")
		}
		return strings.Join(all, ", ")
	}
	check("nothing is known", of("a", "b", "c"), of("a", "b"), "")
	free.Seen(start, map[string]int64{"subnet-a": 738, "subnet-b": 30, "subnet-c": 29})
	check("few in b and c", of("a", "b"), of("a"), "")
	launch := free.Begin([]string{"subnet-a", "subnet-b", "subnet-c"}, subnet.Need{AtOnce: 1, Later: 110}, 9)
	check("only a launch under way has them", of("a"), of("a"), "")
	free.End(launch, start)
	free.Seen(start.Add(time.Minute), map[string]int64{"subnet-a": 29, "subnet-b": 30, "subnet-c": 1000})
	check("enough in a zone that does not sell the type", of("b", "c"), of("b"), "subnet-b in b")
	in.Settings.PodAddresses = subnet.Elsewhere
	check("pods have addresses from elsewhere", of("a", "b", "c"), of("a", "b"), "")
	in.Settings.PodAddresses = subnet.Secondary
	in.Class.Annotations = map[string]string{offering.PrefixDelegation: "true"} // 110 and 250 pods: 7 and 16 prefixes
	check("prefixes", of("c"), of("b"), "subnet-b in b")
	free.Seen(start.Add(2*time.Minute), map[string]int64{"subnet-a": 254, "subnet-b": 30, "subnet-c": 1000})
	check("enough for the pods, but not in whole prefixes", of("a", "c"), of("a"), "subnet-a in a")
}

// E-13: reserved capacity is offered where it is, with as many machines as are free and ours.
func TestReservedCapacity(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: start.Add(d)} }
	in := input(only(sold(t, "a", "b"), "m5.large", "p5.48xlarge"), class("a", "b"))
	in.Class.Status.CapacityReservations = []awsv1.CapacityReservation{
		{ID: "cr-free", InstanceType: "m5.large", AvailabilityZone: "a"},
		{ID: "cr-full", InstanceType: "m5.large", AvailabilityZone: "a"},
		{ID: "cr-unknown", InstanceType: "m5.large", AvailabilityZone: "b"},
		{ID: "cr-elsewhere", InstanceType: "m5.large", AvailabilityZone: "c"},
		{ID: "cr-ended", InstanceType: "m5.large", AvailabilityZone: "b", EndTime: at(0)},
		{ID: "cr-ends", InstanceType: "m5.large", AvailabilityZone: "b", EndTime: at(time.Minute),
			Interruptible: true},
		{ID: "cr-block", InstanceType: "p5.48xlarge", AvailabilityZone: "b", EndTime: at(41 * time.Minute),
			ReservationType: "capacity-block"},
		{ID: "cr-late", InstanceType: "p5.48xlarge", AvailabilityZone: "b", EndTime: at(40 * time.Minute),
			ReservationType: "capacity-block"},
		{ID: "cr-expiring", InstanceType: "p5.48xlarge", AvailabilityZone: "b", ReservationType: "capacity-block",
			State: "expiring"},
	}
	var free offering.Reservations
	in.Reservations, in.InReservation = &free, map[string]int64{"cr-full": 2, "cr-free": 1, "cr-unknown": 5}
	free.Seen(start, map[string]int64{"cr-free": 3, "cr-full": 0, "cr-ended": 1, "cr-ends": 1, "cr-block": 1,
		"cr-late": 1, "cr-expiring": 1})
	free.Took("cr-free", "i-1", start)
	c := build(t, in).Catalog
	m5, p5 := find(t, c, "m5.large"), find(t, c, "p5.48xlarge")
	covers := func(offerings map[string]catalog.Offering) string {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(offerings)) {
			if o := offerings[key]; o.CapacityType == catalog.Reserved {
				all = append(all, fmt.Sprintf("%s %d %t", strings.Replace(key, "reserved ", "", 1), o.Reservation,
					o.Available))
			}
		}
		return strings.Join(all, ", ")
	}
	if got := covers(m5); got != "a cr-free 3 true, a cr-full 2 false, b cr-ends 1 true, b cr-unknown 5 false" {
		t.Errorf("m5.large is reserved as %s", got)
	}
	if got := covers(p5); got != "b cr-block 1 true, b cr-expiring 1 false, b cr-late 1 false" {
		t.Errorf("p5.48xlarge is reserved as %s", got)
	}
	if got := m5["b reserved cr-ends"].Labels.String(); !strings.Contains(got,
		"capacity-reservation-interruptible=true") ||
		!strings.Contains(got, "capacity-reservation-type=default") || !strings.Contains(got, "zone-id=b") {
		t.Errorf("labels %s", got)
	}
	for r := range m5["b reserved cr-ends"].Labels.All() {
		if !c.WellKnown[r.Key()] {
			t.Errorf("label %s is not well known", r.Key())
		}
	}
	if m5["a on-demand"].Labels.Holds(offering.LabelReservationID) {
		t.Error("what is not reserved has the label of a reservation")
	}
	var shortages offering.Shortages
	shortages.Note(offering.Pool{Type: "m5.large", Zone: "a", CapacityType: catalog.Reserved, Reservation: "cr-free"},
		start)
	in.Shortages = &shortages
	if m5 := find(t, build(t, in).Catalog, "m5.large"); m5["a reserved cr-free"].Available ||
		!m5["a on-demand"].Available {
		t.Error("a reservation that is marked can be had, or what is not reserved cannot")
	}
}

// E-13: a reservation costs next to nothing, and the dear types in it more than the cheap ones.
func TestReservedCapacityIsPaidFor(t *testing.T) {
	t.Parallel()
	table := &tables.Prices{OnDemand: map[string]resources.Money{"m5.large": 96_000, "m5.xlarge": 192_000}}
	in := input(only(sold(t, "a"), "m5.large", "m5.xlarge", "p5.48xlarge"), class("a"))
	in.Prices = offering.NewPrices(offering.PricesConfig{Table: table}).Known()
	for _, kind := range []string{"m5.large", "m5.xlarge", "p5.48xlarge"} {
		in.Class.Status.CapacityReservations = append(in.Class.Status.CapacityReservations,
			awsv1.CapacityReservation{ID: "cr", InstanceType: kind, AvailabilityZone: "a"})
	}
	c := build(t, in).Catalog
	for kind, want := range map[string]resources.Money{"m5.large": 96, "m5.xlarge": 192,
		"p5.48xlarge": resources.Dollar} {
		if got := find(t, c, kind)["a reserved cr"].Price; got != want {
			t.Errorf("%s costs %s, want %s", kind, got, want)
		}
	}
}

// E-19, E-20, E-21, E-22: a machine's resources depend on the class, the settings and the nodes seen, but not on what
// a builder has built before.
func TestMachinesGoByTheClass(t *testing.T) {
	t.Parallel()
	all := only(sold(t, "a"), "m5.large", "c5d.large")
	size := resource.MustParse("100Gi")
	memory := instancetype.NewMemory()
	memory.Saw("m5.large", instancetype.Image{Family: "AL2023", ID: "ami-1"}, 7<<30)
	builder := offering.NewBuilder()
	for _, c := range []struct {
		name, kind, resource string
		change               func(*offering.Input)
		want                 int64
	}{
		{"disk by default", "m5.large", "ephemeral-storage", func(*offering.Input) {}, 20 << 30},
		{"the device of the family", "m5.large", "ephemeral-storage", func(in *offering.Input) {
			in.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{
				{DeviceName: new("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: &size}},
				{DeviceName: new("/dev/xvdb")},
			}
		}, 100 << 30},
		{"another device", "m5.large", "ephemeral-storage", func(in *offering.Input) {
			in.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{
				{DeviceName: new("/dev/xvdb"), EBS: &awsv1.BlockDevice{VolumeSize: &size}},
			}
		}, 20 << 30},
		{"the root volume", "m5.large", "ephemeral-storage", func(in *offering.Input) {
			in.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{
				{DeviceName: new("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("50Gi"))}},
				{DeviceName: new("/dev/xvdz"), EBS: &awsv1.BlockDevice{VolumeSize: &size}, RootVolume: new(true)},
			}
		}, 100 << 30},
		{"disks of the type", "c5d.large", "ephemeral-storage", func(in *offering.Input) {
			in.Class.Spec.InstanceStorePolicy = new("RAID0")
		}, 50_000_000_000},
		{"pods by default", "m5.large", "pods", func(*offering.Input) {}, 29},
		{"pods by the class", "m5.large", "pods", func(in *offering.Input) {
			in.Class.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(int32(50))}
		}, 50},
		{"reserved interfaces", "m5.large", "pods", func(in *offering.Input) { in.Settings.ReservedInterfaces = 1 },
			20},
		{"prefixes", "m5.large", "pods", func(in *offering.Input) {
			in.Class.Annotations = map[string]string{offering.PrefixDelegation: "true"}
		}, 110},
		{"memory that was not seen", "m5.large", "memory", func(*offering.Input) {}, 7577 << 20},
		{"memory that was seen", "m5.large", "memory", func(in *offering.Input) { in.Memory = memory }, 7 << 30},
		{"branch interfaces", "m5.large", "vpc.amazonaws.com/pod-eni", func(in *offering.Input) {
			in.Branches = func(string) int64 { return 9 }
		}, 9},
		{"no branch interfaces", "m5.large", "vpc.amazonaws.com/pod-eni", func(*offering.Input) {}, 0},
	} {
		in := input(all, class("a"))
		c.change(&in)
		result, err := builder.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		if again := build(t, in); !reflect.DeepEqual(again, result) {
			t.Errorf("%s: a new builder makes another catalogue", c.name)
		}
		kind := result.Catalog.Types[slices.Index(names(result.Catalog), c.kind)]
		if got := kind.Capacity[c.resource]; got != c.want {
			t.Errorf("%s: %s has %s %d, want %d", c.name, c.kind, c.resource, got, c.want)
		}
	}
	in := input(all, class("a"))
	in.Class.Spec.Kubelet = &awsv1.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "much"}}
	const text = `EC2NodeClass default: spec.kubelet.kubeReserved[cpu] is "much"`
	if _, err := builder.Build(in); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("a kubelet block that cannot be read: %v", err)
	}
}

// E-22, E-23: what families do by themselves: by what their nodes keep memory, and which volumes they start with.
func TestWhatFamiliesDo(t *testing.T) {
	t.Parallel()
	volume := func(device string, root bool) awsv1.BlockDeviceMapping {
		return awsv1.BlockDeviceMapping{DeviceName: &device, EBS: &awsv1.BlockDevice{}, RootVolume: &root}
	}
	mapped := []awsv1.BlockDeviceMapping{volume("/dev/xvda", false), volume("/dev/xvdz", false),
		{DeviceName: new("/dev/xvdy")}}
	for _, c := range []struct {
		family   string
		mappings []awsv1.BlockDeviceMapping
		volumes  int64
	}{
		{"AL2023", nil, 1}, {"AL2023", mapped, 2}, {"Bottlerocket", nil, 2}, {"Bottlerocket", mapped, 3},
		{"Custom", nil, 1},
		{"Custom", mapped, 3},
		{"Custom", []awsv1.BlockDeviceMapping{volume("/dev/sda1", true), volume("/dev/sdb", false)}, 2},
	} {
		of := offering.ClassOf(&awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{BlockDeviceMappings: c.mappings}},
			c.family, offering.Settings{})
		if of.Volumes != c.volumes || of.ReserveByPods != (c.family == "Bottlerocket") {
			t.Errorf("%s with %d mappings: %d volumes, want %d; memory by pods: %t", c.family, len(c.mappings),
				of.Volumes, c.volumes, of.ReserveByPods)
		}
	}
}

// P-50: a returned catalogue never changes, whatever is built later or concurrently.
func TestACatalogueIsNeverChanged(t *testing.T) {
	t.Parallel()
	zones := []string{"a", "b"}
	all := only(sold(t, zones...), "m5.large", "m5.xlarge", "g5.xlarge")
	builder := offering.NewBuilder()
	first, err := builder.Build(input(all, class(zones...)))
	if err != nil {
		t.Fatal(err)
	}
	before := build(t, input(all, class(zones...)))
	var shortages offering.Shortages
	shortages.Note(offering.Pool{Type: "m5.large", Zone: "a", CapacityType: catalog.Spot}, start)
	memory := instancetype.NewMemory()
	memory.Saw("m5.large", instancetype.Image{Family: "AL2023", ID: "ami-1"}, 1<<30)
	done := make(chan error)
	for i := range 4 {
		go func() {
			in := input(all, class(zones[i%2]))
			in.Shortages, in.Memory = &shortages, memory
			in.Settings.ReservedInterfaces = int64(i)
			_, err := builder.Build(in)
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if !reflect.DeepEqual(first, before) {
		t.Error("the catalogue that was handed out first has changed")
	}
}
