package translate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// DeviceClaims returns the names of the ResourceClaims of a pod, sorted, each once. It reads the pod and its
// containers; an API server allows containers only the names of the pod.
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

// addDevices blocks the shape of a pod that asks for devices: nobody knows which node has them (K-41). No node is
// launched for such a pod, and a running one has no other place. A problem of the pod itself comes first. The shape
// must not be interned yet.
func addDevices(shape *cluster.Shape, spec *corev1.PodSpec) {
	names := DeviceClaims(spec)
	if len(names) == 0 || shape.Blocked != "" {
		return
	}
	block(shape, cause.DevicesUnknown, "it asks for devices by ResourceClaims (spec.resourceClaims "+
		strings.Join(names, ", ")+"), and which nodes have them is not known")
}

// ResolveDevices makes pod to, which was converted from the other, ask for devices by its claims (K-42). For a
// template that is the claim named in the pod's status. A running pod has its devices, and stays where it is. The
// shape must not be interned yet.
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
			continue // none was made because none is needed
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
