package translate

import (
	"strings"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// BacksOffUntil says until when a pool is left alone after a command of it was taken back, as the pool's annotation
// has it (D-06); zero when it is not, or when nobody can read that.
func BacksOffUntil(pool *karpenterv1.NodePool, now time.Time) time.Time {
	text, _, _ := strings.Cut(pool.Annotations[karpenterv1.DisruptionBackoffAnnotationKey], " ")
	until, err := time.Parse(time.RFC3339, text)
	if err != nil || !until.After(now) {
		return time.Time{}
	}
	return until
}
