package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
)

// ourPrefix begins the keys of annotations and labels that are Joiner's alone: nobody else gives them a meaning.
const ourPrefix = "joiner.sh/"

// poolAnnotations are the annotations of ours that a NodePool may have.
func poolAnnotations() []string {
	return []string{karpenterv1.AboveLimitAnnotationKey, karpenterv1.HeadroomAnnotationKey,
		karpenterv1.HeadroomScheduleAnnotationKey, karpenterv1.MinNodesAnnotationKey, karpenterv1.NodeOverheadPriceAnnotationKey,
		karpenterv1.PausedAnnotationKey, karpenterv1.SpotRatioAnnotationKey, karpenterv1.TerminateFirstAnnotationKey}
}

// UnknownOfPool says of each annotation and label of ours on a NodePool that has no meaning there, in the order of their keys.
// That is mostly a key that was mistyped.
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

// GracefulFault says that the annotation for graceful expiration has a value that means nothing.
func GracefulFault(pool *karpenterv1.NodePool) error {
	value, found := pool.Annotations[karpenterv1.GracefulExpirationAnnotationKey]
	if !found || value == "true" || value == "false" {
		return nil
	}
	return fmt.Errorf("annotation %s is %q: want \"true\" or \"false\"; it counts as \"false\"",
		karpenterv1.GracefulExpirationAnnotationKey, value)
}
