package translate

import (
	"fmt"
	"strconv"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// NodeOverheadPrice returns what a node of the pool costs per hour beside its price: the value of the pool's
// annotation, or usual without one (B-20). The error says that the annotation cannot be understood. Then usual counts,
// since no pod should wait for that.
func NodeOverheadPrice(pool *karpenterv1.NodePool, usual resources.Money) (resources.Money, error) {
	text, found := pool.Annotations[karpenterv1.NodeOverheadPriceAnnotationKey]
	if !found {
		return usual, nil
	}
	dollars, err := strconv.ParseFloat(text, 64)
	if err == nil && decimal.MatchString(text) {
		if price, err := resources.FromDollars(dollars); err == nil {
			return price, nil
		}
	}
	return usual,
		fmt.Errorf(
			"annotation %s is %q: want a decimal number of dollars per hour from 0 to 1000000, for example 0.02; "+
				"--node-overhead-price counts instead", karpenterv1.NodeOverheadPriceAnnotationKey, text)
}
