package translate

import (
	"fmt"
	"strconv"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// MostMinNodes bounds how many nodes a pool may always keep: whoever wants more has mistyped.
const MostMinNodes = 100_000

// MinNodes returns how many nodes a pool always keeps, whatever pods there are: its floor (K-54); 0 for no such number. found
// tells whether the pool says anything. The error says why what it says has no effect; 0 counts then.
func MinNodes(pool *karpenterv1.NodePool) (least int64, found bool, err error) {
	text, found := pool.Annotations[karpenterv1.MinNodesAnnotationKey]
	if !found {
		return 0, false, nil
	}
	least, err = ParseMinNodes(text)
	switch {
	case err != nil:
		return 0, true, fmt.Errorf("annotation %s %w", karpenterv1.MinNodesAnnotationKey, err)
	case pool.Spec.Replicas != nil:
		return 0, true, fmt.Errorf("annotation %s is %q and has no effect on a static NodePool: spec.replicas is how many nodes it keeps",
			karpenterv1.MinNodesAnnotationKey, text)
	}
	return least, true, nil
}

// ParseMinNodes reads a floor as users write it.
func ParseMinNodes(text string) (int64, error) {
	least, err := strconv.ParseInt(text, 10, 64)
	if err != nil || least < 0 || least > MostMinNodes {
		return 0, fmt.Errorf("is %q: want a whole number of nodes from 0 to %d, for example 3", text, MostMinNodes)
	}
	return least, nil
}
