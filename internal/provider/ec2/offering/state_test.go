package offering_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// E-49: one type alone is built as in the catalogue of all types, and not built if it is not in there.
func TestATypeAloneIsThatOfTheCatalogue(t *testing.T) {
	t.Parallel()
	zones := []string{"us-east-1a", "us-east-1b"}
	all := sold(t, append(zones, "us-east-1c")...)
	all.Zones["m5.large"], all.Zones["c5.large"] = []string{"us-east-1c"}, nil
	reserved := awsv1.CapacityReservation{ID: "cr-1", InstanceType: "m5.xlarge", AvailabilityZone: zones[0],
		EndTime: &metav1.Time{Time: start.Add(time.Hour)}}
	var shortages offering.Shortages
	shortages.Note(offering.Pool{Type: "m5.xlarge", Zone: zones[1], CapacityType: catalog.Spot}, start)
	free := subnet.NewFree()
	free.Seen(start, map[string]int64{"subnet-" + zones[0]: 10, "subnet-" + zones[1]: 40})
	for name, change := range map[string]func(*offering.Input){
		"plain":      func(*offering.Input) {},
		"dedicated":  func(in *offering.Input) { in.Dedicated = true },
		"no subnet":  func(in *offering.Input) { in.Class.Status.Subnets = nil },
		"other time": func(in *offering.Input) { in.Now = start.Add(time.Hour) },
		"no GPU": func(in *offering.Input) {
			in.ImageFor = func(_, accelerator string) (instancetype.Image, bool) {
				image, _ := anyImage("", "")
				return image, accelerator == ""
			}
		},
	} {
		in := input(all, class(zones...))
		in.Class.Status.CapacityReservations = []awsv1.CapacityReservation{reserved}
		in.Shortages, in.Free, in.Settings.PodAddresses = &shortages, free, subnet.Secondary
		change(&in)
		builder := offering.NewBuilder()
		whole, err := builder.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range append(slices.Collect(maps.Keys(all.Types)), "m0.none") {
			in.Only = kind
			alone, err := builder.Build(in)
			want := slices.DeleteFunc(slices.Clone(whole.Catalog.Types),
				func(t catalog.Type) bool { return t.Name != kind })
			if err != nil || !reflect.DeepEqual(alone.Catalog.Types, want) {
				t.Errorf("%s: alone, %s is %+v, error %v; want %+v", name, kind, alone.Catalog.Types, err, want)
			}
		}
	}
}

