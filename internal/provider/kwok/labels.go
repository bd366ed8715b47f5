package kwok

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Labels and annotations of a simulated node, beside those of its instance type, and annotations that users set.
const (
	// NodeLabelKey, as a label and as an annotation, makes KWOK look after the node if its value is NodeLabelValue.
	NodeLabelKey   = "kwok.x-k8s.io/node"
	NodeLabelValue = "fake"
	// PartitionLabelKey names the KWOK controller of the node; there is only PartitionLabelValue.
	PartitionLabelKey   = "kwok-partition"
	PartitionLabelValue = "a"
	// PriceLabelKey is the price in dollars per hour, with six decimals. eks-node-viewer shows it.
	PriceLabelKey = "eks-node-viewer/instance-price"

	// ClaimUIDAnnotationKey is the UID of the NodeClaim that the machine was launched for.
	ClaimUIDAnnotationKey = kwokv1alpha1.Group + "/nodeclaim-uid"
	// ClassAnnotationKey is the name of the KWOKNodeClass that it was launched with.
	ClassAnnotationKey = kwokv1alpha1.Group + "/launched-by"
	// LaunchedAnnotationKey is when it was launched, in RFC 3339 with fractions.
	LaunchedAnnotationKey = kwokv1alpha1.Group + "/launched"
	// TerminatedAnnotationKey, on a Node that finalizers still hold, is when the machine was ended.
	TerminatedAnnotationKey = kwokv1alpha1.Group + "/terminated"
	// InterruptedAnnotationKey on a Node, set by hand, is the cloud's notice that it takes the machine away (P-43).
	// The value is when the machine will be gone, in RFC 3339. Any other value means that the time is unknown.
	InterruptedAnnotationKey = kwokv1alpha1.Group + "/interrupted"
	// FaultsAnnotationKey on a KWOKNodeClass has its faults; see [ParseFaults].
	FaultsAnnotationKey = kwokv1alpha1.Group + "/faults"
)

const (
	labelArch   requirement.Key = corev1.LabelArchStable
	labelOS     requirement.Key = corev1.LabelOSStable
	labelRegion requirement.Key = corev1.LabelTopologyRegion

	labelSize   requirement.Key = kwokv1alpha1.InstanceSizeLabelKey
	labelFamily requirement.Key = kwokv1alpha1.InstanceFamilyLabelKey
	labelCPU    requirement.Key = kwokv1alpha1.InstanceCPULabelKey
	labelMemory requirement.Key = kwokv1alpha1.InstanceMemoryLabelKey
)

// typeLabels returns the labels of a type in a generic or file inventory. cpu and memory are quantities as canonical
// text.
func typeLabels(name, arch string, systems []string, cpu, memory string) requirement.Set {
	return requirement.NewSet(
		requirement.OneOf(labelArch, arch),
		requirement.OneOf(labelOS, systems...),
		requirement.OneOf(labelSize, sizeOf(name, cpu)),
		requirement.OneOf(labelFamily, familyOf(name)),
		requirement.OneOf(labelCPU, cpu),
		requirement.OneOf(labelMemory, memory),
	)
}

// sizeOf returns the value of the size label: for a name like m5.2xlarge the part after the dot, otherwise the cpus.
func sizeOf(name, cpu string) string {
	family, size, found := strings.Cut(name, ".")
	if !found || family == "" || strings.ContainsFunc(family, notWord) {
		return cpu
	}
	switch size {
	case "nano", "micro", "small", "medium", "large", "metal":
		return size
	}
	if digits, found := strings.CutSuffix(size, "xlarge"); found && strings.Trim(digits, "0123456789") == "" {
		return size
	}
	return cpu
}

func notWord(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// familyOf returns the value of the family label: the name up to its first dot or dash, otherwise its first letter.
func familyOf(name string) string {
	if i := strings.IndexAny(name, ".-"); i >= 0 {
		return name[:i]
	}
	return name[:min(1, len(name))]
}
