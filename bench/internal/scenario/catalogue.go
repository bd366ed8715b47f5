package scenario

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

const (
	linearTypes = 400

	labelArch requirement.Key = "kubernetes.io/arch"
	labelOS   requirement.Key = "kubernetes.io/os"
)

func linearZones() []string { return []string{"test-zone-1", "test-zone-2", "test-zone-3"} }

// linear returns the 400 types of the peer's scheduling benchmark: type i has i cores, 2i Gi and room for 10i pods,
// and costs the same for each unit, on-demand in three zones and spot in two.
func linear() (catalog.Catalog, error) {
	c := catalog.Catalog{WellKnown: wellKnown()}
	for i := int64(1); i <= linearTypes; i++ {
		memory := 2 * i << 30
		price, err := resources.FromDollars(0.1*float64(i) + 0.1*float64(memory)/1e9)
		if err != nil {
			return c, fmt.Errorf("linear type %d: %w", i, err)
		}
		t := catalog.Type{
			Name:   fmt.Sprintf("linear-%d", i),
			Labels: requirement.NewSet(requirement.OneOf(labelArch, "amd64"), requirement.OneOf(labelOS, "linux")),
			Capacity: resources.Amounts{resources.NameCPU: 1000 * i, resources.NameMemory: memory,
				resources.NamePods: 10 * i},
			Overhead: resources.Amounts{resources.NameCPU: 100, resources.NameMemory: 10 << 20},
		}
		for zone, name := range linearZones() {
			t.Offerings = append(t.Offerings, catalog.Offering{Zone: name, CapacityType: catalog.OnDemand,
				Price: price, Available: true})
			if zone < 2 {
				t.Offerings = append(t.Offerings, catalog.Offering{Zone: name, CapacityType: catalog.Spot,
					Price: price, Available: true})
			}
		}
		c.Types = append(c.Types, t)
	}
	return c, nil
}

func wellKnown() map[requirement.Key]bool {
	return map[requirement.Key]bool{catalog.LabelInstanceType: true, catalog.LabelZone: true,
		catalog.LabelCapacityType: true, labelArch: true, labelOS: true}
}

// awsZones is how many zones of the catalogue B-03 uses.
const awsZones = 3

// aws returns the EC2 types that Joiner's KWOK provider simulates, in three zones. The labels that only a provider
// knows are left out, so that neither side carries what no pod asks for.
func aws() (catalog.Catalog, error) {
	inventory, err := kwok.EC2Inventory()
	if err != nil {
		return catalog.Catalog{}, err
	}
	c := catalog.Catalog{WellKnown: wellKnown()}
	for _, t := range inventory.Catalog().Types {
		t.Labels = requirement.NewSet(t.Labels.Get(labelArch), t.Labels.Get(labelOS))
		zones := []string(nil)
		t.Offerings = slices.DeleteFunc(slices.Clone(t.Offerings), func(o catalog.Offering) bool {
			if !slices.Contains(zones, o.Zone) && len(zones) < awsZones {
				zones = append(zones, o.Zone)
			}
			return !slices.Contains(zones, o.Zone)
		})
		for i := range t.Offerings {
			t.Offerings[i].Labels = requirement.Set{}
		}
		c.Types = append(c.Types, t)
	}
	return c, nil
}
