package dump

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// content is all lines after the first.
type content struct {
	picture    pictureRecord
	catalogues []catalogueRecord
	namespaces []namespaceRecord
	pools      []poolRecord
	shapes     []shapeRecord
	daemons    []daemonRecord
	nodes      []nodeRecord
	guards     []guardRecord
	holds      []holdRecord
	plans      []planRecord
}

// Lists of nodes other than the usual one.
const (
	listLeaving = "leaving"
	listClosed  = "closed"
)

// writer turns a snapshot into records.
type writer struct {
	shapes map[*cluster.Shape]int // position of its record
	pods   map[*cluster.Pod]int
	out    content
}

// contentOf returns the records of a dump.
func contentOf(d Dump) content {
	w := &writer{shapes: map[*cluster.Shape]int{}, pods: map[*cluster.Pod]int{}}
	s := d.Snapshot
	w.gatherPods(s)
	w.out.picture = pictureRecord{Version: s.Version, Resources: s.Names, Pending: w.positions(s.Pending),
		Repelling: w.positions(s.Repelling), Buffers: w.positions(s.Buffers), Options: options(d.Terms),
		MaxNodes: s.MaxNodes, Unseen: s.Unseen, MaxClaims: s.MaxClaims, Claims: s.Claims,
		ClaimsUnknown: s.ClaimsUnknown,
		Capacities:    each(s.Capacities, capacity), FreeVolumes: each(s.FreeVolumes, freeVolume)}
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces)) {
		w.out.namespaces = append(w.out.namespaces, namespaceRecord{name, some(s.Namespaces[name])})
	}
	for _, c := range s.Commitments {
		w.out.picture.Commitments = append(w.out.picture.Commitments,
			commitmentRecord{c.Name, set(c.Requirements), int64(c.PerHour), c.Instances})
	}
	w.gatherPools(s)
	for _, daemon := range s.Daemons {
		w.out.daemons = append(w.out.daemons, daemonRecord{daemon.Name, w.shapes[daemon.Shape],
			each(daemon.Seen, seenOf), each(daemon.Learnt, seenOf)})
	}
	byID := func(a, b *cluster.Node) int {
		return cmp.Or(strings.Compare(a.ID(), b.ID()), strings.Compare(a.Claim, b.Claim))
	}
	for _, node := range s.Nodes {
		w.out.nodes = append(w.out.nodes, w.node(node, ""))
	}
	for _, node := range slices.SortedFunc(slices.Values(s.Leaving), byID) {
		w.out.nodes = append(w.out.nodes, w.node(node, listLeaving))
	}
	for _, node := range slices.SortedFunc(slices.Values(s.Closed), byID) {
		w.out.nodes = append(w.out.nodes, w.node(node, listClosed))
	}
	for _, g := range s.Guards {
		w.out.guards = append(w.out.guards, guardRecord{g.Namespace, g.Name, selector(g.Pods), g.AtOnce})
	}
	for hold, why := range s.Held {
		w.out.holds = append(w.out.holds, holdRecord{hold.Pool, hold.Ask, why})
	}
	slices.SortFunc(w.out.holds, func(a, b holdRecord) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Ask, b.Ask))
	})
	for _, p := range d.Plans {
		w.out.plans = append(w.out.plans, plannedRecord(p))
	}
	return w.out
}

func seenOf(s cluster.Seen) seenRecord { return seenRecord{s.Pool, s.Type, s.Requests} }

func options(t engine.Terms) optionsRecord {
	o := optionsRecord{Now: t.Now, MinSaving: int64(t.MinSaving), MinSavingPercent: t.MinSavingPercent,
		SpotToSpot: t.SpotToSpot, Turn: t.Turn, Again: t.Again,
		Passing: slices.Sorted(maps.Keys(t.Passing))}
	for pool, budgets := range t.Budgets {
		if o.Budgets == nil {
			o.Budgets = map[string][]budgetRecord{}
		}
		list := []budgetRecord{}
		for _, b := range budgets {
			list = append(list,
				budgetRecord{each(b.Reasons, func(r plan.DisruptionReason) string { return string(r) }), b.Max})
		}
		o.Budgets[pool] = list
	}
	return o
}

