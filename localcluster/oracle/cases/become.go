package cases

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// offered is an offering that a claim may get.
type offered struct {
	kind     catalog.Type
	offering catalog.Offering
	labels   requirement.Set // what catalogue and claim together allow
}

// offersFor lists the available offerings for a claim, the cheapest first. A provider may take any of these, and
// nothing else.
func offersFor(c catalog.Catalog, claim *karpenterv1.NodeClaim) []offered {
	wanted, _, err := translate.Requirements(claim.Spec.Requirements)
	if err != nil {
		return nil
	}
	requests := translate.Amounts(claim.Spec.Resources.Requests)
	var list []offered
	for _, kind := range c.Types {
		short := false
		for name, amount := range requests {
			short = short || amount > kind.Capacity[name]-kind.Overhead[name]
		}
		for _, offering := range kind.Offerings {
			labels := labelsOf(kind, offering)
			if !short && offering.Available && compatible(c, wanted, labels) {
				list = append(list, offered{kind, offering, labels.And(wanted)})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b offered) int { return int(a.offering.Price - b.offering.Price) })
	return list
}

func labelsOf(kind catalog.Type, offering catalog.Offering) requirement.Set {
	return kind.Labels.And(offering.Labels).And(requirement.NewSet(
		requirement.OneOf(catalog.LabelInstanceType, kind.Name),
		requirement.OneOf(catalog.LabelZone, offering.Zone),
		requirement.OneOf(catalog.LabelCapacityType, offering.CapacityType),
	))
}

// compatible reports whether an offering satisfies what is wanted. A label that the catalogue knows and the offering
// lacks is absent. Any other label comes from the claim.
func compatible(c catalog.Catalog, wanted, labels requirement.Set) bool {
	for r := range wanted.All() {
		if labels.Holds(r.Key()) && !labels.Get(r.Key()).Intersects(r) {
			return false
		}
		if !labels.Holds(r.Key()) && (c.WellKnown[r.Key()] && !r.AllowsAbsent() || r.Empty()) {
			return false
		}
	}
	return true
}

// become returns the node that a claim gets with an offering, ready for pods: without startup taints, with the claim's
// taints.
func become(claim *karpenterv1.NodeClaim, o offered) *corev1.Node {
	labels := maps.Clone(claim.Labels)
	for r := range o.labels.All() {
		key := string(r.Key())
		if own, present := labels[key]; present && r.Has(own) {
			continue
		}
		delete(labels, key)
		if value, found := r.Example(); found && !r.AllowsAbsent() {
			labels[key] = value
		}
	}
	labels[corev1.LabelHostname] = claim.Name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, UID: "node-" + claim.UID,
		ResourceVersion: "1", Labels: labels}}
	node.Spec.ProviderID = "test://" + claim.Name
	node.Spec.Taints = slices.Clone(claim.Spec.Taints)
	node.Status.Capacity, node.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, amount := range o.kind.Capacity {
		node.Status.Capacity[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		node.Status.Allocatable[corev1.ResourceName(name)] = translate.Quantity(name, amount-o.kind.Overhead[name])
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}
