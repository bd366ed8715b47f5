package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
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
		u.Pools = append(u.Pools, e.run(s))
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

func (e *explainer) run(s *solver) plan.PoolRefusal {
	refusal := plan.PoolRefusal{Pool: e.pool.Name}
	if e.fit() {
		if taint, bad := cluster.Untolerated(e.pool.Taints, e.shape.Tolerations); bad {
			beyond := *e
			if !beyond.offers(s) {
				refusal.Beyond = beyond.steps[len(beyond.steps)-1].Cause
			}
			e.stop(plan.ByTaint, cause.TaintNotTolerated, taint.Key, "taint "+taint.String()+" is not tolerated")
		} else if e.offers(s) {
			e.topology(s)
		}
	}
	refusal.Steps = e.steps
	return refusal
}

// fit reports whether pod and pool are such that filters say something.
func (e *explainer) fit() bool {
	p := e.pool
	if e.shape.Blocked != "" {
		e.stop(plan.ByPod, cmp.Or(e.shape.BlockedBy, cause.PodMalformed), "", e.shape.Blocked)
		return false
	}
	if p.Blocked != "" || p.Catalog == nil || len(p.Catalog.Offers) == 0 {
		code := cause.PoolNotReady
		if p.Static {
			code = cause.StaticPool
		}
		e.stop(plan.ByPool, cmp.Or(p.BlockedBy, code), "", cmp.Or(p.Blocked, "its node class offers nothing"))
		return false
	}
	return true
}

// offers applies the filters of instance types and the pool's limits. It reports whether they leave something.
func (e *explainer) offers(s *solver) bool {
	p := e.pool
	e.left = p.Catalog.All()
	if !e.demand(plan.ByPool, p.Requirements) || !e.narrow(plan.ByCapacity, cause.NoCapacity, "", "availability", p.Catalog.Available) {
		return false
	}
	if !e.selection() {
		return false
	}
	const kept = "left in reservations"
	if !e.narrow(plan.ByCapacity, cause.ReservationsUsedUp, string(catalog.LabelCapacityType), kept, p.inStock()) || !e.resources() {
		return false
	}
	if why := s.held(p, e.shape); why != "" {
		e.stop(plan.ByBrake, cause.LaunchesInVain, "", why)
		return false
	}
	e.limits()
	return len(e.steps) == 0 || e.steps[len(e.steps)-1].Left > 0
}

// stop notes a refusal that has nothing to do with instance types.
func (e *explainer) stop(by plan.Demand, code cause.Code, key, detail string) {
	e.steps = append(e.steps, plan.Step{Demand: by, Cause: code, Key: key, Detail: detail})
}

// narrow applies a filter and notes it when it removed something. It reports whether something is left.
func (e *explainer) narrow(by plan.Demand, code cause.Code, key, detail string, allowed catalog.Bits) bool {
	before := e.pool.Catalog.CountTypes(e.left)
	allowed.AndTo(e.left)
	left := e.pool.Catalog.CountTypes(e.left)
	if left < before {
		e.steps = append(e.steps, plan.Step{Demand: by, Cause: code, Key: key, Detail: detail, Before: before, Left: left})
	}
	return left > 0
}

