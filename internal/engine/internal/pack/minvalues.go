package pack

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// minValuesRule: a claim keeps as many values of a label as its pool demands (P-09).
type minValuesRule struct {
	anyNode
	anyPool
	untied
}

func (minValuesRule) reads() []string { return nil }

func (minValuesRule) narrows(_ *solver, _ *planned, a *attempt) topology.Verdict {
	if !a.pool.enough(a.offers) {
		return topology.Never
	}
	return topology.Yes
}

func (minValuesRule) placedIn(*solver, *planned, *attempt) {}

// explains says nothing of pools whose taints are in the way. What is beyond taints is told for offers and limits
// only.
func (minValuesRule) explains(_ *solver, e *explainer) bool {
	if e.isBeyond || e.enough() {
		return true
	}
	return e.stop(plan.ByPool, cause.MinValues, "minValues", e.fewValues())
}

// enough reports whether offers still give every label the number of values that the pool demands, if it
// insists (P-09).
func (p *pool) enough(offers catalog.Bits) bool {
	return p.RelaxMinValues || p.lacking(offers) == nil
}

func (p *pool) lacking(offers catalog.Bits) map[requirement.Key]int { return Lacking(p.Pool, offers) }

// Lacking returns the labels with fewer values among offers than the pool demands, and how many; nil when there are
// none (P-09).
func Lacking(p *cluster.Pool, offers catalog.Bits) map[requirement.Key]int {
	var few map[requirement.Key]int
	for _, demand := range p.MinValues {
		if !p.Catalog.Known(demand.Key) {
			continue
		}
		if n := len(p.Catalog.Values(demand.Key, offers)); n < demand.Count {
			if few == nil {
				few = map[requirement.Key]int{}
			}
			few[demand.Key] = n
		}
	}
	return few
}

// fewValues names the first label with fewer values left than the pool demands.
func (e *explainer) fewValues() string {
	p, offers := e.pool, e.left
	if p.reserved != nil {
		offers = e.left.Minus(p.reserved)
	}
	few := p.lacking(offers)
	for _, demand := range p.MinValues {
		if n, lacks := few[demand.Key]; lacks {
			return fmt.Sprintf("minValues asks for %d values of %s, with only %d left for the pod", demand.Count,
				demand.Key, n)
		}
	}
	return "fewer values are left for the pod than minValues asks for"
}

// enough reports whether what is left has the values that minValues demands. A node in a reservation has only that
// offer, and another node has none that is reserved (see reserve).
func (e *explainer) enough() bool {
	p := e.pool
	if p.reserved == nil {
		return p.enough(e.left)
	}
	others := e.left.Minus(p.reserved)
	for i := range e.left.And(p.reserved).All() {
		only := catalog.NewBits(len(p.Catalog.Offers))
		only.Add(i)
		if p.lacking(only) == nil || p.RelaxMinValues && others.Empty() {
			return true
		}
	}
	return !others.Empty() && p.enough(others)
}
