package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Object returns the Node object of n, as in a cluster of either side. Its amounts are also those of its claim. An
// error means that the catalogue lacks the instance type.
func (n Node) Object(c catalog.Catalog) (*corev1.Node, error) {
	for _, t := range c.Types {
		if t.Name != n.Type {
			continue
		}
		capacity, allocatable := lists(t)
		labels := map[string]string{
			corev1.LabelHostname: n.Name, corev1.LabelInstanceTypeStable: n.Type, corev1.LabelTopologyZone: n.Zone,
			string(catalog.LabelCapacityType): n.CapacityType, "karpenter.sh/nodepool": Pool,
			"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
		}
		for _, key := range []requirement.Key{labelArch, labelOS} {
			if value, single := t.Labels.Get(key).Single(); single {
				labels[string(key)] = value
			}
		}
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("uid-" + n.Name), Labels: labels,
				ResourceVersion: "1"},
			Spec: corev1.NodeSpec{ProviderID: n.ProviderID()},
			Status: corev1.NodeStatus{
				Capacity: capacity, Allocatable: allocatable,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}, nil
	}
	return nil, fmt.Errorf("node %s: instance type %q is not in the catalogue", n.Name, n.Type)
}

// ProviderID returns the name of the node's machine.
func (n Node) ProviderID() string { return "bench://" + n.Name }

func lists(t catalog.Type) (capacity, allocatable corev1.ResourceList) {
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, amount := range t.Capacity {
		capacity[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		allocatable[corev1.ResourceName(name)] = translate.Quantity(name, amount-t.Overhead[name])
	}
	return capacity, allocatable
}

// Allocatable returns what pods can use of the type, by resource name in base units.
func Allocatable(t catalog.Type) resources.Amounts {
	amounts := resources.Amounts{}
	for name, amount := range t.Capacity {
		amounts[name] = amount - t.Overhead[name]
	}
	return amounts
}
