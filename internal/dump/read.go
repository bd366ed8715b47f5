package dump

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// reader turns records into a snapshot. It checks what planning relies on and translation usually guarantees.
type reader struct {
	in         content
	components int
	catalogues []*catalog.Index
	covered    []requirement.Set // by commitment
	shapes     []*cluster.Shape
	pods       []*cluster.Pod
	where      string // what is being read, for messages
	err        error  // the first fault
}

func read(c content) (Dump, error) {
	r := &reader{in: c, components: len(c.picture.Resources)}
	r.resources()
	commitments := r.commitments(c.picture.Commitments)
	for i := range c.catalogues {
		r.where = fmt.Sprintf("catalogue %d", i)
		r.catalogue(c.catalogues[i])
	}
	table := cluster.NewShapes()
	for i := range c.shapes {
		r.where = fmt.Sprintf("shape %d", i)
		r.shape(c.shapes[i], table)
	}
	parts := cluster.Snapshot{Version: c.picture.Version, Names: c.picture.Resources,
		Pending:   r.list(c.picture.Pending),
		Repelling: r.list(c.picture.Repelling), Buffers: r.list(c.picture.Buffers), MaxNodes: c.picture.MaxNodes,
		Unseen:    c.picture.Unseen,
		MaxClaims: c.picture.MaxClaims, Claims: c.picture.Claims, ClaimsUnknown: c.picture.ClaimsUnknown,
		Commitments: commitments}
	r.where = "picture"
	parts.Capacities, parts.FreeVolumes = each(c.picture.Capacities, r.capacity),
		each(c.picture.FreeVolumes, r.freeVolume)
	r.need(parts.MaxNodes >= 0, "maxNodes is %d; want 1 or more, or 0 for no limit", parts.MaxNodes)
	r.need(parts.MaxClaims >= 0, "maxClaims is %d; want 1 or more, or 0 for no limit", parts.MaxClaims)
	r.need(parts.Claims >= 0, "claims is %d; want 0 or more", parts.Claims)
	r.need(parts.Unseen >= 0, "unseenClaims is %d; want 0 or more", parts.Unseen)
	r.rest(&parts)
	d := Dump{Terms: r.terms(c.picture.Options)}
	for _, p := range c.plans {
		r.where = "plan " + p.Question
		if !slices.Contains(append(All(), AskProvision, AskReplicas), Question(p.Question)) {
			r.fail("question is %q; want one of %s", p.Question, questions())
		}
		d.Plans = append(d.Plans, Planned{Question(p.Question), readPlan(p, parts.Names)})
	}
	if r.err != nil {
		return Dump{}, r.err
	}
	d.Snapshot = cluster.New(parts)
	return d, nil
}

func (r *reader) commitments(records []commitmentRecord) []cluster.Commitment {
	r.need(len(records) <= catalog.MaxCommitments, "commitments are %d; want at most %d", len(records),
		catalog.MaxCommitments)
	var list []cluster.Commitment
	for _, c := range records {
		r.need(c.PerHour >= 0 && c.Instances >= 0, "commitment %q: perHour is %d and instances %d; want 0 or more",
			c.Name, c.PerHour, c.Instances)
		own := cluster.Commitment{Name: c.Name, Requirements: r.set(c.Requirements),
			PerHour: resources.Money(c.PerHour), Instances: c.Instances}
		list, r.covered = append(list, own), append(r.covered, own.Requirements)
	}
	return list
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(r.where+": "+format, args...)
	}
}

// need notes a fault unless holds.
func (r *reader) need(holds bool, format string, args ...any) {
	if !holds {
		r.fail(format, args...)
	}
}

func (r *reader) resources() {
	r.where = "picture"
	common, names := resources.NewSpace().Names(), r.in.picture.Resources
	r.need(len(names) >= len(common) && slices.Equal(names[:min(len(names), len(common))], common),
		"resources are %q; want %q first", names, []string(common))
	seen := map[string]bool{}
	for _, name := range names {
		r.need(!seen[name] && name != "", "resources: %q is empty or stands twice", name)
		seen[name] = true
	}
}

func seenIn(s seenRecord) cluster.Seen {
	return cluster.Seen{Pool: s.Pool, Type: s.Type, Requests: s.Requests}
}

