package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Holds is what Judge asks about nodes that were chosen before.
func Holds(s *cluster.Snapshot, reason plan.DisruptionReason, nodes ...*cluster.Node) bool {
	return hear(s, 0).holds(reason, nodes)
}
