package pack

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// plan turns the solved bins into data.
func (s *solver) plan() plan.Plan {
	result := plan.Plan{BasedOn: s.snapshot.Version, Names: s.snapshot.Names, Order: s.order}
	for _, n := range s.existing {
		for _, pod := range n.pods {
			result.Nominations = append(result.Nominations, plan.Nominate{Pod: ref(pod), Node: n.node.ID()})
		}
	}
	for _, n := range s.planned {
		result.Launches = append(result.Launches, s.launch(n))
	}
	slices.SortFunc(result.Nominations, func(a, b plan.Nominate) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), compareRefs(a.Pod, b.Pod))
	})
	explained := map[*cluster.Shape]plan.Unplaced{}
	for _, pod := range s.failed {
		reason, known := explained[pod.Shape]
		if !known {
			reason = s.explain(pod.Shape)
			explained[pod.Shape] = reason
		}
		reason.Pod = ref(pod)
		result.Unplaced = append(result.Unplaced, reason)
	}
	slices.SortFunc(result.Unplaced, func(a, b plan.Unplaced) int { return compareRefs(a.Pod, b.Pod) })
	return result
}

func ref(pod *cluster.Pod) plan.PodRef {
	return plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

func compareRefs(a, b plan.PodRef) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.UID, b.UID))
}

// launch describes the claim of a planned node: every instance type that fits stays on it (P-24).
func (s *solver) launch(b *planned) plan.Launch {
	offers, only := b.sayable(b.withinHeld())
	index := b.pool.Catalog
	if b.pool.mix != nil {
		only = only.With(requirement.OneOf(catalog.LabelCapacityType,
			index.Values(catalog.LabelCapacityType, offers)...))
	}
	first := index.Offers[offers.First()]
	choices := s.choicesOf(b, offers)
	l := plan.Launch{
		Pool: b.pool.Name, PoolUID: b.pool.UID, Slot: b.slot,
		Requests: b.used.Plus(b.pool.daemonsOn(offers.First())),
		Cheapest: plan.Choice{Type: index.Types[first.Type].Name, Zone: first.Zone, CapacityType: first.CapacityType,
			Price: first.Price, Commitment: b.paidBy(first)},
		Labels:  map[string]string{},
		Relaxed: b.pool.lacking(offers),
		Types:   choices.types, Reserve: choices.reserve, Zones: choices.zones, CapacityTypes: choices.capacityTypes,
	}
	for r := range b.custom.All() {
		if value, some := r.Example(); some && !r.AllowsAbsent() {
			l.Labels[string(r.Key())] = value
		}
	}
	l.Requirements = b.pool.Requirements.And(b.labels).And(b.custom).And(only).Without(catalog.LabelInstanceType)
	for _, pod := range b.pods {
		if pod.IsBuffer() {
			l.Buffers = append(l.Buffers, ref(pod))
		} else {
			l.Pods = append(l.Pods, ref(pod))
		}
	}
	slices.SortFunc(l.Pods, compareRefs)
	slices.SortFunc(l.Buffers, compareRefs)
	l.For, l.Drivers = asksOf(b.pods, b.unknown), b.driversOf()
	return l
}

// asksOf returns what pods ask for and the classes whose capacity is unknown, sorted, and no more than plan.MaxAsks.
func asksOf(pods []*cluster.Pod, classes []string) []string {
	var asks []string
	for _, class := range classes {
		if ask := cluster.StorageAsk(class); !slices.Contains(asks, ask) && len(asks) < plan.MaxAsks {
			asks = append(asks, ask)
		}
	}
	last := (*cluster.Shape)(nil)
	for _, pod := range pods {
		if pod.Shape != last && len(asks) < plan.MaxAsks {
			last = pod.Shape
			if ask := last.Ask(); !slices.Contains(asks, ask) {
				asks = append(asks, ask)
			}
		}
	}
	slices.Sort(asks)
	return asks
}

