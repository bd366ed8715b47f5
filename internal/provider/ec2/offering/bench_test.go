package offering_test

import (
	"fmt"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
)

// BenchmarkBuild builds the catalogue of a class in 6 zones from all types, after nodes of 50 types were seen: for the
// first time, after a change that is not in the types, one type alone, and a look whether
// anything has changed.
func BenchmarkBuild(b *testing.B) {
	var zones []string
	for i := range 6 {
		zones = append(zones, fmt.Sprintf("us-east-1%c", 'a'+i))
	}
	table := &tables.Prices{Region: region, OnDemand: map[string]resources.Money{}}
	in := input(sold(b, zones...), class(zones...))
	in.Memory, in.Free, in.Quotas, in.Shortages = instancetype.NewMemory(), subnet.NewFree(), new(quota.Marks),
		new(offering.Shortages)
	in.Settings.PodAddresses = subnet.Secondary
	for name, info := range in.Sold.Types {
		table.OnDemand[name] = resources.Dollar
		if len(table.OnDemand)%25 == 0 {
			in.Memory.Saw(name, instancetype.Image{Family: "AL2023", ID: "ami-1"}, *info.MemoryInfo.SizeInMiB<<20)
		}
	}
	in.Prices = offering.NewPrices(offering.PricesConfig{Region: region, Table: table}).Known()
	in.Shortages.Note(offering.Pool{Type: "m5.large", Zone: zones[0], CapacityType: "spot"}, start)
	warm := offering.NewBuilder()
	again := func() *offering.Builder { return warm }
	for name, builder := range map[string]func() *offering.Builder{"cold": offering.NewBuilder, "warm": again} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				result, err := builder().Build(in)
				if err != nil || len(result.Catalog.Types) < 1300 {
					b.Fatal(len(result.Catalog.Types), err)
				}
			}
		})
	}
	kept, err := warm.Build(in)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("look", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !kept.Holds(in) {
				b.Fatal("nothing has changed")
			}
		}
	})
	in.Only = "m5.large"
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if result, err := warm.Build(in); err != nil || len(result.Catalog.Types) != 1 {
				b.Fatal(len(result.Catalog.Types), err)
			}
		}
	})
}
