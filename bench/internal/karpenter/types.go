package karpenter

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// instanceTypes states a catalogue in Karpenter's terms: each type with the union of its offerings' labels, each
// offering with its own.
func instanceTypes(c catalog.Catalog) []*cloudprovider.InstanceType {
	var list []*cloudprovider.InstanceType
	for _, t := range c.Types {
		it := &cloudprovider.InstanceType{
			Name: t.Name, Capacity: corev1.ResourceList{},
			Requirements: scheduling.NewRequirements(in(catalog.LabelInstanceType, t.Name)),
			Overhead:     &cloudprovider.InstanceTypeOverhead{KubeReserved: corev1.ResourceList{}},
		}
		for name, amount := range t.Capacity {
			it.Capacity[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		}
		for name, amount := range t.Overhead {
			it.Overhead.KubeReserved[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		}
		for r := range t.Labels.All() {
			values, _ := r.Values()
			it.Requirements.Add(in(r.Key(), values...))
		}
		var zones, capacityTypes []string
		for _, o := range t.Offerings {
			if o.Available {
				zones, capacityTypes = append(zones, o.Zone), append(capacityTypes, o.CapacityType)
			}
			it.Offerings = append(it.Offerings, &cloudprovider.Offering{
				Requirements: scheduling.NewRequirements(in(catalog.LabelZone, o.Zone),
					in(catalog.LabelCapacityType, o.CapacityType)),
				Price: o.Price.Dollars(), Available: o.Available,
			})
		}
		it.Requirements.Add(in(catalog.LabelZone, zones...), in(catalog.LabelCapacityType, capacityTypes...))
		list = append(list, it)
	}
	return list
}

func in(key requirement.Key, values ...string) *scheduling.Requirement {
	return scheduling.NewRequirement(string(key), corev1.NodeSelectorOpIn, values...)
}