// gatherPods collects all pods and shapes, and gives each its position: shapes in the order of their keys, pods of a
// shape by name.
func (w *writer) gatherPods(s *cluster.Snapshot) {
	pods, byKey := map[*cluster.Pod]bool{}, map[string][]*cluster.Shape{}
	keys := map[*cluster.Shape]string{}
	add := func(shape *cluster.Shape) {
		if _, known := keys[shape]; !known {
			keys[shape] = shape.Key()
			byKey[keys[shape]] = append(byKey[keys[shape]], shape)
		}
	}
	addAll := func(list []*cluster.Pod) {
		for _, pod := range list {
			if !pods[pod] {
				pods[pod] = true
				add(pod.Shape)
			}
		}
	}
	addAll(s.Pending)
	addAll(s.Repelling)
	addAll(s.Buffers)
	for _, node := range slices.Concat(s.Nodes, s.Leaving, s.Closed) {
		addAll(node.Pods)
		addAll(node.Coming)
	}
	for _, daemon := range s.Daemons {
		add(daemon.Shape)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		for _, shape := range byKey[key] {
			w.shapes[shape] = len(w.out.shapes)
		}
		// Shapes with the same key are equal for planning. Snapshots of a store have one pointer for them.
		first := slices.MinFunc(byKey[key], func(a, b *cluster.Shape) int {
			return strings.Compare(string(encoded(shapeOf(a))), string(encoded(shapeOf(b))))
		})
		w.out.shapes = append(w.out.shapes, shapeOf(first))
	}
	type placed struct {
		*cluster.Pod
		shape int
		text  string
	}
	var all []placed
	for pod := range pods {
		all = append(all, placed{pod, w.shapes[pod.Shape], string(encoded(podOf(pod)))})
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(a.shape-b.shape, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
			strings.Compare(a.UID, b.UID), strings.Compare(a.text, b.text))
	})
	for i, pod := range all {
		w.pods[pod.Pod] = i
		w.out.shapes[pod.shape].Pods = append(w.out.shapes[pod.shape].Pods, podOf(pod.Pod))
	}
}

func (w *writer) positions(pods []*cluster.Pod) []int {
	list := each(pods, func(p *cluster.Pod) int { return w.pods[p] })
	slices.Sort(list)
	return list
}

// gatherPools writes the pools, and each catalogue only once.
func (w *writer) gatherPools(s *cluster.Snapshot) {
	known, same := map[*catalog.Index]int{}, map[string]int{}
	for _, p := range s.Pools {
		record := pool(p)
		if p.Catalog != nil {
			at, found := known[p.Catalog]
			if !found {
				c := catalogue(p.Catalog)
				text := string(encoded(c))
				if at, found = same[text]; !found {
					at = len(w.out.catalogues)
					w.out.catalogues = append(w.out.catalogues, c)
				}
				known[p.Catalog], same[text] = at, at
			}
			record.Catalogue = &at
		}
		w.out.pools = append(w.out.pools, record)
	}
}

// catalogue writes an index. Labels that all offers of a type share are written once, with the type.
func catalogue(x *catalog.Index) catalogueRecord {
	c := catalogueRecord{WellKnown: each(x.WellKnown(), text)}
	common := make([]*requirement.Set, len(x.Types))
	for i := range x.AsSold().All() {
		o := x.Offers[i]
		if common[o.Type] == nil {
			common[o.Type] = &o.Labels
			continue
		}
		both := alike(*common[o.Type], o.Labels)
		common[o.Type] = &both
	}
	for i, t := range x.Types {
		record := typeRecord{Name: t.Name, Capacity: t.Capacity, Allocatable: t.Allocatable}
		if common[i] != nil {
			record.Labels = set(*common[i])
		}
		c.Types = append(c.Types, record)
	}
	for i := range x.AsSold().All() {
		o := x.Offers[i]
		var own []requirementRecord
		for r := range o.Labels.All() {
			if !common[o.Type].Holds(r.Key()) {
				own = append(own, allowed(r))
			}
		}
		c.Offers = append(c.Offers, offerRecord{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType,
			Price: int64(o.Price), SoldOut: !o.Available, Reservation: o.Reservation, Labels: own})
	}
	return c
}

