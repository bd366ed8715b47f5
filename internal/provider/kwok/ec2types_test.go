package kwok_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// ec2Figure is what the sources named in the table's header say of an instance type.
type ec2Figure struct {
	name        string
	dollars     float64 // per hour, on-demand
	cores       int64
	mebibytes   int64
	podsAllowed int64
}

// ec2Figures are taken from the sources themselves and not from the table, so that they check how it is expanded.
func ec2Figures() []ec2Figure {
	return []ec2Figure{
		{"c5.large", 0.085, 2, 4096, 29},
		{"c5.18xlarge", 3.06, 72, 147456, 737},
		{"c5a.24xlarge", 3.696, 96, 196608, 737},
		{"c5n.9xlarge", 1.944, 36, 98304, 234},
		{"c6a.48xlarge", 7.344, 192, 393216, 737},
		{"c6g.medium", 0.034, 1, 2048, 8},
		{"c6gd.16xlarge", 2.4576, 64, 131072, 737},
		{"c6i.32xlarge", 5.44, 128, 262144, 737},
		{"c6in.4xlarge", 0.9072, 16, 32768, 234},
		{"c7a.medium", 0.05132, 1, 2048, 8},
		{"c7a.48xlarge", 9.85344, 192, 393216, 737},
		{"c7g.medium", 0.0363, 1, 2048, 8},
		{"c7gd.12xlarge", 2.1773, 48, 98304, 234},
		{"c7i.2xlarge", 0.357, 8, 16384, 58},
		{"c7i-flex.8xlarge", 1.3566, 32, 65536, 234},
		{"c8a.4xlarge", 0.86216, 16, 32768, 314},
		{"c8g.48xlarge", 7.65696, 192, 393216, 737},
		{"c8i.12xlarge", 2.24904, 48, 98304, 590},
		{"m5.large", 0.096, 2, 8192, 29},
		{"m5.24xlarge", 4.608, 96, 393216, 737},
		{"m5a.8xlarge", 1.376, 32, 131072, 234},
		{"m5d.16xlarge", 3.616, 64, 262144, 737},
		{"m6a.32xlarge", 5.5296, 128, 524288, 737},
		{"m6g.12xlarge", 1.848, 48, 196608, 234},
		{"m6i.xlarge", 0.192, 4, 16384, 58},
		{"m6id.24xlarge", 5.6952, 96, 393216, 737},
		{"m7a.16xlarge", 3.70944, 64, 262144, 737},
		{"m7g.medium", 0.0408, 1, 4096, 8},
		{"m7i.48xlarge", 9.6768, 192, 786432, 737},
		{"m7i-flex.large", 0.09576, 2, 8192, 29},
		{"m8a.medium", 0.06086, 1, 4096, 8},
		{"m8g.24xlarge", 4.30848, 96, 393216, 737},
		{"m8i.32xlarge", 6.77376, 128, 524288, 1514},
		{"r5.2xlarge", 0.504, 8, 65536, 58},
		{"r5n.12xlarge", 3.576, 48, 393216, 234},
		{"r6a.large", 0.1134, 2, 16384, 29},
		{"r6g.16xlarge", 3.2256, 64, 524288, 737},
		{"r6in.32xlarge", 11.15712, 128, 1048576, 786},
		{"r7a.24xlarge", 7.3032, 96, 786432, 737},
		{"r7gd.16xlarge", 4.3546, 64, 524288, 737},
		{"r7i.12xlarge", 3.1752, 48, 393216, 234},
		{"r8g.8xlarge", 1.88512, 32, 262144, 234},
		{"r8i.48xlarge", 13.33632, 192, 1572864, 1514},
		{"t3.nano", 0.0052, 2, 512, 4},
		{"t3.medium", 0.0416, 2, 4096, 17},
		{"t3a.2xlarge", 0.3008, 8, 32768, 58},
		{"t4g.small", 0.0168, 2, 2048, 11},
		{"t4g.2xlarge", 0.2688, 8, 32768, 58},
		{"g4dn.12xlarge", 3.912, 48, 196608, 234},
		{"g5.xlarge", 1.006, 4, 16384, 58},
		{"g5.48xlarge", 16.288, 192, 786432, 345},
		{"g6.16xlarge", 3.3968, 64, 262144, 737},
		{"p4d.24xlarge", 21.957642, 96, 1179648, 2942},
		{"p5.48xlarge", 55.04, 192, 2097152, 3138},
		{"i3en.6xlarge", 2.712, 24, 196608, 234},
		{"i4g.16xlarge", 4.94208, 64, 524288, 737},
		{"i4i.large", 0.172, 2, 16384, 29},
		{"i4i.32xlarge", 10.9824, 128, 1048576, 737},
	}
}