// rest reads the parts after shapes and pods, to which these parts may refer.
func (r *reader) rest(parts *cluster.Snapshot) {
	for _, n := range r.in.namespaces {
		if parts.Namespaces == nil {
			parts.Namespaces = map[string]map[string]string{}
		}
		parts.Namespaces[n.Name] = n.Labels
	}
	for _, p := range r.in.pools {
		r.where = "pool " + p.Name
		r.need(parts.Pool(p.Name) == nil, "it stands twice")
		parts.Pools = append(parts.Pools, r.pool(p))
	}
	for _, d := range r.in.daemons {
		r.where = "daemon " + d.Name
		r.need(d.Shape >= 0 && d.Shape < len(r.shapes), "shape is %d; want 0 to %d", d.Shape, len(r.shapes)-1)
		if r.err == nil {
			parts.Daemons = append(parts.Daemons, cluster.Daemon{Name: d.Name, Shape: r.shapes[d.Shape],
				Seen: each(d.Seen, seenIn), Learnt: each(d.Learnt, seenIn)})
		}
	}
	for _, n := range r.in.nodes {
		r.where = "node " + n.Name + " " + n.Claim
		switch node := r.node(n); n.List {
		case "":
			parts.Nodes = append(parts.Nodes, node)
		case listLeaving:
			parts.Leaving = append(parts.Leaving, node)
		case listClosed:
			parts.Closed = append(parts.Closed, node)
		default:
			r.fail("list is %q; want %s, %s or nothing", n.List, listLeaving, listClosed)
		}
	}
	for _, g := range r.in.guards {
		r.where = "podDisruptionBudget " + g.Namespace + "/" + g.Name
		parts.Guards = append(parts.Guards, cluster.Guard{Namespace: g.Namespace, Name: g.Name,
			Pods: r.selector(g.Pods), AtOnce: g.AtOnce})
	}
	for _, h := range r.in.holds {
		if parts.Held == nil {
			parts.Held = map[cluster.Hold]string{}
		}
		parts.Held[cluster.Hold{Pool: h.Pool, Ask: h.Ask}] = h.Why
	}
}

func (r *reader) terms(o optionsRecord) engine.Terms {
	t := engine.Terms{Now: o.Now, MinSaving: resources.Money(o.MinSaving), MinSavingPercent: o.MinSavingPercent,
		SpotToSpot: o.SpotToSpot, Turn: o.Turn, Again: o.Again}
	for _, pool := range o.Passing {
		if t.Passing == nil {
			t.Passing = map[string]bool{}
		}
		t.Passing[pool] = true
	}
	for _, pool := range slices.Sorted(maps.Keys(o.Budgets)) {
		if t.Budgets == nil {
			t.Budgets = map[string][]engine.Budget{}
		}
		t.Budgets[pool] = each(o.Budgets[pool], func(b budgetRecord) engine.Budget {
			return engine.Budget{Max: b.Max,
				Reasons: each(b.Reasons, func(s string) plan.DisruptionReason { return plan.DisruptionReason(s) })}
		})
	}
	return t
}

// vector checks that there are not more amounts than resources.
func (r *reader) vector(field string, amounts []int64) resources.Vector {
	r.need(len(amounts) <= r.components, "%s has %d amounts; want at most %d, one for each resource", field,
		len(amounts), r.components)
	return amounts
}

// positive is vector for amounts that must not be negative.
func (r *reader) positive(field string, amounts []int64) resources.Vector {
	for _, amount := range amounts {
		r.need(amount >= 0, "%s has the amount %d; want 0 or more", field, amount)
	}
	return r.vector(field, amounts)
}

