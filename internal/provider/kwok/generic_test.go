package kwok_test

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

func mustGeneric(t *testing.T) kwok.Inventory {
	t.Helper()
	inventory, err := kwok.GenericInventory()
	if err != nil {
		t.Fatal(err)
	}
	return inventory
}

func findType(t *testing.T, c catalog.Catalog, name string) catalog.Type {
	t.Helper()
	for _, kind := range c.Types {
		if kind.Name == name {
			return kind
		}
	}
	t.Fatalf("no instance type %s", name)
	return catalog.Type{}
}

// TestTheDefaultCatalogueIsKarpenters is P-51: names, resources and prices as in the catalogue file that Karpenter's
// KWOK provider v1.15.0 embeds.
func TestTheDefaultCatalogueIsKarpenters(t *testing.T) {
	t.Parallel()
	c := mustGeneric(t).Catalog()
	if len(c.Types) != 144 {
		t.Errorf("%d types, want 144", len(c.Types))
	}
	for _, want := range []struct {
		name           string
		cpu, gib, pods int64
		onDemand, spot float64 // dollars
		labels         string
	}{
		{"c-1x-amd64-linux", 1, 2, 16, 0.027147483648, 0.019003238553599998, "amd64 linux 1 c 1 2Gi"},
		{"s-1x-arm64-linux", 1, 4, 16, 0.029294967296, 0.020506477107199998, "arm64 linux 1 s 1 4Gi"},
		{"m-1x-arm64-windows", 1, 8, 16, 0.033589934592, 0.023512954214399997, "arm64 windows 1 m 1 8Gi"},
		{"c-2x-arm64-linux", 2, 4, 32, 0.054294967296, 0.038006477107199996, "arm64 linux 2 c 2 4Gi"},
		{"m-256x-amd64-windows", 256, 2048, 1024, 8.599023255552, 6.0193162788864, "amd64 windows 256 m 256 2Ti"},
	} {
		kind := findType(t, c, want.name)
		if kind.Capacity["cpu"] != want.cpu*1000 || kind.Capacity["memory"] != want.gib<<30 ||
			kind.Capacity["pods"] != want.pods ||
			kind.Capacity["ephemeral-storage"] != 20<<30 || kind.Overhead["cpu"] != 100 ||
			kind.Overhead["memory"] != 10<<20 {
			t.Errorf("%s: capacity %v, overhead %v", want.name, kind.Capacity, kind.Overhead)
		}
		var labels []string
		for _, key := range []requirement.Key{"kubernetes.io/arch", "kubernetes.io/os",
			"karpenter.kwok.sh/instance-size", "karpenter.kwok.sh/instance-family", "karpenter.kwok.sh/instance-cpu",
			"karpenter.kwok.sh/instance-memory"} {
			value, _ := kind.Labels.Get(key).Single()
			labels = append(labels, value)
		}
		if got := strings.Join(labels, " "); got != want.labels {
			t.Errorf("%s: labels %s, want %s", want.name, got, want.labels)
		}
		zones := map[string]float64{}
		for _, o := range kind.Offerings {
			dollars := map[string]float64{catalog.OnDemand: want.onDemand, catalog.Spot: want.spot}[o.CapacityType]
			if difference := o.Price.Dollars() - dollars; difference > 5e-7 || difference < -5e-7 || !o.Available {
				t.Errorf("%s %s/%s: price %s, available %t; want %v and true", want.name, o.Zone, o.CapacityType,
					o.Price, o.Available, dollars)
			}
			zones[o.Zone]++
		}
		for _, zone := range []string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"} {
			if zones[zone] != 2 || len(zones) != 4 {
				t.Errorf("%s: offerings by zone %v, want two in each of test-zone-a to test-zone-d", want.name, zones)
			}
		}
	}
}

func TestTheSettingSelectsTheInventory(t *testing.T) {
	t.Parallel()
	read := func(path string) ([]byte, error) { return []byte(strings.ReplaceAll(smallFile, "m5.large", path)), nil }
	for setting, typeName := range map[string]string{"": "c-1x-amd64-linux", "aws": "m5.24xlarge",
		"mine.json": "mine.json"} {
		inventory, err := kwok.LoadInventory(setting, read)
		if err != nil {
			t.Fatalf("%q: %v", setting, err)
		}
		findType(t, inventory.Catalog(), typeName)
	}
	_, err := kwok.LoadInventory("mine.json", func(string) ([]byte, error) { return []byte("[{}]"), nil })
	if err == nil || !strings.Contains(err.Error(), "mine.json") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
