// Package oracle checks plans. The judge is to be kube-scheduler's own filter plugins (P-21); until one is connected,
// only Joiner's plans are checked, by the engine's naive reading of the rules, and only where that ends in time.
package oracle

import (
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Oracle binds every pod of a plan where it was planned, in some order that kube-scheduler would admit, and returns in
// words what stands in the way of the rest: nothing for a valid plan. It serves both sides alike.
//
// This is the hook for the oracle: an implementation goes into [Connected].
type Oracle func(scenario.Scenario, outcome.Outcome) (violations []string, err error)

// Connected returns the oracle, nil while there is none.
func Connected() Oracle { return nil }

// maxNaive bounds the pods and nodes of a plan that Naive checks: it compares every pod with every other, again and
// again.
const maxNaive = 100

// Naive checks a plan of Joiner's with the checker of the engine's own tests; false when the plan is too large.
func Naive(before *cluster.Snapshot, p plan.Plan) (violations []string, checked bool) {
	if len(before.Pending) > maxNaive || len(before.Nodes) > maxNaive {
		return nil, false
	}
	return enginetest.Check(before, p, 0), true
}
