package offering_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

const region = "us-east-1"

// account is an endpoint, its clients and a clock.
type account struct {
	*ec2test.Server
	clock   *timer.Fake
	ec2     *ec2.Client
	pricing *pricing.Client
}

func newAccount(t testing.TB, faults ec2test.Faults) account {
	t.Helper()
	s := ec2test.Start(t, ec2test.Options{Faults: faults, Region: region})
	once := s.Config()
	once.Retryer = func() aws.Retryer { return aws.NopRetryer{} } // retries are the middleware's
	return account{Server: s, clock: timer.NewFake(start), ec2: ec2.NewFromConfig(once),
		pricing: pricing.NewFromConfig(once)}
}

func (a account) prices(table *tables.Prices) *offering.Prices {
	return offering.NewPrices(offering.PricesConfig{Clock: a.clock, Region: region, EC2: a.ec2, Pricing: a.pricing,
		Table: table})
}

// sold is what the data files have, without asking.
func sold(t testing.TB, zones ...string) *offering.Sold {
	t.Helper()
	s := &offering.Sold{Types: ec2test.Types(t), Zones: map[string][]string{}, At: start}
	for name := range s.Types {
		s.Zones[name] = zones
	}
	return s
}

// only is part of what is sold.
func only(s *offering.Sold, names ...string) *offering.Sold {
	part := &offering.Sold{Types: maps.Clone(s.Types), Zones: maps.Clone(s.Zones), At: s.At}
	for name := range s.Types {
		if !slices.Contains(names, name) {
			delete(part.Types, name)
			delete(part.Zones, name)
		}
	}
	return part
}

// class has a subnet in each zone, named after it.
func class(zones ...string) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	for _, zone := range zones {
		id := strings.NewReplacer("us-east-1", "use1-az").Replace(zone)
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: "subnet-" + zone, Zone: zone, ZoneID: id})
	}
	return c
}

func anyImage(string, string) (instancetype.Image, bool) {
	return instancetype.Image{Family: "AL2023", ID: "ami-1"}, true
}

func input(s *offering.Sold, c *awsv1.EC2NodeClass) offering.Input {
	return offering.Input{
		Class: c, Region: region, Sold: s, ImageFor: anyImage, Now: start,
		Settings: offering.Settings{MemoryOverhead: 0.075},
	}
}

func build(t testing.TB, in offering.Input) offering.Result {
	t.Helper()
	result, err := offering.NewBuilder().Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// find returns the offerings of a type by "zone capacityType", with the reservation's id where there is one.
func find(t testing.TB, c catalog.Catalog, name string) map[string]catalog.Offering {
	t.Helper()
	found := map[string]catalog.Offering{}
	for _, kind := range c.Types {
		if kind.Name != name {
			continue
		}
		for _, o := range kind.Offerings {
			key := o.Zone + " " + o.CapacityType
			if id, reserved := o.Labels.Get(offering.LabelReservationID).Single(); reserved {
				key += " " + id
			}
			if _, twice := found[key]; twice {
				t.Errorf("%s is offered twice as %s", name, key)
			}
			found[key] = o
		}
	}
	return found
}

// available are the keys of the offerings that can be had, in order.
func available(offerings map[string]catalog.Offering) string {
	var keys []string
	for key, o := range offerings {
		if o.Available {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

func names(c catalog.Catalog) (all []string) {
	for _, kind := range c.Types {
		all = append(all, kind.Name)
	}
	return all
}

func dollars(t testing.TB, d float64) resources.Money {
	t.Helper()
	m, err := resources.FromDollars(d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
