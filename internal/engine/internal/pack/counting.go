package pack

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file says which nodes a spread constraint counts (P-03). kube-scheduler leaves out the nodes that the pod with
// the constraint could not use, and the pods on them. For a planned node that may depend on what it becomes: one that
// may be spot or on-demand counts Maybe for pods that refuse spot. Before a pod is placed there that the constraint is
// about, the node is narrowed to one side or the other. So the plan counts what the scheduler will count.

// counts returns a function that says whether a spread constraint counts an existing node, by its node inclusion
// policies.
func (n *existing) counts() func(*cluster.Shape, cluster.Spread) topology.Counting {
	return func(owner *cluster.Shape, c cluster.Spread) topology.Counting {
		switch {
		case c.HonorTaints && keepsAway(n.node.Taints, owner), !c.IgnoreAffinity &&
			!n.node.MightAdmit(owner.Selecting()):
			return topology.Not
		case !c.IgnoreAffinity && !n.node.Admits(owner.Selecting()), slices.ContainsFunc(owner.Spread, n.mayLack):
			return topology.Maybe
		}
		return topology.Surely
	}
}

// mayLack reports whether the node of a claim may turn out to lack the label of a spread constraint.
func (n *existing) mayLack(c cluster.Spread) bool {
	_, present := n.node.Labels[c.Key]
	return !present && c.Key != cluster.LabelHostname && n.node.Open.Get(requirement.Key(c.Key)).AllowsAbsent()
}

// counts returns such a function for a planned node, by what it may still become.
func (s *solver) counts(b *outlook) func(*cluster.Shape, cluster.Spread) topology.Counting {
	has := b.labelCounting()
	return func(owner *cluster.Shape, c cluster.Spread) topology.Counting {
		if c.HonorTaints && keepsAway(b.pool.Taints, owner) {
			return topology.Not
		}
		answer := topology.Surely
		if !c.IgnoreAffinity {
			answer = b.admits(s.selection(owner.Selecting(), b.pool))
		}
		for _, each := range owner.Spread {
			answer = min(answer, has(each.Key))
		}
		return answer
	}
}

// labelCounting returns a function that says whether the planned node will have a label. It works this out once for
// each label.
func (b *outlook) labelCounting() func(key string) topology.Counting {
	known := map[string]topology.Counting{cluster.LabelHostname: topology.Surely}
	return func(key string) topology.Counting {
		answer, found := known[key]
		if found {
			return answer
		}
		value, decided := b.labelValue(key)
		switch {
		case decided && value == "":
			answer = topology.Not
		case decided || !b.mayLack(requirement.Key(key)):
			answer = topology.Surely
		default:
			answer = topology.Maybe
		}
		known[key] = answer
		return answer
	}
}

// admits says whether all, some or none of what the planned node may become is covered by the ways.
func (b *outlook) admits(ways []way) topology.Counting {
	answer := topology.Not
	var rest catalog.Bits // offers that no way is sure to cover
	for _, w := range ways {
		custom, ok := mergeCustom(b.custom, w.custom)
		if !ok || !w.offers.Intersects(b.offers) {
			continue
		}
		answer = topology.Maybe
		if !custom.Equal(b.custom) {
			continue
		}
		if rest == nil {
			rest = b.offers
		}
		if rest = rest.Minus(w.offers); rest.Empty() {
			return topology.Surely
		}
	}
	return answer
}

// side is one way to decide whether a spread constraint counts a planned node.
type side struct {
	offers   catalog.Bits
	custom   requirement.Set
	labels   requirement.Set // what the claim has to demand
	cheapest int
}

// decideCounting narrows what a planned node would become, for the spread constraints that are about a pod of the
// shape. After that each of them is sure whether it counts the node. It takes the side that leaves the cheapest
// offering, so that deciding costs nothing. The claim carries the demands of that side. Where minValues or limits
// leave no side, the node stays undecided: see topology.Counting.
func (s *solver) decideCounting(n *planned, a *attempt) {
	for owner, c := range s.topology.Unsure(a.info.topology, a.index) {
		if s.counts(&a.outlook)(owner, c) != topology.Maybe {
			continue
		}
		for _, side := range s.sides(&a.outlook, n.held, owner, c) {
			narrowed := &outlook{pool: n.pool, offers: side.offers, custom: side.custom}
			if n.pool.enough(side.offers) && s.counts(narrowed)(owner, c) != topology.Maybe {
				copy(a.offers, side.offers)
				a.custom, a.labels = side.custom, a.labels.And(side.labels)
				break
			}
		}
	}
}

// sides lists ways to decide about a node, the cheapest first: it is one that the owner of the constraint can use, by
// any of its ways, or one that it cannot.
func (s *solver) sides(b *outlook, held resources.Vector, owner *cluster.Shape, c cluster.Spread) []side {
	ways := []way{{offers: b.offers}}
	if !c.IgnoreAffinity {
		ways = s.selection(owner.Selecting(), b.pool)
	}
	var list []side
	add := func(from side, demands ...requirement.Requirement) {
		from.offers = from.offers.Clone()
		for _, r := range demands {
			if b.pool.Catalog.Known(r.Key()) {
				b.pool.Catalog.Compatible(r).AndTo(from.offers)
				from.labels = from.labels.With(r)
			} else {
				from.custom = from.custom.With(r)
			}
		}
		from.cheapest = b.pool.cheapestWithin(from.offers, held)
		if from.cheapest >= 0 && len(from.custom.EmptyKeys()) == 0 {
			list = append(list, from)
		}
	}
	var open, against []requirement.Requirement
	for _, each := range owner.Spread {
		if key := requirement.Key(each.Key); each.Key != cluster.LabelHostname && b.mayLack(key) {
			open = append(open, requirement.Present(key))
			add(side{offers: b.offers, custom: b.custom}, requirement.Absent(key))
		}
	}
	rest := b.offers
	for _, w := range ways {
		if custom, ok := mergeCustom(b.custom, w.custom); ok {
			add(side{offers: w.offers.And(b.offers), custom: custom, labels: w.labels}, open...)
			rest = rest.Minus(w.offers)
		}
	}
	if first := b.pool.cheapestWithin(rest, held); first >= 0 {
		for _, w := range ways {
			against = append(against, b.refusing(first, w)...)
		}
		add(side{offers: b.offers, custom: b.custom}, against...)
	}
	slices.SortStableFunc(list, func(a, b side) int { return cmp.Compare(a.cheapest, b.cheapest) })
	return list
}

// refusing returns the demand that keeps a planned node out of the way: other values of a label than those that the
// way asks for. offer, which is not in the way, meets that demand. It is empty when the way is closed to the node
// anyhow.
func (b *outlook) refusing(offer int, w way) []requirement.Requirement {
	if _, ok := mergeCustom(b.custom, w.custom); !ok {
		return nil
	}
	for r := range w.labels.All() {
		if !b.pool.Catalog.Known(r.Key()) || b.pool.Catalog.Compatible(r).Has(offer) {
			continue
		}
		if b.pool.Catalog.Offers[offer].Labels.Get(r.Key()).AllowsAbsent() {
			return []requirement.Requirement{requirement.Absent(r.Key())}
		}
		values := slices.DeleteFunc(b.pool.Catalog.Values(r.Key(), b.offers), r.Has)
		return []requirement.Requirement{requirement.OneOf(r.Key(), values...)}
	}
	return nil
}
