package offering_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
)

// E-24: on-demand prices are those of Linux, of bare metal too; spot prices those of each zone. On-demand is asked for
// every 12 h and spot every 10 min, and until then spot is 60 % of on-demand.
func TestPricesAreThoseOfTheServices(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:DescribeSpotPriceHistory"}}})
	a.SetPrice("c5.large", 0.085)
	a.SetPrice("m5.metal", 4.608)
	a.SetSpotPrice("c5.large", "us-east-1a", 0.0337)
	prices := a.prices(nil)
	err := prices.Refresh(t.Context())
	if err == nil || !strings.Contains(err.Error(), "asking EC2 for spot prices") {
		t.Errorf("the spot prices are denied: %v", err)
	}
	list := prices.Known()
	check := func(name string, got resources.Money, ok bool, want float64) {
		t.Helper()
		if !ok || got != dollars(t, want) {
			t.Errorf("%s: %s, known: %t; want %v", name, got, ok, want)
		}
	}
	got, ok := list.OnDemand("c5.large")
	check("on demand", got, ok, 0.085)
	got, ok = list.OnDemand("m5.metal")
	check("bare metal", got, ok, 4.608)
	got, ok = list.Spot("c5.large", "us-east-1a")
	check("spot before EC2 has said anything", got, ok, 0.051)
	if _, ok := list.OnDemand("c5.nonesuch"); ok {
		t.Error("a type that does not exist has a price")
	}
	if n := a.Counts()["pricing:GetProducts"]; n > 15 {
		t.Errorf("the price list takes %d calls", n)
	}
	if err := a.SetFaults(ec2test.Faults{}); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(time.Minute)
	a.Forget()
	if err := prices.Refresh(t.Context()); err != nil || a.Counts()["pricing:GetProducts"] > 0 {
		t.Errorf("a minute later: %v, %v", err, a.Counts())
	}
	got, ok = prices.Known().Spot("c5.large", "us-east-1a")
	check("spot", got, ok, 0.0337)
	got, ok = list.Spot("c5.large", "us-east-1a")
	check("the list of before", got, ok, 0.051)
	age, ok := prices.Known().Age(offering.SourceOnDemand, a.clock.Now())
	if !ok || age != time.Minute || !prices.Due().Equal(a.clock.Now().Add(10*time.Minute)) {
		t.Errorf("on-demand prices are %s old, due again at %s", age, prices.Due())
	}
	a.clock.Advance(12*time.Hour - time.Minute)
	a.Forget()
	if err := prices.Refresh(t.Context()); err != nil || a.Counts()["pricing:GetProducts"] == 0 {
		t.Errorf("after 12 h: %v, %v", err, a.Counts())
	}
}

// E-25: a failure blocks nothing and keeps the known prices; their age grows.
func TestOldPricesAreBetterThanNone(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{Deny: []ec2test.Denial{{Action: "pricing:GetProducts"}, {Action: "ec2:*"}}})
	prices := a.prices(&tables.Prices{Region: "us-east-1", OnDemand: map[string]resources.Money{"c5.large": 100_000}})
	if err := prices.Refresh(t.Context()); err == nil {
		t.Error("both are denied, and nobody says so")
	}
	before := prices.Known()
	price, ok := before.Spot("c5.large", "us-east-1a")
	if _, asked := before.Age(offering.SourceOnDemand, start); asked || !ok || price != 60_000 {
		t.Errorf("nothing was ever told, but the price is %s, and told: %t", price, asked)
	}
	if err := a.SetFaults(ec2test.Faults{}); err != nil {
		t.Fatal(err)
	}
	a.SetPrice("c5.large", 0.085)
	a.clock.Advance(time.Minute)
	if err := prices.Refresh(t.Context()); err != nil || prices.Known() == before {
		t.Errorf("the prices are told again: %v", err)
	}
	if err := a.SetFaults(ec2test.Faults{
		Deny: []ec2test.Denial{{Action: "pricing:GetProducts"}, {Action: "ec2:*"}},
	}); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(24 * time.Hour)
	known := prices.Known()
	if err := prices.Refresh(t.Context()); err == nil || prices.Known() != known {
		t.Errorf("after a failure other prices are known: %v", err)
	}
	price, ok = prices.Known().OnDemand("c5.large")
	age, told := prices.Known().Age(offering.SourceOnDemand, a.clock.Now())
	if !ok || price != 85_000 || !told || age != 24*time.Hour {
		t.Errorf("%s, told: %t, %s old", price, told, age)
	}
}