// E-82: a result holds while nothing has changed of what it was built from, and then building gives it again. Each
// change that matters ends that, also one by time alone; more addresses than anybody needs do not matter.
func TestAResultHoldsUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	zone := "us-east-1a"
	types := only(sold(t, zone, "us-east-1b"), "m5.large", "c5.large")
	spot := offering.Pool{Type: "m5.large", Zone: zone, CapacityType: catalog.Spot}
	short := func(in *offering.Input) { in.Shortages.Note(spot, start) }
	full := quota.Refusal{Code: "VcpuLimitExceeded", Type: "m5.large", VCPUs: 2, CapacityType: catalog.OnDemand}
	marked := func(in *offering.Input) { in.Quotas.Refused(full, start) }
	image := instancetype.Image{Family: "AL2023", ID: "ami-1"}
	for name, c := range map[string]struct {
		before, change func(*offering.Input)
		holds          bool
	}{
		"nothing":          {holds: true},
		"an hour":          {change: at(time.Hour), holds: true},
		"a shortage":       {change: short},
		"its end":          {before: short, change: at(time.Minute)},
		"not yet its end":  {before: short, change: at(time.Minute - 1), holds: true},
		"a pool had some":  {short, cleared(spot), false},
		"a quota":          {change: marked},
		"the mark's end":   {before: marked, change: at(time.Minute)},
		"a launch":         {marked, had(full), false},
		"memory":           {change: func(in *offering.Input) { in.Memory.Saw("m5.large", image, 7<<30) }},
		"memory as before": {saw(image), saw(image), true},
		"a place is taken": {change: func(in *offering.Input) { in.Reservations.Took("cr-1", "i-1", start) }},
		"a place of ours":  {change: func(in *offering.Input) { in.InReservation = map[string]int64{"cr-1": 1} }},
		"it is empty": {change: func(in *offering.Input) {
			in.Reservations.Empty("cr-1", start.Add(time.Second))
		}},
		"the block's end": {change: at(24 * time.Hour)},
		"soon its end":    {change: at(24*time.Hour - 40*time.Minute)},
		"a full subnet": {change: func(in *offering.Input) {
			in.Free.Full("subnet-"+zone, start.Add(time.Second))
		}},
		"few addresses":  {change: addresses(10)},
		"more addresses": {change: addresses(4000), holds: true},
		"still too few":  {before: addresses(10), change: addresses(10), holds: true},
		"under way": {change: func(in *offering.Input) {
			in.Free.Begin([]string{"subnet-" + zone}, subnet.Need{AtOnce: 2990}, 1)
		}},
		"pods elsewhere": {addresses(10), func(in *offering.Input) {
			in.Settings.PodAddresses = subnet.Elsewhere
		}, false},
		"a group": {change: func(in *offering.Input) {
			in.Placement = offering.Placement{ID: "pg-1", Strategy: "cluster"}
		}},
		"dedicated": {change: func(in *offering.Input) { in.Dedicated = true }},
	} {
		in := watched(types, zone)
		if c.before != nil {
			c.before(&in)
		}
		builder := offering.NewBuilder()
		first, err := builder.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(&in)
		}
		if holds := first.Holds(in); holds != c.holds {
			t.Errorf("%s: the result holds: %t, want %t", name, holds, c.holds)
		}
		again, err := builder.Build(in)
		if same := reflect.DeepEqual(first.Catalog, again.Catalog); err != nil || same != c.holds {
			t.Errorf("%s: built again it is the same: %t, error %v; want %t", name, same, err, c.holds)
		}
	}
}

// watched is an input in which everything is known: two types, and a capacity block for a day.
func watched(types *offering.Sold, zone string) offering.Input {
	in := input(types, class(zone, "us-east-1b"))
	in.Class.Status.CapacityReservations = []awsv1.CapacityReservation{{ID: "cr-1", InstanceType: "m5.large",
		AvailabilityZone: zone, ReservationType: "capacity-block",
		EndTime: &metav1.Time{Time: start.Add(24 * time.Hour)}}}
	in.Memory, in.Free, in.Quotas, in.Shortages = instancetype.NewMemory(), subnet.NewFree(), new(quota.Marks),
		new(offering.Shortages)
	in.Reservations, in.Settings.PodAddresses = new(offering.Reservations), subnet.Secondary
	in.Reservations.Seen(start, map[string]int64{"cr-1": 1})
	in.Free.Seen(start, map[string]int64{"subnet-" + zone: 3000, "subnet-us-east-1b": 3000})
	return in
}

func at(after time.Duration) func(*offering.Input) {
	return func(in *offering.Input) { in.Now = start.Add(after) }
}

func cleared(pool offering.Pool) func(*offering.Input) {
	return func(in *offering.Input) { in.Shortages.Clear(pool) }
}

func had(r quota.Refusal) func(*offering.Input) {
	return func(in *offering.Input) { in.Quotas.Had(r.Type, r.VCPUs, r.CapacityType) }
}

func saw(image instancetype.Image) func(*offering.Input) {
	return func(in *offering.Input) { in.Memory.Saw("m5.large", image, 7<<30) }
}

// addresses is a later answer about the first subnet.
func addresses(free int64) func(*offering.Input) {
	return func(in *offering.Input) {
		asked := in.Now.Add(time.Second)
		in.Free.Seen(asked, map[string]int64{in.Class.Status.Subnets[0].ID: free})
		in.Now = asked
	}
}
