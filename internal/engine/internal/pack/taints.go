package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// taintRule: pods go where they tolerate the taints (P-08). PreferNoSchedule taints are a matter of preferenceRule.
type taintRule struct {
	anyOffer
	untied
}

func (taintRule) reads() []string { return []string{"Tolerations"} }

func (taintRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if keepsAway(n.node.Taints, a.info.Shape) {
		return topology.Never
	}
	return topology.Yes
}

func (taintRule) placedOn(*solver, *existing, *attempt) {}

func (taintRule) opens(_ *solver, p *pool, info *shape, ways []way) []way {
	if keepsAway(p.Taints, info.Shape) {
		return nil
	}
	return ways
}

// explains also says what would be in the way if the pod tolerated the taint.
func (taintRule) explains(s *solver, e *explainer) bool {
	taint, bad := cluster.Untolerated(e.pool.Taints, e.shape.Tolerations)
	if !bad {
		return true
	}
	e.beyond = e.without(s)
	return e.stop(plan.ByTaint, cause.TaintNotTolerated, taint.Key, "taint "+taint.String()+" is not tolerated")
}

// keepsAway reports whether some taint keeps pods of the shape away.
func keepsAway(taints []cluster.Taint, c *cluster.Shape) bool {
	_, bad := cluster.Untolerated(taints, c.Tolerations)
	return bad
}

// unwelcome returns how many PreferNoSchedule taints the shape does not tolerate.
func unwelcome(taints []cluster.Taint, c *cluster.Shape) int {
	return cluster.Unwelcome(taints, c.Tolerations)
}