func (r *reader) catalogue(c catalogueRecord) {
	var types []catalog.IndexedType
	for i, t := range c.Types {
		r.need(t.Name != "" && (i == 0 || c.Types[i-1].Name < t.Name), "type %q: want names in order, each once",
			t.Name)
		types = append(types, catalog.IndexedType{Name: t.Name, Capacity: r.vector("capacity", t.Capacity),
			Allocatable: r.vector("allocatable", t.Allocatable)})
	}
	var offers []catalog.Offer
	for i, o := range c.Offers {
		r.need(o.Type >= 0 && o.Type < len(types), "offer %d: type is %d; want 0 to %d", i, o.Type, len(types)-1)
		if r.err != nil {
			return
		}
		r.need(slices.Contains([]string{catalog.OnDemand, catalog.Spot, catalog.Reserved}, o.CapacityType),
			"offer %d: capacityType is %q; want %s, %s or %s", i, o.CapacityType, catalog.OnDemand,
			catalog.Spot, catalog.Reserved)
		r.need(o.Price >= 0 && o.Price <= int64(resources.MaxPrice), "offer %d: price is %d; want 0 to %d", i, o.Price,
			int64(resources.MaxPrice))
		r.need(o.Reservation >= 0, "offer %d: reservation is %d; want 0 or more", i, o.Reservation)
		labels := r.set(c.Types[o.Type].Labels).And(r.set(o.Labels)).And(requirement.NewSet(
			requirement.OneOf(catalog.LabelInstanceType, types[o.Type].Name),
			requirement.OneOf(catalog.LabelZone, o.Zone),
			requirement.OneOf(catalog.LabelCapacityType, o.CapacityType)))
		offers = append(offers, catalog.Offer{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType,
			Price: resources.Money(o.Price), Available: !o.SoldOut, Reservation: o.Reservation, Labels: labels})
	}
	r.need(catalog.Ordered(offers), "offers are not in order; want reserved ones first, then by price")
	if r.err == nil {
		index := catalog.Compile(types, offers,
			each(c.WellKnown, func(key string) requirement.Key { return requirement.Key(key) }))
		r.catalogues = append(r.catalogues, index.Covered(r.covered))
	}
}

func (r *reader) pool(p poolRecord) *cluster.Pool {
	pool := &cluster.Pool{
		Name: p.Name, UID: p.UID, Weight: p.Weight, Blocked: p.Blocked, BlockedBy: cause.Code(p.BlockedBy),
		Requirements: r.set(p.Requirements),
		Taints:       each(p.Taints, readTaint), RelaxMinValues: p.RelaxMinValues, FreeSlots: p.FreeSlots,
		SurgeSlots: p.SurgeSlots, Static: p.Static, Replicas: p.Replicas, MinNodes: p.MinNodes, Dormant: p.Dormant,
		Gentle: p.Gentle, Held: p.Held, TerminateFirst: p.TerminateFirst, NoneFirst: p.NoneFirst,
		Invalid: p.Invalid, ExpiresGracefully: p.ExpiresGracefully,
		Consolidates:   cluster.Consolidation(p.Consolidates),
		PriceTolerance: p.PriceTolerance, LocalVolumes: p.LocalVolumes,
		NodeOverheadPrice: resources.Money(p.NodeOverheadPrice), OnDemandPercent: p.OnDemandPercent,
		Limits: limit.Limits{Resources: r.vector("limits.resources", p.Limits.Resources), Limited: p.Limits.Limited,
			SoftNodes: p.Limits.SoftNodes, HardNodes: p.Limits.HardNodes},
		Used: limit.Usage{Nodes: p.Used.Nodes, Capacity: r.vector("used.capacity", p.Used.Capacity)},
		MinValues: each(p.MinValues, func(m minValuesRecord) cluster.MinValues {
			return cluster.MinValues{Key: requirement.Key(m.Key), Count: m.Count}
		}),
	}
	if at := p.Catalogue; at != nil {
		r.need(*at >= 0 && *at < len(r.catalogues), "catalogue is %d; want 0 to %d", *at, len(r.catalogues)-1)
		if r.err == nil {
			pool.Catalog = r.catalogues[*at]
		}
	}
	r.need(len(p.Limits.Limited) <= len(p.Limits.Resources),
		"limits.limited has %d entries; want at most %d, as resources has", len(p.Limits.Limited),
		len(p.Limits.Resources))
	r.need(p.Limits.SoftNodes >= limit.None && p.Limits.HardNodes >= limit.None,
		"limits: softNodes is %d and hardNodes %d; want %d for none, or more", p.Limits.SoftNodes,
		p.Limits.HardNodes, limit.None)
	r.need(p.NodeOverheadPrice >= 0 && p.NodeOverheadPrice <= int64(resources.MaxPrice),
		"nodeOverheadPrice is %d; want 0 to %d", p.NodeOverheadPrice, int64(resources.MaxPrice))
	r.need(p.MinNodes >= 0, "minNodes is %d; want 0 or more", p.MinNodes)
	r.need(p.OnDemandPercent >= 0 && p.OnDemandPercent <= 100, "onDemandPercent is %d; want 0 to 100",
		p.OnDemandPercent)
	r.need(p.Replicas >= 0, "replicas is %d; want 0 or more", p.Replicas)
	r.need(p.Consolidates >= 0 && p.Consolidates <= int(cluster.Balanced), "consolidates is %d; want 0 to %d",
		p.Consolidates, int(cluster.Balanced))
	for _, slot := range slices.Concat(p.FreeSlots, p.SurgeSlots) {
		r.need(slot >= 0, "a slot is %d; want 0 or more", slot)
	}
	return pool
}