// demand applies requirements key by key. A custom label that the pool does not have, or has with other values, ends it.
func (e *explainer) demand(by plan.Demand, demands requirement.Set) bool {
	contradiction, mismatch := cause.PoolContradictsItself, cause.PoolContradictsItself
	if by == plan.ByPod {
		contradiction, mismatch = cause.ContradictsItself, cause.LabelMismatch
	}
	for r := range demands.All() {
		key := r.Key()
		switch {
		case r.Empty():
			e.stop(by, contradiction, string(key), "the "+string(by)+"'s requirements on "+string(key)+" contradict each other")
			return false
		case e.pool.Catalog.Known(key):
			if !e.narrow(by, mismatch, string(key), r.String(), e.pool.Catalog.Compatible(r)) {
				return false
			}
		case by == plan.ByPod && key == cluster.LabelHostname:
			if !newHostname(r) {
				e.stop(by, cause.OnlyOneNode, string(key), "pod wants one particular node: "+r.String())
				return false
			}
		case by == plan.ByPod && !e.pool.label(key).Intersects(r):
			code := cause.LabelMismatch
			if e.pool.label(key).AllowsAbsent() {
				code = cause.LabelUnknown
			}
			e.stop(by, code, string(key), "pod wants "+r.String()+", the pool has "+e.pool.label(key).String())
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
			attempt.stop(plan.ByPod, cause.OnlyOneNode, "metadata.name", "pod wants a node by name: "+alternative.Names.String())
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
		if !e.narrow(plan.ByPod, e.shortage(component, amount), e.names[component], detail, allowed) {
			return false
		}
	}
	return true
}

// attachable begins the names of resources that count volumes, as the scheduler spells them.
const attachable = "attachable-volumes-"

// shortage names what it is when none of the types that are left has an amount of a resource.
func (e *explainer) shortage(component int, amount int64) cause.Code {
	has := func(amount int64, among catalog.Bits) bool {
		enough := e.pool.room.AtLeast(component, amount)
		return enough != nil && enough.Intersects(among)
	}
	switch {
	case strings.HasPrefix(e.names[component], attachable):
		return cause.VolumeLimit
	case has(amount, e.left):
		return cause.DaemonsTakeTheRoom
	case has(1, e.pool.Catalog.All()):
		return cause.PodTooLarge
	}
	return cause.ExtendedResource
}

func (e *explainer) limits() {
	p := e.pool
	if p.ceiling.Left() == 0 {
		e.stop(plan.ByLimit, cause.ClusterLimitNodes, p.ceiling.Flag(), p.ceiling.Text())
		return
	}
	if exceeded, ok := p.Limits.CheckNodes(p.used.Nodes); !ok {
		code := cause.SoftLimitNodes
		if exceeded.Hard {
			code = cause.HardLimitNodes
		}
		e.stop(plan.ByLimit, code, resources.NameNodes, exceeded.Text(e.names))
		return
	}
	if p.cheapestWithin(e.left, nil) < 0 {
		capacity := p.Catalog.Types[p.Catalog.Offers[e.left.First()].Type].Capacity
		exceeded, _ := p.Limits.Check(p.used, capacity)
		e.stop(plan.ByLimit, cause.ResourceLimit, e.names[exceeded.Component], exceeded.Text(e.names))
	}
}

// topology is what is left when everything else fits: the constraints over node labels.
func (e *explainer) topology(s *solver) {
	info := s.info(e.shape)
	var blamed []string
	var codes []cause.Code
	for _, key := range info.rules.Keys {
		if code, constraint := s.topology.Blames(info.rules, key); constraint != "" {
			blamed, codes = append(blamed, constraint), append(codes, code)
		}
	}
	switch {
	case !e.enough():
		e.stop(plan.ByPool, cause.MinValues, "minValues", e.fewValues())
	case len(info.ways[e.pool.index]) == 0, s.care.wary[e.shape]:
		by, code, detail := s.keptOut(e.pool, e.shape)
		e.stop(by, code, "", detail)
	case len(blamed) > 0:
		e.stop(plan.ByTopology, codes[0], "", strings.Join(blamed, ", ")+" leaves no place for a new node")
	case len(e.shape.HostPorts) > 0:
		e.stop(plan.ByPod, cause.HostPortTaken, "", "the pod's host ports are used by DaemonSets on every new node")
	default:
		e.stop(plan.ByPod, cause.NoPlaceFound, "", "each of its demands can be met, but no place was found that meets all of them")
	}
}

// fewValues names the first label of which fewer values are left than the pool demands.
func (e *explainer) fewValues() string {
	p, offers := e.pool, e.left
	if p.reserved != nil {
		offers = e.left.Minus(p.reserved)
	}
	few := p.lacking(offers)
	for _, demand := range p.MinValues {
		if n, lacks := few[demand.Key]; lacks {
			return fmt.Sprintf("minValues asks for %d values of %s, with only %d left for the pod", demand.Count, demand.Key, n)
		}
	}
	return "fewer values are left for the pod than minValues asks for"
}

// enough reports whether what is left has the values that minValues demands. A node in a reservation has that one offering,
// and another node none that is reserved (settle).
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
