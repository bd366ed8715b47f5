package kwok

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
)

const providerIDPrefix = "kwok://"

// newNode returns the node of a claim's machine. It has only the unregistered taint. As with any other provider, it
// gets the claim's taints and startup taints when it registers.
func newNode(claim *karpenterv1.NodeClaim, d choose.Demand, taken choose.Choice, now time.Time) *corev1.Node {
	annotations := map[string]string{}
	maps.Copy(annotations, claim.Annotations)
	annotations[NodeLabelKey] = NodeLabelValue
	annotations[ClaimUIDAnnotationKey] = string(claim.UID)
	annotations[ClassAnnotationKey] = claim.Spec.NodeClassRef.Name
	annotations[LaunchedAnnotationKey] = now.UTC().Format(time.RFC3339Nano)
	capacity, allocatable := d.Resources(taken.Type)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: nodeLabels(claim, taken), Annotations: annotations},
		Spec: corev1.NodeSpec{
			ProviderID: providerIDPrefix + claim.Name,
			Taints:     []corev1.Taint{{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}},
		},
		Status: corev1.NodeStatus{Phase: corev1.NodePending, Capacity: capacity, Allocatable: allocatable},
	}
}

// nodeLabels returns the labels of a node: those of claim and catalogue, and those for KWOK.
func nodeLabels(claim *karpenterv1.NodeClaim, taken choose.Choice) map[string]string {
	labels := taken.NodeLabels(claim)
	labels[PriceLabelKey] = fmt.Sprintf("%f", taken.Offering.Price.Dollars())
	labels[PartitionLabelKey] = PartitionLabelValue
	labels[NodeLabelKey] = NodeLabelValue
	return labels
}

// instanceOf reads a machine from its node. It also understands nodes of Karpenter's own KWOK provider: these have
// names of their own and no UID.
func instanceOf(node *corev1.Node) provider.Instance {
	instance := provider.Instance{
		ProviderID:   node.Spec.ProviderID,
		ClaimName:    node.Name,
		ClaimUID:     node.Annotations[ClaimUIDAnnotationKey],
		Type:         node.Labels[string(catalog.LabelInstanceType)],
		Zone:         node.Labels[string(catalog.LabelZone)],
		CapacityType: node.Labels[string(catalog.LabelCapacityType)],
		Labels:       maps.Clone(node.Labels),
		Capacity:     node.Status.Capacity.DeepCopy(),
		Allocatable:  node.Status.Allocatable.DeepCopy(),
		Price:        priceOf(node),
		Launched:     node.CreationTimestamp.Time,
	}
	if host := node.Labels[corev1.LabelHostname]; instance.ClaimUID == "" && host != "" {
		instance.ClaimName = host
	}
	if launched, err := time.Parse(time.RFC3339Nano, node.Annotations[LaunchedAnnotationKey]); err == nil {
		instance.Launched = launched
	}
	return instance
}

func priceOf(node *corev1.Node) resources.Money {
	dollars, err := strconv.ParseFloat(node.Labels[PriceLabelKey], 64)
	if err != nil {
		return resources.Unpriced
	}
	price, err := resources.FromDollars(dollars)
	if err != nil {
		return resources.Unpriced
	}
	return price
}

// isMachine reports whether the node is a running simulated machine. A terminated one is gone, even while finalizers
// hold its Node.
func (p *Provider) isMachine(node *corev1.Node) bool {
	_, terminated := node.Annotations[TerminatedAnnotationKey]
	return strings.HasPrefix(node.Spec.ProviderID, providerIDPrefix) && !terminated && !p.ended.is(node)
}