func (r *reader) node(n nodeRecord) *cluster.Node {
	r.need(n.Name != "" || n.Claim != "", "name and claim are empty; want one of them")
	r.need(n.Price == nil || *n.Price >= 0, "price is below 0; want 0 or more, or none")
	return &cluster.Node{
		Name: n.Name, Claim: n.Claim, ClaimUID: n.ClaimUID, Pool: n.Pool, Labels: n.Labels, Open: r.set(n.Open),
		Taints: each(n.Taints, readTaint), Allocatable: r.vector("allocatable", n.Allocatable), Pods: r.list(n.Pods),
		Coming: r.sorted(n.Coming),
		Used:   r.vector("used", n.Used), Ports: each(n.Ports, readPort), Attached: n.Attached,
		Drivers: n.Drivers, Fresh: n.Fresh, Initialized: n.Initialized, Launched: n.Launched,
		Registered: n.Registered, RegisteredAt: n.RegisteredAt, Foreign: n.Foreign, Drifted: n.Drifted,
		Expired: n.Expired,
		For:     n.For, Replaces: n.Replaces, Replaced: n.Replaced, Together: n.Together, Deleting: n.Deleting,
		Disrupting: n.Disrupting, Rebooting: n.Rebooting,
		NotReady: n.NotReady, DoNotDisrupt: n.DoNotDisrupt, Held: n.Held, DrainEnds: n.DrainEnds,
		ConsolidatableAt: n.ConsolidatableAt,
		Created:          n.Created, InstanceType: n.InstanceType, Price: readPrice(n.Price),
	}
}

// sorted is list in the order of pods: positions are by shape first.
func (r *reader) sorted(positions []int) []*cluster.Pod {
	pods := r.list(positions)
	slices.SortFunc(pods, cluster.ComparePods)
	return pods
}

// list returns the pods at these positions.
func (r *reader) list(positions []int) []*cluster.Pod {
	var pods []*cluster.Pod
	for _, at := range positions {
		r.need(at >= 0 && at < len(r.pods), "pod %d; want 0 to %d", at, len(r.pods)-1)
		if r.err != nil {
			return nil
		}
		pods = append(pods, r.pods[at])
	}
	return pods
}

func readTaint(t taintRecord) cluster.Taint { return cluster.Taint(t) }

func readPort(p portRecord) cluster.HostPort { return cluster.HostPort(p) }

// set reads a set of requirements.
func (r *reader) set(records []requirementRecord) requirement.Set {
	for _, record := range records {
		key := strings.TrimSpace(record.Key)
		r.need(!record.Absent || len(record.In) == 0, "requirement %q: absent and in stand together; want one of them",
			key)
		r.need(record.Open || len(record.NotIn) == 0 && record.Gte == nil && record.Lte == nil,
			"requirement %q: notIn, gte and lte want open", key)
		r.need(!record.Open || len(record.In) == 0, "requirement %q: in and open stand together; want one of them",
			key)
		r.need(!record.Open || key != "", "requirement %q: open wants a key", key)
		r.need(!record.Absent || record.Gte == nil && record.Lte == nil,
			"requirement %q: absent and a bound stand together", key)
	}
	return readSet(records)
}
