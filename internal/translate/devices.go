package translate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
