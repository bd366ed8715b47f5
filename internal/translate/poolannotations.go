package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
)

// ourPrefix begins the keys of annotations and labels that only Joiner uses.
const ourPrefix = "joiner.sh/"

// poolAnnotations returns our annotations that a NodePool may have.
func poolAnnotations() []string {
	return []string{karpenterv1.AboveLimitAnnotationKey, karpenterv1.HeadroomAnnotationKey,
		karpenterv1.HeadroomScheduleAnnotationKey, karpenterv1.MinNodesAnnotationKey,
		karpenterv1.NodeOverheadPriceAnnotationKey,
		karpenterv1.PausedAnnotationKey, karpenterv1.SpotRatioAnnotationKey, karpenterv1.TerminateFirstAnnotationKey}
}

// UnknownOfPool returns a text for each annotation, then for each label, with our prefix that has no meaning on a
// NodePool, by key. Usually it is a typing error.
func UnknownOfPool(pool *karpenterv1.NodePool) (faults []string) {
	labels := []string{karpenterv1.LocalVolumesLabelKey}
	for _, of := range []struct {
		kind, other string
		values      map[string]string
		known, swap []string
	}{
		{"annotation", "a label", pool.Annotations, poolAnnotations(), labels},
		{"label", "an annotation", pool.Labels, labels, poolAnnotations()},
	} {
		for _, key := range slices.Sorted(maps.Keys(of.values)) {
			if !strings.HasPrefix(key, ourPrefix) || slices.Contains(of.known, key) {
				continue
			}
			text := fmt.Sprintf("%s %s is %q and has no effect: ", of.kind, key, of.values[key])
			if slices.Contains(of.swap, key) {
				faults = append(faults, text+"it has to be "+of.other)
				continue
			}
			faults = append(faults, text+"a NodePool has none of that name"+nearest.Ask(key, of.known))
		}
	}
	return faults
}

// GracefulFault returns an error if the annotation for graceful expiration has an invalid value.
func GracefulFault(pool *karpenterv1.NodePool) error {
	return switchFault(pool.Annotations, karpenterv1.GracefulExpirationAnnotationKey)
}

// LimitFaults returns a text for each key of spec.limits that no node has, and that therefore limits nothing: "node"
// instead of "nodes", for example. A name with a domain may be a device.
func LimitFaults(pool *karpenterv1.NodePool) (faults []string) {
	known := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory),
		string(corev1.ResourceEphemeralStorage), string(corev1.ResourcePods), resources.NameNodes}
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		if text := string(name); !podsRequest(text) && !slices.Contains(known, text) {
			quantity := pool.Spec.Limits[name]
			faults = append(faults,
				fmt.Sprintf("spec.limits.%s is %s and limits nothing: no node has a resource of that name%s", text,
					quantity.String(), nearest.Ask(text, known)))
		}
	}
	return faults
}
