package pack

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// explain says why no pool can launch a node for a shape (P-12). Each filter is applied to all instance types of the
// pool's node class in a fixed order, until one leaves nothing.
func (s *solver) explain(c *cluster.Shape) plan.Unplaced {
	var u plan.Unplaced
	for _, node := range s.snapshot.Nodes {
		if !node.Deleting && !node.Disrupting {
			u.Nodes++
		}
	}
	for _, p := range s.pools {
		e := explainer{pool: p, shape: c, names: s.snapshot.Names}
		e.run(s)
		u.Pools = append(u.Pools, plan.PoolRefusal{Pool: p.Name, Steps: e.steps})
	}
	return u
}

type explainer struct {
	pool  *pool
	shape *cluster.Shape
	names resources.Names
	left  catalog.Bits
	steps []plan.Step
}

func (e *explainer) run(s *solver) {
	p := e.pool
	if e.shape.Blocked != "" {
		e.stop(plan.ByPod, "", e.shape.Blocked)
		return
	}
	if p.Blocked != "" || p.Catalog == nil || len(p.Catalog.Offers) == 0 {
		e.stop(plan.ByPool, "", cmp.Or(p.Blocked, "its node class offers nothing"))
		return
	}
	if taint, bad := cluster.Untolerated(p.Taints, e.shape.Tolerations); bad {
		e.stop(plan.ByTaint, taint.Key, "taint "+taint.String()+" is not tolerated")
		return
	}
	e.left = p.Catalog.All()
	if !e.demand(plan.ByPool, p.Requirements) || !e.narrow(plan.ByCapacity, "", "availability", p.Catalog.Available) {
		return
	}
	if !e.selection() || !e.narrow(plan.ByCapacity, string(catalog.LabelCapacityType), "left in reservations", p.inStock()) || !e.resources() {
		return
	}
	if why := s.held(p, e.shape); why != "" {
		e.stop(plan.ByBrake, "", why)
		return
	}
	e.limits()
	if len(e.steps) == 0 || e.steps[len(e.steps)-1].Left > 0 {
		e.topology(s)
	}
}

// stop notes a refusal that has nothing to do with instance types.
func (e *explainer) stop(by plan.Demand, key, detail string) {
	e.steps = append(e.steps, plan.Step{Demand: by, Key: key, Detail: detail})
}

// narrow applies a filter and notes it when it removed something. It reports whether something is left.
func (e *explainer) narrow(by plan.Demand, key, detail string, allowed catalog.Bits) bool {
	before := e.pool.Catalog.CountTypes(e.left)
	allowed.AndTo(e.left)
	left := e.pool.Catalog.CountTypes(e.left)
	if left < before {
		e.steps = append(e.steps, plan.Step{Demand: by, Key: key, Detail: detail, Before: before, Left: left})
	}
	return left > 0
}

// demand applies requirements key by key. A custom label that the pool does not have, or has with other values, ends it.
func (e *explainer) demand(by plan.Demand, demands requirement.Set) bool {
	for r := range demands.All() {
		key := r.Key()
		switch {
		case r.Empty():
			e.stop(by, string(key), "the "+string(by)+"'s requirements on "+string(key)+" contradict each other")
			return false
		case e.pool.Catalog.Known(key):
			if !e.narrow(by, string(key), r.String(), e.pool.Catalog.Compatible(r)) {
				return false
			}
		case by == plan.ByPod && key == cluster.LabelHostname:
			if !newHostname(r) {
				e.stop(by, string(key), "pod wants one particular node: "+r.String())
				return false
			}
		case by == plan.ByPod && !e.pool.label(key).Intersects(r):
			e.stop(by, string(key), "pod wants "+r.String()+", the pool has "+e.pool.label(key).String())
			return false
		}
	}
	return true
}

// selection applies the shape's node selection: the alternative that comes furthest explains best.
func (e *explainer) selection() bool {
	if len(e.shape.Alternatives) == 0 {
		return true
	}
	start, steps := e.left.Clone(), slices.Clone(e.steps)
	var furthest explainer
	for i, alternative := range e.shape.Alternatives {
		attempt := explainer{pool: e.pool, shape: e.shape, names: e.names, left: start.Clone(), steps: slices.Clone(steps)}
		if !newHostname(alternative.Names) {
			attempt.stop(plan.ByPod, "metadata.name", "pod wants a node by name: "+alternative.Names.String())
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

func (e *explainer) resources() bool {
	for component, amount := range e.shape.Requests {
		if amount <= 0 {
			continue
		}
		allowed := e.pool.atLeast(component, amount)
		if allowed == nil {
			allowed = catalog.NewBits(len(e.pool.Catalog.Offers))
		}
		detail := e.names[component] + "=" + e.names.FormatOne(component, amount)
		if !e.narrow(plan.ByPod, e.names[component], detail, allowed) {
			return false
		}
	}
	return true
}

func (e *explainer) limits() {
	p := e.pool
	if exceeded, ok := p.Limits.CheckNodes(p.used.Nodes); !ok {
		e.stop(plan.ByLimit, resources.NameNodes, exceeded.Text(e.names))
		return
	}
	if p.cheapestWithin(e.left, nil) < 0 {
		capacity := p.Catalog.Types[p.Catalog.Offers[e.left.First()].Type].Capacity
		exceeded, _ := p.Limits.Check(p.used, capacity)
		e.stop(plan.ByLimit, e.names[exceeded.Component], exceeded.Text(e.names))
	}
}

// topology is what is left when everything else fits: the constraints over node labels.
func (e *explainer) topology(s *solver) {
	info := s.info(e.shape)
	var blamed []string
	for _, key := range info.rules.Keys {
		if constraint := s.topology.Blames(info.rules, key); constraint != "" {
			blamed = append(blamed, constraint)
		}
	}
	switch {
	case !e.pool.enough(e.left):
		e.stop(plan.ByPool, "minValues", "fewer values than minValues demands")
	case len(info.ways[e.pool.number]) == 0, s.care.wary[e.shape]:
		by, detail := s.keptOut(e.pool, e.shape)
		e.stop(by, "", detail)
	case len(blamed) > 0:
		e.stop(plan.ByTopology, "", strings.Join(blamed, ", ")+" leaves no domain")
	default:
		e.stop(plan.ByPod, "", "host ports are taken by daemons")
	}
}
