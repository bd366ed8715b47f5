package tables

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

func read(t *testing.T) *Tables {
	t.Helper()
	tables, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// E-26: which region's prices are used where, of which day, and in which currency.
func TestPricesOfEachRegion(t *testing.T) {
	t.Parallel()
	tables := read(t)
	for region, want := range map[string]string{
		"us-east-1":      "us-east-1 USD 2026-07-20 old false: 1367",
		"us-gov-east-1":  "us-gov-east-1 USD 2026-08-24 old false: 561",
		"us-gov-west-1":  "us-gov-west-1 USD 2026-08-24 old false: 770",
		"cn-north-1":     "cn-north-1 CNY 2024-11-06 old true: 316",
		"cn-northwest-1": "cn-north-1 CNY 2024-11-06 old true: 316",
		"eu-west-1":      "us-east-1 USD 2026-07-20 old false: 1367",
		"":               "us-east-1 USD 2026-07-20 old false: 1367",
	} {
		p := tables.Prices(region)
		got := fmt.Sprintf("%s %s %s old %t: %d", p.Region, p.Currency, p.Date.Format(time.DateOnly), p.Old,
			len(p.OnDemand))
		if got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
	for _, c := range []struct {
		region, kind string
		want         string
	}{
		{"us-east-1", "m5.large", "0.096"}, {"us-east-1", "c5.24xlarge", "4.080"}, {"us-east-1", "t3.nano", "0.0052"},
		{"us-east-1", "a1.medium", "0.0255"}, {"us-east-1", "p4d.24xlarge", "21.957642"},
		{"us-gov-west-1", "m5.large", "0.121"},
		{"us-gov-east-1", "c5.large", "0.102"}, {"cn-north-1", "m5.large", "1.013"},
	} {
		if got := tables.Prices(c.region).OnDemand[c.kind]; got.String() != c.want {
			t.Errorf("%s in %s: %s, want %s", c.kind, c.region, got, c.want)
		}
	}
}

// Types without a price in us-east-1: they are sold elsewhere only, by capacity block, by host, or later than the
// table was made.
const unpriced = `dl2q.24xlarge hpc6a.48xlarge hpc6id.32xlarge hpc7a.12xlarge hpc7a.24xlarge hpc7a.48xlarge hpc7a.96xlarge hpc8a.96xlarge
mac-m3ultra.metal mac-m4.metal mac-m4max.metal mac-m4pro.metal mac1.metal mac2-m1ultra.metal mac2-m2.metal mac2-m2pro.metal mac2.metal
p5e.48xlarge trn2.3xlarge trn2.48xlarge x8aedz.12xlarge x8aedz.24xlarge x8aedz.3xlarge x8aedz.6xlarge x8aedz.large x8aedz.metal-12xl
x8aedz.metal-24xl x8aedz.xlarge`

// Types without published branch interfaces.
const unlimited = `hpc6a.48xlarge hpc6id.32xlarge hpc7a.12xlarge hpc7a.24xlarge hpc7a.48xlarge hpc7a.96xlarge hpc8a.96xlarge trn2.3xlarge
trn2.48xlarge`

// E-26: the tables know all types that EC2 names, except those listed here.
func TestTheTablesKnowWhatEC2Sells(t *testing.T) {
	t.Parallel()
	tables := read(t)
	var noPrice, noLimit []string
	for _, kind := range slices.Sorted(maps.Keys(ec2test.Types(t))) {
		if _, known := tables.Prices("us-east-1").OnDemand[kind]; !known {
			noPrice = append(noPrice, kind)
		}
		if _, known := tables.branches[kind]; !known {
			noLimit = append(noLimit, kind)
		}
	}
	if want := strings.Fields(unpriced); !slices.Equal(noPrice, want) {
		t.Errorf("types without a price: %v, want %v", noPrice, want)
	}
	if want := strings.Fields(unlimited); !slices.Equal(noLimit, want) {
		t.Errorf("types of whose branch interfaces nothing is known: %v, want %v", noLimit, want)
	}
}

// E-26: prices belong to the right types: in a family more cores cost no less. Bare metal and accelerators have other
// rules.
func TestLargerTypesCostNoLess(t *testing.T) {
	t.Parallel()
	tables, families := read(t), map[string][]ec2types.InstanceTypeInfo{}
	for name, info := range ec2test.Types(t) {
		family, size, _ := strings.Cut(name, ".")
		if !strings.HasPrefix(size, "metal") && info.GpuInfo == nil {
			families[family] = append(families[family], info)
		}
	}
	compared := 0
	for _, region := range []string{"us-east-1", "us-gov-east-1", "us-gov-west-1", "cn-north-1"} {
		prices := tables.Prices(region).OnDemand
		for _, family := range families {
			for _, a := range family {
				for _, b := range family {
					price, more := prices[string(a.InstanceType)], prices[string(b.InstanceType)]
					if price == 0 || more == 0 || *a.VCpuInfo.DefaultVCpus >= *b.VCpuInfo.DefaultVCpus {
						continue
					}
					if compared++; price > more && *a.MemoryInfo.SizeInMiB <= *b.MemoryInfo.SizeInMiB {
						t.Errorf("%s: %s costs %s, %s only %s", region, a.InstanceType, price, b.InstanceType, more)
					}
				}
			}
		}
	}
	if compared < 8000 {
		t.Errorf("only %d prices were compared", compared)
	}
}

// E-19, E-26: branch interfaces are for types that support trunking.
func TestBranchInterfaces(t *testing.T) {
	t.Parallel()
	tables := read(t)
	for kind, want := range map[string]int64{
		"m5.large": 9, "m5.xlarge": 18, "m5.24xlarge": 107, "c5.18xlarge": 107, "m6g.medium": 4, "a1.metal": 54,
		"r9g.large": 9, "t3.large": 0, "m4.large": 0, "u-6tb1.112xlarge": 0, "no.such": 0,
	} {
		if got := tables.Branches(kind); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
	if len(tables.branches) != 1423 {
		t.Errorf("%d types, want 1423", len(tables.branches))
	}
}

// E-26: a file that the tool would not write is refused, with the line.
func TestMalformedFilesAreRefused(t *testing.T) {
	t.Parallel()
	const head = "region us-east-1 currency=USD date=2026-07-20 module=m version=v1 file=f licence=Apache-2.0 sum=h1:x\n"
	prices := func(f *Tables) func([]source, []string) error { return f.readPrices }
	branches := func(f *Tables) func([]source, []string) error { return f.readBranches }
	for text, c := range map[string]struct {
		read func(*Tables) func([]source, []string) error
		want string
	}{
		"region r date=2026-07-20\n":                               {prices, "line 1: the source has no module"},
		strings.Replace(head, "07-20", "7", 1) + "type r\na.b 1\n": {prices, "line 3: parsing time"},
		head + "type us-east-1\nm5.large 1 2\n":                    {prices, "line 3: it has 3 fields, want 2"},
		head + "type\nm5.large\n": {
			prices, "line 3: it has 0 prices, want one for each of 1 regions",
		},
		head + "type us-east-1\nm5.large nine\n": {prices, "line 3: strconv"},
		head + "type us-east-1\nm5.large 0\n": {
			prices, "line 3: us-east-1: the price 0 of m5.large: want a number above 0",
		},
		head + "type us-east-1\nm5.large 1\n# x\nm5.large 1\n": {prices, "line 5: type m5.large is there twice"},
		head + "type trunking branches\nm5.large false 9\n": {
			branches, "line 3: type m5.large: trunking false, 9 branch interfaces",
		},
		head + "type trunking branches\nm5.large true many\n":        {branches, "want true and more than 0"},
		head + "type trunking branches\na.b true 9\na.b true 9\n":    {branches, "line 4: type a.b is there twice"},
		"type trunking branches\nm5.large true 9\n":                  {branches, "line 2: type m5.large"},
		head + "\ntype trunking branches\nm5.large true 99999999999": {branches, "line 4"},
	} {
		if err := parse(text, c.read(&Tables{branches: map[string]int64{}})); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", text, err, c.want)
		}
	}
}
