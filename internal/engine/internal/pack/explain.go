package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// explain says why no pool can launch a node for a shape (P-12). The rules are applied to all instance types of the
// pool's node class, until one leaves nothing. When all leave something, the first rule that depends on where other
// pods are is blamed: its demands can be met, but nowhere together with the others.
func (s *solver) explain(c *cluster.Shape) plan.Unplaced {
	var u plan.Unplaced
	for _, node := range s.snapshot.Nodes {
		if !node.Deleting && !node.Disrupting {
			u.Nodes++
		}
	}
	for _, p := range s.pools {
		e := explainer{pool: p, shape: c, names: s.snapshot.Names, rest: s.rules.all}
		u.Pools = append(u.Pools, e.run(s))
	}
	return u
}

type explainer struct {
	pool     *pool
	shape    *cluster.Shape
	names    resources.Names
	rest     []rule       // not applied yet
	left     catalog.Bits // offers that the rules have left
	steps    []plan.Step
	suspects []plan.Step
	// isBeyond is set while looking for what else is in the way beyond taints. beyond is the answer, "" for nothing.
	isBeyond bool
	beyond   cause.Code
}

func (e *explainer) run(s *solver) plan.PoolRefusal {
	if e.apply(s) {
		e.suspect(plan.ByPod, cause.NoPlaceFound,
			"each of its demands can be met, but no place was found that meets all of them")
		e.steps = append(e.steps, e.suspects[0])
	}
	return plan.PoolRefusal{Pool: e.pool.Name, Steps: e.steps, Beyond: e.beyond}
}

// apply applies the rules that are not applied yet, until one leaves nothing. It reports whether all leave something.
func (e *explainer) apply(s *solver) bool {
	for len(e.rest) > 0 {
		next := e.rest[0]
		e.rest = e.rest[1:]
		if !next.explains(s, e) {
			return false
		}
	}
	return true
}

// without returns what would be in the way without the rule that is applied now; "" for nothing.
func (e *explainer) without(s *solver) cause.Code {
	other := *e
	if other.isBeyond = true; other.apply(s) {
		return ""
	}
	return other.steps[len(other.steps)-1].Cause
}

// stop notes a refusal that has nothing to do with instance types, and returns false.
func (e *explainer) stop(by plan.Demand, code cause.Code, key, detail string) bool {
	e.steps = append(e.steps, plan.Step{Demand: by, Cause: code, Key: key, Detail: detail})
	return false
}

// suspect notes what is to blame if every rule leaves something. The first suspect is named.
func (e *explainer) suspect(by plan.Demand, code cause.Code, detail string) {
	e.suspects = append(e.suspects, plan.Step{Demand: by, Cause: code, Detail: detail})
}

// narrow applies a filter and notes it when it removed something. It reports whether something is left.
func (e *explainer) narrow(by plan.Demand, code cause.Code, key, detail string, allowed catalog.Bits) bool {
	before := e.pool.Catalog.CountTypes(e.left)
	allowed.AndTo(e.left)
	left := e.pool.Catalog.CountTypes(e.left)
	if left < before {
		e.steps = append(e.steps, plan.Step{Demand: by, Cause: code, Key: key, Detail: detail, Before: before,
			Left: left})
	}
	return left > 0
}

// demand applies requirements key by key. A custom label that the pool does not have, or has with other values,
// ends it.
func (e *explainer) demand(by plan.Demand, demands requirement.Set) bool {
	contradiction, mismatch := cause.PoolContradictsItself, cause.PoolContradictsItself
	if by == plan.ByPod {
		contradiction, mismatch = cause.ContradictsItself, cause.LabelMismatch
	}
	for r := range demands.All() {
		key := r.Key()
		switch {
		case r.Empty():
			e.stop(by, contradiction, string(key), "the "+string(by)+"'s requirements on "+string(key)+
				" contradict each other")
			return false
		case e.pool.Catalog.Known(key):
			if !e.narrow(by, mismatch, string(key), r.String(), e.pool.Catalog.Compatible(r)) {
				return false
			}
		case by == plan.ByPod && key == cluster.LabelHostname:
			if !newHostname(r) {
				e.stop(by, cause.OnlyOneNode, string(key), "the pod requires one particular node: "+r.String())
				return false
			}
		case by == plan.ByPod && !e.pool.label(key).Intersects(r):
			code := cause.LabelMismatch
			if e.pool.label(key).AllowsAbsent() {
				code = cause.LabelUnknown
			}
			e.stop(by, code, string(key), "the pod requires "+r.String()+", the pool has "+e.pool.label(key).String())
			return false
		}
	}
	return true
}
