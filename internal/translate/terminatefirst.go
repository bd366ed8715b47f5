package translate

import (
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// TerminateFirst is what a NodePool's annotation joiner.sh/terminate-first says (K-48).
type TerminateFirst struct {
	// On lets one node at a time go before its replacement comes, if the hard limit leaves no room for both.
	On bool
	// Set is true if the annotation exists. Fault says what is wrong with its value, and what is allowed.
	Set   bool
	Fault string
}

// TerminateFirstOf reads the annotation of a pool. A value that cannot be understood lets nothing go.
func TerminateFirstOf(pool *karpenterv1.NodePool) TerminateFirst {
	value, found := pool.Annotations[karpenterv1.TerminateFirstAnnotationKey]
	first := TerminateFirst{On: value == "true", Set: found}
	if found && value != "true" && value != "false" {
		first.Fault = fmt.Sprintf(`annotation %s is %q: want "true" or "false"; it counts as "false"`,
			karpenterv1.TerminateFirstAnnotationKey, value)
	}
	return first
}

// Does says what the annotation means for the pool.
func (f TerminateFirst) Does(pool *karpenterv1.NodePool) string {
	_, hard := pool.Spec.HardLimits["nodes"]
	switch on := fmt.Sprintf("annotation %s is \"true\": ", karpenterv1.TerminateFirstAnnotationKey); {
	case f.Fault != "":
		return f.Fault
	case !f.On:
		return fmt.Sprintf("annotation %s is \"false\": a node goes when what replaces it is there",
			karpenterv1.TerminateFirstAnnotationKey)
	case pool.Spec.Replicas != nil:
		return on +
			"it has no effect, the feature gate TerminateFirstDrift is what lets a node of a static pool go first"
	case !hard:
		return on + "it has no effect, the pool has no spec.hardLimits.nodes"
	default:
		return on +
			"where the hard limit leaves no room for a replacement, one node at a time goes before what replaces it comes"
	}
}
