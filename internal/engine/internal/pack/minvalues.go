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

// minValuesRule: a claim keeps as many values of a label as its pool demands (P-09). It judges what the claim would
// say, which may be less than what the node may become.
type minValuesRule struct {
	anyNode
	anyPool
	untied
}

func (minValuesRule) reads() []string { return nil }

func (minValuesRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	switch p := a.pool; {
	case !p.insists():
		return topology.Yes
	case !p.enough(a.offers):
		return topology.Never
	case p.some == nil:
		return topology.Yes // limits leave enough, too: see holding
	}
	would := planned{outlook: a.outlook, labels: n.labels.And(a.way.labels).And(a.labels), held: a.holds}
	if !would.choice() {
		return topology.Never
	}
	return topology.Yes
}

func (minValuesRule) placedIn(*solver, *planned, *attempt) {}

// explains says nothing of pools whose taints are in the way. What is beyond taints is told for offers and limits
// only.
func (minValuesRule) explains(_ *solver, e *explainer) bool {
	switch {
	case e.isBeyond || e.enough() && e.sayable():
		return true
	case e.enough():
		return e.stop(plan.ByPool, cause.MinValues, "minValues",
			"minValues asks for more values than a claim can name: on some of its nodes daemons leave the pod no room")
	}
	return e.stop(plan.ByPool, cause.MinValues, "minValues", e.pool.fewValues(e.unreserved()))
}

// sayable reports whether a claim of what is left can name as many values as the pool insists on. It may not where
// daemons run on some offers only (see planned.sayable).
func (e *explainer) sayable() bool {
	p, offers := e.pool, e.unreserved()
	if p.some == nil || !p.insists() || !p.enough(offers) {
		return true
	}
	_, holds := p.holding(p.used, offers, nil)
	would := planned{outlook: outlook{pool: p, offers: offers}, held: holds}
	return would.choice()
}

// unreserved returns what is left without reservations.
func (e *explainer) unreserved() catalog.Bits {
	if e.pool.reserved == nil {
		return e.left
	}
	return e.left.Minus(e.pool.reserved)
}

// insists reports whether the pool rather launches nothing than a node whose claim has fewer values.
func (p *pool) insists() bool { return len(p.MinValues) > 0 && !p.RelaxMinValues }

// enough reports whether offers still give every label the number of values that the pool demands, if it
// insists (P-09).
func (p *pool) enough(offers catalog.Bits) bool {
	return p.RelaxMinValues || p.lacking(offers) == nil
}

// choice reports whether the claim of a planned node has enough values.
func (b *planned) choice() bool {
	if !b.pool.insists() {
		return true
	}
	offers, _ := b.sayable(b.withinHeld())
	return b.pool.enough(offers)
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

// fewValues names the first label with fewer values among offers than the pool demands.
func (p *pool) fewValues(offers catalog.Bits) string {
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
