package translate

import (
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// LocalVolumes reports whether a pool says that its nodes bring local volumes, of classes without a provisioner
// (K-59). The error says that its label cannot be understood; it then counts as false.
func LocalVolumes(pool *karpenterv1.NodePool) (bool, error) {
	switch text, found := pool.Labels[karpenterv1.LocalVolumesLabelKey]; {
	case !found, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, fmt.Errorf("label %s is %q: want true or false; it counts as false",
			karpenterv1.LocalVolumesLabelKey, text)
	}
}