func mustEC2(t *testing.T) catalog.Catalog {
	t.Helper()
	inventory, err := kwok.EC2Inventory()
	if err != nil {
		t.Fatal(err)
	}
	return inventory.Catalog()
}

// TestEC2PricesAreThoseOfTheSource is P-51, real price curves.
func TestEC2PricesAreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	const tolerance = 0.001 // EC2 rounds prices; the table keeps to within a tenth of a percent
	c := mustEC2(t)
	for _, want := range ec2Figures() {
		kind := findType(t, c, want.name)
		memory := (want.mebibytes*1000 - want.mebibytes*75) / 1000 << 20
		if kind.Capacity["cpu"] != want.cores*1000 || kind.Capacity["memory"] != memory ||
			kind.Capacity["pods"] != want.podsAllowed {
			t.Errorf("%s: capacity %v, want %d cores, %d MiB less 7.5 %% in whole MiB, %d pods", want.name,
				kind.Capacity, want.cores, want.mebibytes, want.podsAllowed)
		}
		for _, o := range kind.Offerings {
			if relative := o.Price.Dollars()/want.dollars - 1; o.CapacityType == catalog.OnDemand &&
				(relative > tolerance || relative < -tolerance) {
				t.Errorf("%s: price %s, want %v", want.name, o.Price, want.dollars)
			}
		}
	}
}

func TestEC2TypesAreCompleteAndPlausible(t *testing.T) {
	t.Parallel()
	c := mustEC2(t)
	if len(c.Types) < 300 {
		t.Errorf("%d types, want 300 at least", len(c.Types))
	}
	makers, categories, generations := map[string]int{}, map[string]int{}, map[string]int{}
	for _, kind := range c.Types {
		for key, count := range map[requirement.Key]map[string]int{"cpu-manufacturer": makers, "category": categories,
			"generation": generations} {
			value, single := kind.Labels.Get("karpenter.k8s.aws/instance-" + key).Single()
			if count[value]++; !single {
				t.Errorf("%s: label %s is %s, want one value", kind.Name, key,
					kind.Labels.Get("karpenter.k8s.aws/instance-"+key))
			}
		}
		onDemand, spot := kind.Offerings[1], kind.Offerings[0]
		if len(kind.Offerings) != 8 || spot.Price*10 < onDemand.Price*2 || spot.Price*10 > onDemand.Price*8 {
			t.Errorf("%s: %d offerings, on-demand %s, spot %s; want 8, and spot at 20 to 80 %%", kind.Name,
				len(kind.Offerings), onDemand.Price, spot.Price)
		}
		if kind.Capacity["memory"]-kind.Overhead["memory"] < 64<<20 ||
			kind.Capacity["cpu"]-kind.Overhead["cpu"] < 900 {
			t.Errorf("%s: nothing is left for pods of %v after %v", kind.Name, kind.Capacity, kind.Overhead)
		}
	}
	for _, want := range []struct {
		name   string
		count  map[string]int
		values []string
	}{
		{"makers", makers, []string{"intel", "amd", "aws"}},
		{"categories", categories, []string{"c", "m", "r", "t", "g", "p", "i"}},
		{"generations", generations, []string{"3", "4", "5", "6", "7", "8"}},
	} {
		for _, value := range want.values {
			if want.count[value] == 0 || len(want.count) != len(want.values) {
				t.Errorf("%s are %v, want exactly %v", want.name, want.count, want.values)
			}
		}
	}
}

func TestEC2TypesWithGPUsOfferThem(t *testing.T) {
	t.Parallel()
	kind := findType(t, mustEC2(t), "g5.12xlarge")
	name, _ := kind.Labels.Get("karpenter.k8s.aws/instance-gpu-name").Single()
	if kind.Capacity["nvidia.com/gpu"] != 4 || name != "a10g" {
		t.Errorf("%d GPUs called %q, want 4 called a10g", kind.Capacity["nvidia.com/gpu"], name)
	}
}
