package choose

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// maxLabelValue is the maximum length of a label's value.
const maxLabelValue = 63

// DemandOf returns what a claim asks for. The error names the field that cannot be read.
func DemandOf(claim *karpenterv1.NodeClaim) (Demand, error) {
	requirements, _, err := translate.Requirements(claim.Spec.Requirements)
	if err != nil {
		return Demand{}, fmt.Errorf("spec.requirements: %w", err)
	}
	return Demand{
		Requirements: requirements,
		Requests:     translate.Amounts(claim.Spec.Resources.Requests),
		Hostname:     hostname(claim.Name),
		Tie:          string(claim.UID),
	}, nil
}

// hostname returns the value of the hostname label: the claim's name, shortened when it is too long for a label.
func hostname(claimName string) string {
	if len(claimName) <= maxLabelValue {
		return claimName
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, claimName) // a hash never fails to write
	ending := fmt.Sprintf("-%08x", hash.Sum32())
	return strings.TrimRight(claimName[:maxLabelValue-len(ending)], "-.") + ending
}

// NodeLabels returns the labels of the claim's node, with a value for each label of the choice: the claim's own value
// if it is allowed, otherwise an allowed one.
func (c Choice) NodeLabels(claim *karpenterv1.NodeClaim) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, claim.Labels)
	for r := range c.Labels.All() {
		key := string(r.Key())
		if own, present := labels[key]; present && r.Has(own) {
			continue
		}
		delete(labels, key)
		if value, found := r.Example(); found && !r.AllowsAbsent() {
			labels[key] = value
		}
	}
	return labels
}

// Resources returns capacity and allocatable of a type. Requested resources that the type does not have are added.
func (d Demand) Resources(t catalog.Type) (capacity, allocatable corev1.ResourceList) {
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, amount := range t.Capacity {
		capacity[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		allocatable[corev1.ResourceName(name)] = translate.Quantity(name, amount-t.Overhead[name])
	}
	for name, amount := range d.Requests {
		if _, own := t.Capacity[name]; !own {
			capacity[corev1.ResourceName(name)] = translate.Quantity(name, amount)
			allocatable[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		}
	}
	return capacity, allocatable
}