// E-25: which endpoint has the prices of which region.
func TestWherePricesAreAskedFor(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[offering.PricingEndpoint]string{
		{Cluster: "us-east-1"}:                            "us-east-1",
		{Cluster: "us-west-2"}:                            "us-east-1",
		{Cluster: "sa-east-1"}:                            "us-east-1",
		{Cluster: "ap-southeast-2"}:                       "ap-south-1",
		{Cluster: "eu-west-1"}:                            "eu-central-1",
		{Cluster: "cn-north-1"}:                           "cn-northwest-1",
		{Cluster: "eu-west-1", Setting: "us-east-1"}:      "us-east-1",
		{Cluster: "eu-west-1", Isolated: true}:            "",
		{Cluster: "us-gov-west-1"}:                        "",
		{Cluster: "us-gov-west-1", Setting: "us-east-1"}:  "",
		{Cluster: "us-iso-east-1"}:                        "",
		{Cluster: "eusc-de-east-1", Setting: "us-east-1"}: "",
	} {
		if got, ok := endpoint.Region(); got != want || ok != (want != "") {
			t.Errorf("%+v: %q, %t; want %q", endpoint, got, ok, want)
		}
	}
}

// E-26: without prices those of another region are used, and this is reported; a type without any price gets the price
// that orders it last.
func TestPricesOfAnotherRegion(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	table := &tables.Prices{Region: "eu-west-1", OnDemand: map[string]resources.Money{"c5.large": 96_000}}
	asked := a.prices(table)
	never := offering.NewPrices(offering.PricesConfig{Clock: a.clock, Region: region, EC2: a.ec2, Table: table})
	for name, text := range map[string]string{"before": asked.Known().Borrowed(),
		"never asked": never.Known().Borrowed()} {
		if !strings.Contains(text, "us-east-1") || !strings.Contains(text, "eu-west-1") {
			t.Errorf("%s: %q", name, text)
		}
	}
	ours := offering.NewPrices(offering.PricesConfig{Clock: a.clock, Region: "eu-west-1", EC2: a.ec2, Table: table})
	if text := ours.Known().Borrowed(); text != "" {
		t.Errorf("the table is the region's: %q", text)
	}
	known, err := tables.Read()
	if err != nil {
		t.Fatal(err)
	}
	for region, want := range map[string]string{
		"eu-west-1":      "prices for eu-west-1 are not known: those of 2026-07-20 for us-east-1 are used",
		"cn-northwest-1": "prices for cn-northwest-1 are not known: those of 2024-11-06 for cn-north-1 are used",
		"cn-north-1":     "today's prices for cn-north-1 are not known: those of 2024-11-06 are used; types that are newer have none",
		"us-gov-west-1":  "",
	} {
		p := offering.NewPrices(offering.PricesConfig{Clock: a.clock, Region: region, EC2: a.ec2,
			Table: known.Prices(region)})
		if text := p.Known().Borrowed(); !strings.HasPrefix(text, want) || want == "" && text != "" {
			t.Errorf("%s: %q, want %q", region, text, want)
		}
	}
	if err := asked.Refresh(t.Context()); err != nil || asked.Known().Borrowed() != "" {
		t.Errorf("the prices are known: %v, %q", err, asked.Known().Borrowed())
	}
	in := input(only(sold(t, "us-east-1a"), "c5.large", "m5.large"), class("us-east-1a"))
	in.Prices = never.Known()
	c := build(t, in).Catalog
	for key, want := range map[string]resources.Money{
		"c5.large us-east-1a on-demand": 96_000, "c5.large us-east-1a spot": 57_600,
		"m5.large us-east-1a on-demand": offering.Unknown, "m5.large us-east-1a spot": offering.Unknown,
	} {
		name, pool, _ := strings.Cut(key, " ")
		if got := find(t, c, name)[pool]; got.Price != want || !got.Available {
			t.Errorf("%s: %s, want %s", key, got.Price, want)
		}
	}
}
