package translate

import (
	"fmt"
	"regexp"
	"strconv"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// percentage is a whole number of percent.
var percentage = regexp.MustCompile(`^(100|[1-9]?[0-9])%$`)

// OnDemandPercent returns the share of the pool's nodes that must not be spot, in percent: 100 minus the annotation
// for spot nodes, 0 without it (K-55). The error says that the annotation cannot be understood. Then any mix is
// allowed, since no pod should wait for that.
func OnDemandPercent(pool *karpenterv1.NodePool) (int, error) {
	text, found := pool.Annotations[karpenterv1.SpotRatioAnnotationKey]
	if !found {
		return 0, nil
	}
	match := percentage.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("annotation %s is %q: want a whole percentage from 0%% to 100%%, for example 70%%; "+
			"any number of nodes may be spot", karpenterv1.SpotRatioAnnotationKey, text)
	}
	spot, err := strconv.Atoi(match[1])
	return 100 - spot, err
}
