package kwok

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// The default prices are linear: dollars per hour for a core, and for 10^9 bytes of memory.
const (
	genericCPUPrice    = 0.025
	genericMemoryPrice = 0.001
	genericSpotRatio   = 0.7

	genericStorage    = 20 << 30 // bytes of ephemeral storage
	genericPodsPerCPU = 16
	genericMaxPods    = 1024
)

// GenericInventory returns Karpenter's default catalogue, 144 types by formula: 12 sizes, 3 ratios of memory to cores
// (c, s and m: 2, 4 and 8 GiB), Linux and Windows, amd64 and arm64, each in four zones, spot and on-demand.
func GenericInventory() (Inventory, error) {
	families := []struct {
		name   string
		memory int64 // GiB per core
	}{{"c", 2}, {"s", 4}, {"m", 8}}
	var types []catalog.Type
	for _, cpus := range []int64{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256} {
		for _, family := range families {
			for _, system := range []string{"linux", "windows"} {
				for _, arch := range []string{"amd64", "arm64"} {
					t, err := genericType(family.name, arch, system, cpus, cpus*family.memory)
					if err != nil {
						return Inventory{}, err
					}
					types = append(types, t)
				}
			}
		}
	}
	return newInventory(types, nil)
}

func genericType(family, arch, system string, cpus, memoryGiB int64) (catalog.Type, error) {
	dollars := genericCPUPrice*float64(cpus) + genericMemoryPrice*float64(memoryGiB<<30)/1e9
	onDemand, err := resources.FromDollars(dollars)
	if err != nil {
		return catalog.Type{}, err
	}
	spot, err := resources.FromDollars(dollars * genericSpotRatio)
	if err != nil {
		return catalog.Type{}, err
	}
	name := fmt.Sprintf("%s-%dx-%s-%s", family, cpus, arch, system)
	return catalog.Type{
		Name:   name,
		Labels: typeLabels(name, arch, []string{system}, fmt.Sprint(cpus), gibibytes(memoryGiB)),
		Capacity: resources.Amounts{
			resources.NameCPU: cpus * 1000, resources.NameMemory: memoryGiB << 30,
			resources.NameEphemeralStorage: genericStorage,
			resources.NamePods:             min(cpus*genericPodsPerCPU, genericMaxPods),
		},
		Overhead:  overhead(),
		Offerings: offerings([]string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"}, onDemand, spot),
	}, nil
}

// offerings returns the two offerings of each zone.
func offerings(zones []string, onDemand, spot resources.Money) []catalog.Offering {
	var list []catalog.Offering
	for _, zone := range zones {
		list = append(list,
			catalog.Offering{Zone: zone, CapacityType: catalog.Spot, Price: spot, Available: true},
			catalog.Offering{Zone: zone, CapacityType: catalog.OnDemand, Price: onDemand, Available: true})
	}
	return list
}

// gibibytes returns an amount of memory in the form of a quantity: 512Gi, but 1Ti for 1024.
func gibibytes(n int64) string {
	if n > 0 && n%1024 == 0 {
		return fmt.Sprintf("%dTi", n/1024)
	}
	return fmt.Sprintf("%dGi", n)
}
