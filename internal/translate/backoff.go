package translate

import (
	"strings"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// BacksOffUntil returns until when a pool is left alone after one of its commands was taken back (D-06). It reads the
// pool's annotation, and returns zero if there is none in force or it cannot be read.
func BacksOffUntil(pool *karpenterv1.NodePool, now time.Time) time.Time {
	text, _, _ := strings.Cut(pool.Annotations[karpenterv1.DisruptionBackoffAnnotationKey], " ")
	until, err := time.Parse(time.RFC3339, text)
	if err != nil || !until.After(now) {
		return time.Time{}
	}
	return until
}
