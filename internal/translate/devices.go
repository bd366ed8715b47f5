package translate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// DeviceClaims returns the names under which a pod asks for devices by ResourceClaims, sorted, each once: of the pod, and of
// its containers, which an API server holds to those of the pod.
func DeviceClaims(spec *corev1.PodSpec) []string {
	var names []string
	for _, claim := range spec.ResourceClaims {
		names = append(names, claim.Name)
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, container := range list {
			for _, claim := range container.Resources.Claims {
				names = append(names, claim.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addDevices makes a shape, which is not interned yet, say that nobody can tell which node has the devices that the pod asks
// for (K-41): no node is launched for it, and one that runs has no other place. What is wrong with the pod comes first.
func addDevices(shape *cluster.Shape, spec *corev1.PodSpec) {
	names := DeviceClaims(spec)
	if len(names) == 0 || shape.Blocked != "" {
		return
	}
	block(shape, cause.DevicesUnknown, "it asks for devices by ResourceClaims (spec.resourceClaims "+
		strings.Join(names, ", ")+"), and which nodes have them is not known")
}

// ResolveDevices makes a pod, which was made from the other and whose shape is not interned yet, ask for its devices by the
// claims that it has (K-42): of a template, the one that its status names. A pod that runs has its devices, and stays where it
// is.
func ResolveDevices(to *cluster.Pod, from *corev1.Pod) {
	if to.Shape.BlockedBy != cause.DevicesUnknown || len(from.Spec.ResourceClaims) == 0 {
		return
	}
	shape := to.Shape.Unblocked()
	for i := range from.Spec.ResourceClaims {
		wanted := &from.Spec.ResourceClaims[i]
		name, own, err := resourceclaim.Name(from, wanted)
		claim := cluster.DeviceClaim{Name: wanted.Name}
		switch {
		case err == nil && name == nil:
			continue // none was made, since none is needed
		case err == nil:
			claim.Object = *name
		case wanted.ResourceClaimTemplateName != nil:
			claim.Template = *wanted.ResourceClaimTemplateName
		}
		if own {
			claim.Owner = string(from.UID)
		}
		shape.Claims = append(shape.Claims, claim)
	}
	if from.Spec.NodeName != "" && len(shape.Claims) > 0 {
		shape = shape.Holding()
	}
	to.Shape = shape
}