// alike returns the requirements that both sets share.
func alike(a, b requirement.Set) requirement.Set {
	var both []requirement.Requirement
	for r := range a.All() {
		if b.Holds(r.Key()) && b.Get(r.Key()).Equal(r) {
			both = append(both, r)
		}
	}
	return requirement.NewSet(both...)
}

func pool(p *cluster.Pool) poolRecord {
	return poolRecord{
		Name: p.Name, UID: p.UID, Weight: p.Weight, Blocked: p.Blocked, BlockedBy: string(p.BlockedBy),
		Requirements: set(p.Requirements),
		Taints:       each(p.Taints, taint),
		Limits: limitsRecord{Resources: p.Limits.Resources, Limited: p.Limits.Limited, SoftNodes: p.Limits.SoftNodes,
			HardNodes: p.Limits.HardNodes},
		Used: usageRecord{Nodes: p.Used.Nodes, Capacity: p.Used.Capacity},
		MinValues: each(p.MinValues, func(m cluster.MinValues) minValuesRecord {
			return minValuesRecord{string(m.Key), m.Count}
		}),
		RelaxMinValues: p.RelaxMinValues, FreeSlots: p.FreeSlots, SurgeSlots: p.SurgeSlots, Static: p.Static,
		Replicas: p.Replicas, MinNodes: p.MinNodes, Dormant: p.Dormant, Gentle: p.Gentle, Held: p.Held,
		TerminateFirst: p.TerminateFirst, NoneFirst: p.NoneFirst, Invalid: p.Invalid,
		ExpiresGracefully: p.ExpiresGracefully, Consolidates: int(p.Consolidates), PriceTolerance: p.PriceTolerance,
		LocalVolumes: p.LocalVolumes, NodeOverheadPrice: int64(p.NodeOverheadPrice),
		OnDemandPercent: p.OnDemandPercent,
	}
}

func (w *writer) node(n *cluster.Node, list string) nodeRecord {
	ports := each(n.Ports, port)
	slices.SortFunc(ports, func(a, b portRecord) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol),
			strings.Compare(a.IP, b.IP))
	})
	return nodeRecord{
		List: list, Name: n.Name, Claim: n.Claim, ClaimUID: n.ClaimUID, Pool: n.Pool, Labels: some(n.Labels),
		Open: set(n.Open), Taints: each(n.Taints, taint), Allocatable: n.Allocatable, Pods: w.positions(n.Pods),
		Coming: w.positions(n.Coming),
		Used:   n.Used, Ports: ports, Attached: n.Attached, Drivers: n.Drivers, Fresh: n.Fresh,
		Initialized: n.Initialized, Launched: n.Launched, Registered: n.Registered,
		RegisteredAt: n.RegisteredAt, Foreign: n.Foreign, Drifted: n.Drifted, Expired: n.Expired, For: n.For,
		Replaces: n.Replaces, Replaced: n.Replaced, Together: n.Together, Deleting: n.Deleting,
		Disrupting: n.Disrupting, Rebooting: n.Rebooting, NotReady: n.NotReady,
		DoNotDisrupt: n.DoNotDisrupt, Held: n.Held, DrainEnds: n.DrainEnds, ConsolidatableAt: n.ConsolidatableAt,
		Created: n.Created, InstanceType: n.InstanceType, Price: price(n.Price),
	}
}

// price returns nil for an unknown price.
func price(m resources.Money) *int64 {
	if m == resources.Unpriced {
		return nil
	}
	amount := int64(m)
	return &amount
}

// some returns nil for an empty map.
func some(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// each applies f to each item; it returns nil for an empty list.
func each[T, R any](list []T, f func(T) R) []R {
	if len(list) == 0 {
		return nil
	}
	result := make([]R, len(list))
	for i, item := range list {
		result[i] = f(item)
	}
	return result
}

func text[T ~string](t T) string { return string(t) }
