package pack

import (
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file plans nodes of one size if pods that keep apart by hostname decide how many nodes there are (ADR 0021,
// B-16). kube-scheduler puts pods where it likes, not where they were planned. The cheapest plan has a small node for
// each pod that keeps apart, and large ones for all others. Then the others fill the small nodes, and each pod that
// finds its place taken needs a further one. Nodes of one size each have room for their share of all pods, whichever
// pods come.

const (
	// evenTolerance is how much dearer nodes of one size may be, as a share. Further nodes for pods that find their
	// places taken cost more than that: 0.24 in system-500, 0.2 in the mean of 24 drawn workloads.
	evenTolerance = 0.15
	// evenFew is how much dearer a size with fewer nodes may be, as a share. Much smaller nodes often cost the same.
	evenFew = 0.05
	// evenSpare is the share of a node's cores and memory that stays free. It makes up for what does not fit exactly.
	evenSpare = 0.04
	// evenNear is the least share of the chosen size that a node must have to be nearly of that size. evenSaving is
	// the share of the price that such nodes must save: with nodes of one size, more plans are carried out as they
	// were made.
	evenNear   = 0.7
	evenSaving = 0.02
	// evenMost is how much dearer than the chosen one other types of a claim may be, in percent and for the same
	// capacity type. Nodes of twice the size would not be of one size.
	evenMost = 50
	// evenShare is the least share of all nodes that pods that keep apart must need. Where they are fewer, there is
	// room for them.
	evenShare = 0.25
	// evenPods bounds the effort: a plan of more pods is made once.
	evenPods = 4000
)

// Provide is [Solve] for pods that kube-scheduler will bind to new nodes.
func Provide(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	cheapest := cheapestOf(snapshot, pods)
	if nearLeast(snapshot, pods, cheapest) {
		return cheapest // pods that keep apart have their share of the others on their nodes already (ADR 0030)
	}
	even, better := evenHosts(snapshot, pods, cheapest) // of one size, too, where there are other pods
	if !better {
		even, better = evenNodes(snapshot, pods, cheapest)
	}
	if len(pods) > evenPods {
		return even
	}
	thrifty := thriftier(snapshot, pods, mix.Solve, cheapest, true)
	if better && costs(snapshot, even) <= (1+evenTolerance)*costs(snapshot, thrifty) {
		return even
	}
	return thrifty
}

// evenNodes plans with nodes of one size where pods keep apart. It reports whether that is worth what it costs more
// than the cheapest plan.
func evenNodes(snapshot *cluster.Snapshot, pods []*cluster.Pod, cheapest plan.Plan) (even plan.Plan, better bool) {
	sizes := evenSizes(snapshot, pods, cheapest)
	if len(sizes) == 0 {
		return cheapest, false
	}
	near := try(snapshot, pods, mix.Solve, trial{sizes: sizes, drafted: true})
	even = try(snapshot, pods, mix.Solve, trial{sizes: sizes})
	if !lost(near, even) && costs(snapshot, near) < (1-evenSaving)*costs(snapshot, even) {
		even = near
	}
	most := costs(snapshot, even) / (1 + evenTolerance)
	switch few := costs(snapshot, cheapest); {
	case lost(even, cheapest) || few < most:
		return cheapest, false
	case few < most*tolerance(snapshot) && costs(snapshot, cheapestOf(withoutTolerance(snapshot), pods)) < most:
		return cheapest, false
	}
	return even, true
}

// tolerance returns how many times the price of the cheapest nodes a plan with fewer nodes may cost.
func tolerance(snapshot *cluster.Snapshot) float64 {
	percent := 0
	for _, p := range snapshot.Pools {
		percent = max(percent, p.PriceTolerance)
	}
	return 1 + float64(percent)/100
}

// withoutTolerance returns the snapshot with no price tolerance, for the cheapest nodes, however many. Nodes of one
// size are compared with those, so that two tolerances do not add up.
func withoutTolerance(snapshot *cluster.Snapshot) *cluster.Snapshot {
	exact := *snapshot
	exact.Pools = make([]*cluster.Pool, len(snapshot.Pools))
	for i, p := range snapshot.Pools {
		own := *p
		own.PriceTolerance = 0
		exact.Pools[i] = &own
	}
	return &exact
}

// costs returns what a plan's nodes cost per hour, with the overhead of each.
func costs(snapshot *cluster.Snapshot, p plan.Plan) float64 {
	return float64(p.Cost(snapshot.Overhead))
}

// lost reports whether a pod with a place in other has none in p.
func lost(p, other plan.Plan) bool {
	had := map[string]bool{}
	for _, u := range other.Unplaced {
		had[u.Pod.UID] = true
	}
	return slices.ContainsFunc(p.Unplaced, func(u plan.Unplaced) bool { return !had[u.Pod.UID] })
}

// evenSizes returns, by pool, the offer whose size new nodes should have. Pools where it would not help are left out.
func evenSizes(snapshot *cluster.Snapshot, pods []*cluster.Pod, p plan.Plan) map[string]int {
	keepsApart := func(pod *cluster.Pod) bool { return len(apartBy(pod.Shape)) > 0 }
	if len(p.Launches) < 2 || len(pods) > evenPods || !slices.ContainsFunc(pods, keepsApart) {
		return nil
	}
	byUID := map[string]*cluster.Pod{}
	for _, pod := range pods {
		byUID[pod.UID] = pod
	}
	sizes := map[string]int{}
	for _, pool := range snapshot.Pools {
		own := slices.DeleteFunc(slices.Clone(p.Launches), func(l plan.Launch) bool { return l.Pool != pool.Name })
		d := demandOf(own, byUID)
		if d.apart < 2 || !d.shared || float64(d.apart) < evenShare*float64(len(own)) || len(pool.MinValues) > 0 {
			continue
		}
		prepared := newPool(0, pool, snapshot.Daemons, newLeft(snapshot), &limit.Ceiling{})
		if offer, found := d.size(prepared); found && prepared.reserved == nil &&
			prepared.covered == nil { // what is paid for comes first, whatever its size
			sizes[pool.Name] = offer
		}
	}
	return sizes
}

// demand is what the pods of some launches ask for.
type demand struct {
	sum   resources.Vector // of all together
	apart int              // how many pods keep apart from each other, at most
	// shared is set when some node has several pods. If none has, each pod has its own node, wherever it goes.
	shared bool
	types  []string // of a launch with one of these
}

func demandOf(launches []plan.Launch, byUID map[string]*cluster.Pod) demand {
	var d demand
	groups, keys := map[string]int{}, map[*cluster.Shape][]string{}
	for _, l := range launches {
		d.shared = d.shared || len(l.Pods) > 1
		for _, ref := range l.Pods {
			shape := byUID[ref.UID].Shape
			d.sum = d.sum.Plus(shape.Requests)
			if _, known := keys[shape]; !known {
				keys[shape] = nil
				for _, term := range apartBy(shape) {
					keys[shape] = append(keys[shape], term.String())
				}
			}
			for _, key := range keys[shape] {
				if groups[key]++; groups[key] > d.apart {
					d.apart, d.types = groups[key], l.Types
				}
			}
		}
	}
	return d
}

// sized is an offer with how many nodes of it are needed, and what they cost per hour.
type sized struct {
	offer, nodes int
	price        float64
}

// fewest returns the entry with the fewest nodes among those that cost at most tolerance times the cheapest, and the
// price of the cheapest. Of as many nodes the cheaper ones win. best has no nodes if the list is empty.
func fewest(list []sized, tolerance float64) (best sized, least float64) {
	least = math.Inf(1)
	for _, c := range list {
		least = min(least, c.price)
	}
	for _, c := range list { // by price of a node
		if c.price <= least*tolerance &&
			(best.nodes == 0 || c.nodes < best.nodes || c.nodes == best.nodes && c.price < best.price) {
			best = c
		}
	}
	return best, least
}

// size returns the offer with which nodes for all pods cost least or, for little more, are fewest; false if there is
// none.
func (d demand) size(p *pool) (int, bool) {
	var list []sized
	for i := range p.plain().All() {
		offer, room := p.Catalog.Offers[i], p.roomOf(i)
		if !slices.Contains(d.types, p.Catalog.Types[offer.Type].Name) {
			continue
		}
		nodes := int64(d.apart)
		for r, amount := range d.sum {
			if amount > 0 {
				usable := max(1, int64(float64(room.At(r))*(1-evenSpare)))
				nodes = max(nodes, ceilOf(amount, usable))
			}
		}
		list = append(list, sized{i, int(nodes), float64(nodes) * float64(max(offer.Price+p.NodeOverheadPrice, 1))})
	}
	best, _ := fewest(list, 1+evenFew)
	return best.offer, best.nodes > 0
}

// keepEven gives new nodes of the pool the size of an offer, as far as pods fit. With near, they may also be nearly of
// that size. Claims keep larger types, so that there is something to choose from.
func (p *pool) keepEven(offer int, near bool) {
	even := catalog.NewBits(len(p.Catalog.Offers))
	room, chosen := p.roomOf(offer), p.Catalog.Offers[offer]
	most := map[string]resources.Money{} // by capacity type
	for i := range p.plain().All() {     // by price
		if o := p.Catalog.Offers[i]; o.Type == chosen.Type && most[o.CapacityType] == 0 {
			most[o.CapacityType] = o.Price * (100 + evenMost) / 100
		}
	}
	for i := range p.plain().All() {
		own := p.roomOf(i)
		if o := p.Catalog.Offers[i]; o.Price <= most[o.CapacityType] && (room.Fits(own) || near && nearly(own, room)) {
			even.Add(i)
		}
	}
	p.even = even
	p.spare = make(resources.Vector, min(len(room), resources.Memory+1))
	for r := range p.spare {
		p.spare[r] = max(0, int64(float64(room[r])*evenSpare))
	}
	clear(p.rooms)
}

// nearly reports whether a room is nearly as large as another one.
func nearly(room, other resources.Vector) bool {
	for r := range other {
		if float64(room.At(r)) < float64(evenNear*float64(other[r])) {
			return false
		}
	}
	return true
}

// packSizes launches nodes of the pool for the groups: of its one size first, if it has one, and of any for what
// does not fit.
func (s *solver) packSizes(p *pool, groups []*group) {
	if even := p.even; even != nil {
		s.packPool(p, groups)
		p.even = nil
		defer func() { p.even = even }()
	}
	s.packPool(p, groups)
}

// plain returns the offers for pods that only need room.
func (p *pool) plain() catalog.Bits {
	if p.even != nil {
		return p.even
	}
	return p.unreserved()
}
