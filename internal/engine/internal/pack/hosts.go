package pack

import (
	"slices"
	"sort"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file plans how many nodes there are for pods spread over hostnames (P-03, P-22, ADR 0039). Placed one after the
// other, they fill a node before the next one is opened, and the last node gets what is left. The spread then holds
// every node to about as few as that, so most of each node stays empty. So the nodes are opened first, with one pod on
// each. The rule of the spread itself then keeps them even. Other pods go into the room beside them.

// hosts is how many nodes of a pool are opened for pods spread over hostnames before a node gets a second one of them.
type hosts struct {
	pool  string
	nodes int
}

const (
	// maxHosts bounds how many numbers of nodes are tried: what was computed, and then more, since pods do not fit
	// together exactly.
	maxHosts = 3
	// fewInEach is the number of nodes in each zone from which on one more in some zones is even enough.
	fewInEach = 4
)

// evenHosts plans with nodes that are opened first for pods spread over hostnames. It returns the better plan, and
// whether that is a new one.
func evenHosts(snapshot *cluster.Snapshot, pods []*cluster.Pod, than plan.Plan) (best plan.Plan, better bool) {
	t, zones, most := hostsFor(snapshot, pods, than)
	for tries := 0; t.hosts.nodes > 0 && tries < maxHosts; tries++ {
		// a node opened beside these has none of the pods, and each other node would be held to one
		own, made := tryUnless(snapshot, pods, mix.Solve, t,
			func(s *solver) bool { return len(s.planned) > t.hosts.nodes })
		if made {
			fewer := len(own.Launches) < len(than.Launches) && costs(snapshot, own) <= most
			if !lost(own, than) && (fewer || cheaper(snapshot, own, than)) {
				than, better = own, true
			}
			if len(own.Launches) <= t.hosts.nodes {
				break
			}
		}
		t.hosts.nodes = evenOver(zones, t.hosts.nodes+1)
	}
	return than, better
}

// evenOver raises a number of nodes to a multiple of zones while there are few in each: then nodes and zones can both
// be even.
func evenOver(zones, nodes int) int {
	if nodes < fewInEach*zones {
		return (nodes + zones - 1) / zones * zones
	}
	return nodes
}

// hostsFor returns what to try instead of a plan, over how many zones the pods are also spread, and what fewer nodes
// may cost. The trial is empty if the plan launches nothing, if it has no pods spread over hostnames, or if there is
// nothing to save.
func hostsFor(snapshot *cluster.Snapshot, pods []*cluster.Pod, p plan.Plan) (t trial, zones int, most float64) {
	isLate := func(pod *cluster.Pod) bool { return lateness(pod.Shape) == lastOfAll }
	if len(p.Launches) == 0 || len(pods) > evenPods || !slices.ContainsFunc(pods, isLate) {
		return t, 0, 0
	}
	s := newSolver(snapshot, pods, nil)
	pool := s.draftPool()
	if pool == nil {
		return t, 0, 0
	}
	byUID := map[string]*cluster.Pod{}
	for _, pod := range pods {
		byUID[pod.UID] = pod
	}
	own := plan.Plan{
		Launches: slices.DeleteFunc(slices.Clone(p.Launches), func(l plan.Launch) bool { return l.Pool != pool.Name }),
	}
	d := hostDemand{demand: demandOf(own.Launches, byUID), late: map[*cluster.Shape]int{}, zones: 1}
	for _, l := range own.Launches {
		for _, ref := range l.Pods {
			pod := byUID[ref.UID]
			d.largest = d.largest.Max(pod.Shape.Requests)
			if isLate(pod) {
				info := s.info(pod.Shape)
				if info.isLater(pool) {
					return t, 0, 0
				}
				if d.late[pod.Shape]++; d.late[pod.Shape] == 1 {
					d.zones = max(d.zones, s.domainsFor(pool, info))
				}
			} else {
				d.others = true
			}
		}
	}
	chosen, least := fewest(d.sizes(s, pool), tolerance(snapshot))
	before := costs(snapshot, own)
	if least = min(least, before); len(d.late) == 0 || chosen.nodes == 0 ||
		chosen.price >= before && (chosen.nodes >= len(own.Launches) || chosen.price > least*tolerance(snapshot)) {
		return t, 0, 0
	}
	t.hosts = hosts{pool.Name, chosen.nodes}
	if d.others {
		t.sizes = map[string]int{pool.Name: chosen.offer}
	}
	return t, d.zones, costs(snapshot, p) - before + least*tolerance(snapshot)
}

// hostDemand is the demand of pods, some of them spread over hostnames.
type hostDemand struct {
	demand
	late    map[*cluster.Shape]int // how many pods are spread over hostnames, by shape
	others  bool                   // there are others
	largest resources.Vector       // the most of each resource that a pod asks for: each may come to any of the nodes
	// how many zones there are if pods are also spread over zones, else 1: equally many nodes in each are even
	zones int
}

// sizes lists the offers on which all pods that are spread over hostnames may run, each with as many nodes as are
// needed for all.
func (d *hostDemand) sizes(s *solver, p *pool) []sized {
	offers := p.plain().Clone()
	for shape := range d.late {
		open := catalog.NewBits(len(p.Catalog.Offers))
		for _, w := range s.info(shape).ways[p.index] {
			w.offers.OrTo(open)
		}
		open.AndTo(offers)
	}
	var list []sized
	for i := range offers.All() {
		room := slices.Clone(p.roomOf(i))
		if d.others { // kube-scheduler puts them where it likes
			for r, amount := range room {
				room[r] = int64(float64(float64(amount) * (1 - evenSpare)))
			}
		}
		if nodes := d.nodesOf(room); nodes > 0 {
			list = append(list,
				sized{i, nodes, float64(nodes) * float64(max(p.Catalog.Offers[i].Price+p.NodeOverheadPrice, 1))})
		}
	}
	return list
}

// nodesOf returns how many nodes with such a room hold all pods, each with its share of those that are spread over
// hostnames; 0 if some pod does not fit.
func (d *hostDemand) nodesOf(room resources.Vector) int {
	if !d.largest.Fits(room) {
		return 0
	}
	nodes := int64(max(d.apart, 1))
	for r, amount := range d.sum {
		if amount > 0 {
			nodes = max(nodes, ceilOf(amount, max(1, room.At(r))))
		}
	}
	most := 0
	for _, count := range d.late {
		most = max(most, count)
	}
	nodes += int64(sort.Search(max(0, most-int(nodes)),
		func(more int) bool { return d.shares(nodes + int64(more)).Fits(room) }))
	return evenOver(d.zones, int(nodes))
}

// shares returns what pods spread over hostnames request on the fullest of so many nodes.
func (d *hostDemand) shares(nodes int64) resources.Vector {
	var sum resources.Vector
	for shape, count := range d.late {
		sum = sum.Plus(shape.Requests.Times(int(ceilOf(int64(count), nodes))))
	}
	return sum
}

func ceilOf(amount, by int64) int64 { return (amount + by - 1) / by }

// placeLate places pods that are spread over hostnames, and returns those that found no place. The first of them open
// the nodes that there should be. Then each kind of pod goes round the nodes, since a skew above 1 would let it fill
// the first ones.
func (s *solver) placeLate(pods []*cluster.Pod) []*cluster.Pod {
	var rest []*cluster.Pod
	turns := map[*cluster.Shape]int{}
	for _, pod := range pods {
		turn := turns[pod.Shape]
		turns[pod.Shape]++
		if !s.moved(pod, func(info *shape) bool {
			return s.placeInExisting(s.askOne(pod, info)) || s.openHost(pod, info) ||
				s.placeInTurn(s.askOne(pod, info), turn)
		}) {
			rest = append(rest, pod)
		}
	}
	return s.placeEach(rest)
}

// placeInTurn places the pod of an attempt on the first planned node that takes it, beginning with the one whose turn
// it is. Nodes of pools that it likes less than others are left for later.
func (s *solver) placeInTurn(a *attempt, turn int) bool {
	for len(a.info.refused) < s.bins() {
		a.info.refused = append(a.info.refused, false)
	}
	for i := range s.planned {
		index := len(s.existing) + (turn+i)%len(s.planned)
		later := a.info.isLater(s.planned[index-len(s.existing)].pool)
		if !a.info.refused[index] && !later && a.info.note(index, s.tryPlanned(index, a)) {
			return true
		}
	}
	return false
}

// openHost opens a node for a pod that is spread over hostnames, as long as there are fewer than there should be.
func (s *solver) openHost(pod *cluster.Pod, info *shape) bool {
	for i, p := range s.pools {
		if p.Name == s.hosts.pool && len(s.planned) < s.hosts.nodes {
			return len(info.ways[i]) > 0 && p.mayGrow() && s.openIn(p, pod, info)
		}
	}
	return false
}

// offers counts the offers on which new nodes may take the shape.
func (info *shape) offers() int {
	sum := 0
	for _, ways := range info.ways {
		for _, w := range ways {
			sum += w.offers.Count()
		}
	}
	return sum
}