// sayable narrows offers to a set that a claim can express, which is a product: types, zones and capacity types.
// Offers of one type differ in more than that only where a daemon runs on some of them. If the pool insists on a
// choice (P-09), types that cannot be said are left out, so that others stay. It returns the set and what the claim
// has to demand beyond the demands of pool and pods.
func (b *planned) sayable(offers catalog.Bits) (catalog.Bits, requirement.Set) {
	if b.commitment != 0 {
		return b.sayCommitted(offers)
	}
	only := requirement.NewSet()
	if b.pool.some == nil && b.pool.reserved == nil {
		return offers, only
	}
	if b.pool.isReserved(offers.First()) {
		return offers, b.sayReserved(offers.First())
	}
	if only = b.sayUnreserved(offers); b.pool.some == nil {
		return offers, only
	}
	var best, last catalog.Bits
	var demands requirement.Set
	for left, only := range b.narrower(offers, only) {
		last = left
		if best == nil {
			demands = only
		}
		if b.pool.insists() {
			left = b.whole(left, only)
		} else if !b.said(left, only).Minus(left).Empty() {
			continue
		}
		if !left.Empty() && b.pool.enough(left) && (best == nil || left.First() < best.First()) {
			best, demands = left, only
		}
		if best != nil && best.First() == offers.First() {
			return best, demands
		}
	}
	if best == nil {
		index := b.pool.Catalog
		best = last.And(index.OfType(index.Types[index.Offers[offers.First()].Type].Name))
	}
	return best, demands
}

// narrower yields offers and demands on labels as they are, and then ever narrower, towards the zone and the capacity
// type of the first.
func (b *planned) narrower(offers catalog.Bits, only requirement.Set) iter.Seq2[catalog.Bits, requirement.Set] {
	index := b.pool.Catalog
	first := index.Offers[offers.First()]
	values := func(key requirement.Key) func() requirement.Requirement {
		return func() requirement.Requirement { return requirement.OneOf(key, index.Values(key, offers)...) }
	}
	value := func(r requirement.Requirement) func() requirement.Requirement {
		return func() requirement.Requirement { return r }
	}
	return func(yield func(catalog.Bits, requirement.Set) bool) {
		if !yield(offers, only) {
			return
		}
		for _, narrow := range []func() requirement.Requirement{
			value(requirement.Any(catalog.LabelZone)),
			values(catalog.LabelZone),
			values(catalog.LabelCapacityType),
			value(requirement.OneOf(catalog.LabelZone, first.Zone)),
			value(requirement.OneOf(catalog.LabelCapacityType, first.CapacityType)),
		} {
			r := narrow()
			only, offers = only.With(r), index.Compatible(r).And(offers)
			if !yield(offers, only) {
				return
			}
		}
	}
}

// whole returns those of offers whose types are among them with all that a claim with these demands could be launched
// with.
func (b *planned) whole(offers catalog.Bits, only requirement.Set) catalog.Bits {
	index, whole := b.pool.Catalog, offers
	for i := range b.said(offers, only).Minus(offers).All() {
		whole = whole.Minus(index.OfType(index.Types[index.Offers[i].Type].Name))
	}
	return whole
}

// said returns the offers that a claim with the types of offers and these demands could be launched with.
func (b *planned) said(offers catalog.Bits, only requirement.Set) catalog.Bits {
	index := b.pool.Catalog
	all := catalog.NewBits(len(index.Offers))
	for _, t := range index.TypesByPrice(offers) {
		index.OfType(index.Types[t].Name).OrTo(all)
	}
	b.pool.offers.AndTo(all)
	all = b.pool.uncommitted(all)
	index.Narrow(all, b.labels.And(only))
	return all
}

// choices are what a set of offers leaves open. Launches with the same offers share them.
type choices struct {
	types                []string
	reserve              resources.Vector
	zones, capacityTypes []string
}

func (s *solver) choicesOf(b *planned, offers catalog.Bits) *choices {
	key := b.pool.Name + "/" + offers.Key()
	if known, found := s.choices[key]; found {
		return known
	}
	index := b.pool.Catalog
	c := &choices{zones: index.Values(catalog.LabelZone, offers),
		capacityTypes: index.Values(catalog.LabelCapacityType, offers)}
	for _, t := range b.typesKept(offers) {
		c.types = append(c.types, index.Types[t].Name)
		c.reserve = c.reserve.Max(index.Types[t].Capacity)
	}
	s.choices[key] = c
	return c
}

// typesKept returns the types of offers by price, cut to the bound but not below what minValues demands.
func (b *planned) typesKept(offers catalog.Bits) []int {
	types := b.pool.Catalog.TypesByPrice(offers)
	if len(types) <= plan.MaxTypes {
		return types
	}
	for n := plan.MaxTypes; n < len(types); n++ {
		kept := catalog.NewBits(len(b.pool.Catalog.Offers))
		for _, t := range types[:n] {
			b.pool.Catalog.OfType(b.pool.Catalog.Types[t].Name).OrTo(kept)
		}
		if b.pool.enough(kept.And(offers)) {
			return types[:n]
		}
	}
	return types
}
