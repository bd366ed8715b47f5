package pack

import (
	"encoding/binary"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// selectionRule: pods go where their node selector, node affinity and volumes let them (P-02, P-07). It makes the
// ways: one for each alternative that a new node of the pool can satisfy.
type selectionRule struct{ untied }

func (selectionRule) reads() []string { return []string{"Alternatives"} }

func (selectionRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if !n.node.Admits(a.info.Shape) {
		return topology.Never
	}
	return topology.Yes
}

func (selectionRule) placedOn(*solver, *existing, *attempt) {}

func (selectionRule) opens(_ *solver, p *pool, info *shape, ways []way) []way {
	if len(info.Alternatives) == 0 {
		return ways
	}
	return p.ways(info.Shape)
}

func (selectionRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if a.way.custom.Len() > 0 {
		custom, ok := mergeCustom(n.custom, a.way.custom)
		if !ok {
			return topology.Never
		}
		a.custom = custom
	}
	a.way.offers.AndTo(a.offers)
	return topology.Yes
}

func (selectionRule) placedIn(*solver, *planned, *attempt) {}

// explains tells of the alternative that comes furthest.
func (selectionRule) explains(_ *solver, e *explainer) bool { return e.selection() }

// way is one alternative of a shape's node selection as it applies to new nodes of a pool.
type way struct {
	offers catalog.Bits    // allowed by the pool, by availability and by the alternative
	custom requirement.Set // the alternative's requirements on labels that the provider does not decide
	labels requirement.Set // the alternative's demands that a claim has to carry: on labels that its node will have
}

// ways returns the alternatives that a new node of the pool can satisfy, taints and room aside.
func (p *pool) ways(s *cluster.Shape) []way {
	if len(s.Alternatives) == 0 {
		return []way{{offers: p.offers}}
	}
	var list []way
	for _, alternative := range s.Alternatives {
		if w, ok := p.way(alternative); ok {
			list = append(list, w)
		}
	}
	return list
}

func (p *pool) way(alternative cluster.Alternative) (way, bool) {
	if !newHostname(alternative.Names) {
		return way{}, false
	}
	w := way{offers: p.offers.Clone()}
	var custom, carried []requirement.Requirement
	for r := range alternative.Labels.All() {
		switch {
		case r.Key() == cluster.LabelHostname:
			if !newHostname(r) {
				return way{}, false
			}
		case p.Catalog.Known(r.Key()):
			p.Catalog.Compatible(r).AndTo(w.offers)
			carried = append(carried, r)
		case !p.label(r.Key()).Intersects(r):
			return way{}, false
		case p.custom.Holds(r.Key()):
			custom, carried = append(custom, r), append(carried, r)
		}
	}
	w.custom, w.labels = requirement.NewSet(custom...), requirement.NewSet(carried...)
	return w, !w.offers.Empty()
}

// newHostname reports whether a name that is not known yet may satisfy r.
func newHostname(r requirement.Requirement) bool {
	_, finite := r.Values()
	return !finite && r.AllowsPresent()
}

// mergeCustom joins a pod's demands on the pool's custom labels to those of a node; false when nothing would be left.
func mergeCustom(custom, demands requirement.Set) (requirement.Set, bool) {
	if demands.Len() == 0 {
		return custom, true
	}
	merged := custom.And(demands)
	return merged, len(merged.EmptyKeys()) == 0
}

// appendWays appends the ways of a shape, so that equal text means equal ways.
func appendWays(text []byte, info *shape) []byte {
	for _, ways := range info.ways {
		for _, w := range ways {
			text = append(text, '/')
			for _, word := range w.offers {
				text = binary.BigEndian.AppendUint64(text, word)
			}
			custom := ""
			if w.custom.Len() > 0 {
				custom = w.custom.String()
			}
			text = append(binary.AppendUvarint(text, uint64(len(custom))), custom...)
		}
		text = append(text, '|')
	}
	return text
}

// selection applies the shape's node selection: the alternative that comes furthest explains best.
func (e *explainer) selection() bool {
	if len(e.shape.Alternatives) == 0 {
		return true
	}
	start, steps := e.left.Clone(), slices.Clone(e.steps)
	var furthest explainer
	for i, alternative := range e.shape.Alternatives {
		attempt := explainer{pool: e.pool, shape: e.shape, names: e.names, left: start.Clone(),
			steps: slices.Clone(steps)}
		if !newHostname(alternative.Names) {
			attempt.stop(plan.ByPod, cause.OnlyOneNode, "metadata.name", "the pod requires a node by name: "+
				alternative.Names.String())
		} else if attempt.demand(plan.ByPod, alternative.Labels) {
			e.left, e.steps = attempt.left, attempt.steps
			return true
		}
		if i == 0 || len(attempt.steps) > len(furthest.steps) {
			furthest = attempt
		}
	}
	e.left, e.steps = furthest.left, furthest.steps
	return false
}
