// Package engine decides: which nodes to launch for pending pods, and which to take away. Each verb is a pure function
// from a [cluster.Snapshot] to a [plan.Plan]: no clock, no API call, no global, no chance. The same snapshot gives the
// same plan byte for byte, in whatever order its parts came in (P-20).
//
// Nothing here writes, waits, logs or counts time: work is bounded by the size of the input. "No" is an answer, not
// an error: a pod that cannot be placed comes back with the reason of every pool (P-12).
//
// To learn what it does, read the scripts in testdata in the order of their numbers: they are its manual. To learn
// how, start at [Provision], then internal/pack.
//
// The engine and all packages below it import the standard library only (internal/tidy checks that).
package engine

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Provision plans for the snapshot's pending pods: on capacity that exists or is on its way first, then on new nodes
// of the pools by weight (P-10, P-23). The plan lists every pending pod once: nominated, on a launch, or unplaced.
// Buffer pods come after all of them, and are listed apart (K-37). Last come launches for pools below their floor
// (K-54).
func Provision(s *cluster.Snapshot) plan.Plan {
	return withFloors(s, withBuffers(s, pack.Provide(s, s.Pending)))
}
