package translate

import (
	"fmt"
	"strconv"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// MostMinNodes bounds MinNodes: more must be a typing error.
const MostMinNodes = 100_000

// MinNodes returns how many nodes a pool always keeps, with or without pods: its floor (K-54). It is 0 if there is
// none. found reports whether the pool has the annotation. With an error the annotation has no effect and 0 counts.
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
		return 0, true,
			fmt.Errorf(
				"annotation %s is %q and has no effect on a static NodePool: spec.replicas is how many nodes it keeps",
				karpenterv1.MinNodesAnnotationKey, text)
	}
	return least, true, nil
}

// ParseMinNodes parses the text of a floor.
func ParseMinNodes(text string) (int64, error) {
	least, err := strconv.ParseInt(text, 10, 64)
	if err != nil || least < 0 || least > MostMinNodes {
		return 0, fmt.Errorf("is %q: want a whole number of nodes from 0 to %d, for example 3", text, MostMinNodes)
	}
	return least, nil
}
