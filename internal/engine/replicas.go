package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Replicas plans the nodes that static pools lack (D-12, L-17): as many as spec.replicas or a lower limit asks for, less
// those that exist, whatever becomes of these. A node is launched as the cheapest that the pool admits, for no pod. The
// nodes of static pools always have slots, so two replicas of the controller cannot make them twice.
func Replicas(s *cluster.Snapshot) plan.Plan { return pack.Replicas(s) }
