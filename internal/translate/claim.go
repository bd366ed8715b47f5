package translate

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// NodeClaimFor returns the NodeClaim of a planned launch from pool (P-24), ready to be created with the given name.
// names are the resource names of the plan.
func NodeClaimFor(pool *karpenterv1.NodePool, names resources.Names, launch plan.Launch,
	name string) *karpenterv1.NodeClaim {
	template := pool.Spec.Template.Spec.DeepCopy()
	minValues := minValuesOf(pool)
	for key, left := range launch.Relaxed {
		minValues[key] = min(minValues[key], left)
	}
	requirements, relaxed := claimRequirements(launch, minValues)
	claim := &karpenterv1.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      claimLabels(pool, launch),
			Annotations: claimAnnotations(pool, launch, relaxed || len(launch.Relaxed) > 0),
			Finalizers:  []string{karpenterv1.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID,
				BlockOwnerDeletion: new(true),
			}},
		},
		Spec: karpenterv1.NodeClaimSpec{
			Taints:                 template.Taints,
			StartupTaints:          template.StartupTaints,
			Requirements:           requirements,
			Resources:              karpenterv1.ResourceRequirements{Requests: claimRequests(names, launch.Requests)},
			NodeClassRef:           template.NodeClassRef,
			TerminationGracePeriod: template.TerminationGracePeriod,
			ExpireAfter:            template.ExpireAfter,
		},
	}
	// Only we know the unit of days. Karpenter could not read such a NodeClaim if it takes the cluster back (K-28).
	if strings.Contains(claim.Spec.ExpireAfter.Raw, "d") {
		claim.Spec.ExpireAfter.Raw = ""
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil && strings.Contains(grace.Raw, "d") {
		grace.Raw = ""
	}
	return claim
}

// claimRequests leaves out volume resources: the scheduler and the drivers handle attaching. A node that must show
// room for them first would never be initialized.
func claimRequests(names resources.Names, requests resources.Vector) corev1.ResourceList {
	list := ResourceList(names, requests)
	for name := range list {
		if isVolumeResource(string(name)) {
			delete(list, name)
		}
	}
	return list
}

func minValuesOf(pool *karpenterv1.NodePool) map[requirement.Key]int {
	_, list, _ := Requirements(pool.Spec.Template.Spec.Requirements)
	counts := make(map[requirement.Key]int, len(list))
	for _, demand := range list {
		counts[demand.Key] = demand.Count
	}
	return counts
}

// claimRequirements returns the requirements of the launch, with instance types in order of price and the minimum
// counts of the pool. If a list is shorter than its count, the API would refuse the claim. Then the count is reduced
// to the length of the list, and relaxed is true (P-09); a count of 0 is left out. The host name is left out: no claim
// can ask for it.
func claimRequirements(launch plan.Launch,
	minValues map[requirement.Key]int) (list []karpenterv1.NodeSelectorRequirementWithMinValues, relaxed bool) {
	set := launch.Requirements.Without(catalog.LabelInstanceType).Without(cluster.LabelHostname)
	for r := range set.All() {
		terms := requirementToAPI(r)
		if count := minValues[r.Key()]; count > 0 {
			if len(terms) == 0 {
				terms = requirementToAPI(requirement.Present(r.Key()))
			}
			relaxed = demand(&terms[0], count) || relaxed
		}
		list = append(list, terms...)
	}
	if len(launch.Types) == 0 {
		return list, relaxed // the API refuses a list without values
	}
	types := karpenterv1.NodeSelectorRequirementWithMinValues{
		Key: string(catalog.LabelInstanceType), Operator: corev1.NodeSelectorOpIn, Values: slices.Clone(launch.Types),
	}
	if count := minValues[catalog.LabelInstanceType]; count > 0 {
		relaxed = demand(&types, count) || relaxed
	}
	return append(list, types), relaxed
}

func demand(term *karpenterv1.NodeSelectorRequirementWithMinValues, count int) (relaxed bool) {
	if term.Operator == corev1.NodeSelectorOpIn && len(term.Values) < count {
		count, relaxed = len(term.Values), true
	}
	if count > 0 { // the API refuses a demand of nothing
		term.MinValues = &count
	}
	return relaxed
}

// claimLabels returns the node's future labels, as far as the plan decides them. The choice of the plan wins over the
// template, which it is based on.
func claimLabels(pool *karpenterv1.NodePool, launch plan.Launch) map[string]string {
	labels := map[string]string{}
	for label, value := range pool.Spec.Template.ObjectMeta.Labels {
		labels[label] = value
	}
	for r := range launch.Requirements.All() {
		if value, single := r.Single(); single && r.Key() != cluster.LabelHostname {
			labels[string(r.Key())] = value
		}
	}
	if len(launch.Types) == 1 {
		labels[string(catalog.LabelInstanceType)] = launch.Types[0]
	}
	for label, value := range launch.Labels {
		labels[label] = value
	}
	if class := pool.Spec.Template.Spec.NodeClassRef; class != nil {
		labels[NodeClassLabel(class)] = class.Name
	}
	labels[karpenterv1.NodePoolLabelKey] = pool.Name
	return labels
}

func claimAnnotations(pool *karpenterv1.NodePool, launch plan.Launch, relaxed bool) map[string]string {
	annotations := map[string]string{}
	for name, value := range pool.Spec.Template.ObjectMeta.Annotations {
		annotations[name] = value
	}
	for _, key := range []string{karpenterv1.KubeletCompatibilityAnnotationKey,
		karpenterv1.MisspelledKubeletCompatibilityAnnotationKey} {
		if block, found := pool.Annotations[key]; found {
			annotations[key] = block // for the provider that launches the claim (V-23)
		}
	}
	annotations[karpenterv1.NodePoolHashAnnotationKey] = Hash(pool)
	annotations[karpenterv1.NodePoolHashVersionAnnotationKey] = HashVersion
	if relaxed {
		annotations[karpenterv1.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
	}
	if len(launch.For) > 0 && len(launch.Replaces) == 0 {
		annotations[karpenterv1.LaunchedForAnnotationKey] = strings.Join(launch.For, ",")
	}
	if len(launch.Drivers) > 0 {
		annotations[karpenterv1.NeedsDriversAnnotationKey] = strings.Join(launch.Drivers, ",")
	}
	if len(launch.Replaces) > 0 {
		annotations[karpenterv1.ReplacesAnnotationKey] = strings.Join(launch.Replaces, ",")
		annotations[karpenterv1.ReplacementsAnnotationKey] = strconv.Itoa(max(1, launch.Together))
	}
	return annotations
}
