package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Drift plans to replace drifted nodes, as many at once as the budgets and hard limits allow (D-06, L-30): empty ones
// first, then the oldest. What their pods need beyond the rest of the cluster is launched at any price. A node stays
// if its pods would find no place, because a limit or the market leaves none; it holds up no other node. Nodes of
// static pools are replaced one for one, see static.go.
func Drift(s *cluster.Snapshot, terms Terms) plan.Plan {
	return renew(s, terms, plan.Drifted)
}

// Expire plans to replace expired nodes of pools that ask for it (D-07), in the way of [Drift].
func Expire(s *cluster.Snapshot, terms Terms) plan.Plan {
	return renew(s, terms, plan.Expired)
}

// renew plans to replace the nodes that are due for a reason, at any price.
func renew(s *cluster.Snapshot, terms Terms, reason plan.DisruptionReason) plan.Plan {
	used, h := Taken(s), hear(s, terms.Now)
	mayGo := func(node *cluster.Node) bool {
		return used[node.Pool] < Allowed(terms.Budgets[node.Pool], reason) && h.mayGo(node, reason)
	}
	if !slices.ContainsFunc(s.Nodes, mayGo) { // nearly always: pending pods need no plan to know it
		return plan.Plan{BasedOn: s.Version, Names: s.Names}
	}
	d := begin(s, terms)
	var list []*cluster.Node
	for _, node := range d.future.Nodes {
		if mayGo(node) { // with the pods that come onto it
			list = append(list, node)
		}
	}
	slices.SortFunc(list, func(a, b *cluster.Node) int {
		_, podsA := DisruptionCost(a)
		_, podsB := DisruptionCost(b)
		return cmp.Or(cmp.Compare(min(podsA, 1), min(podsB, 1)), cmp.Compare(a.Created, b.Created),
			strings.Compare(a.Claim, b.Claim))
	})
	static := map[string][]*cluster.Node{}
	list = slices.DeleteFunc(list, func(node *cluster.Node) bool {
		own := s.Pool(node.Pool).Static
		if own {
			static[node.Pool] = append(static[node.Pool], node)
		}
		return own
	})
	d.rollFirst(list, reason)
	d.goFirst(list, reason)
	for _, pool := range s.Pools {
		d.rollStatic(pool, static[pool.Name], reason)
	}
	return d.done(s)
}

// maxTries bounds how often a round that has found nothing tries again, each time as many nodes as the budgets allow.
const maxTries = 100

// rollFirst replaces the first replaceable nodes of a list, as many as the budgets allow. A node that cannot be
// replaced now, since a limit leaves no room or a pod has no place, uses up no budget. Otherwise the first such node
// would hold up all others for good.
func (d *disruption) rollFirst(list []*cluster.Node, reason plan.DisruptionReason) {
	for range maxTries {
		var group, rest []*cluster.Node
		wanted := map[string]int{}
		for _, node := range list {
			if wanted[node.Pool] < d.left(node.Pool, reason) {
				wanted[node.Pool]++
				group = append(group, node)
			} else {
				rest = append(rest, node)
			}
		}
		if len(group) == 0 {
			return
		}
		future, taken := d.future, maps.Clone(d.taken)
		d.roll(group, reason)
		tried := slices.Clone(d.chosen)
		d.dropUntilTogether(settles)
		d.dropHomeless()
		if len(d.chosen) > 0 {
			return
		}
		d.future, d.taken = future, maps.Clone(taken)
		if len(tried) > 0 && d.rollApart(tried[0].nodes[0], reason) {
			return
		}
		d.future, d.taken, list = future, taken, rest
	}
}

// dropHomeless gives up commands without launches whose pods have no place, neither together with the other commands
// nor alone: [Judge] would take them back (D-09). A later round launches for them.
func (d *disruption) dropHomeless() {
	launchesNothing := func(c command) bool { return len(c.launches) == 0 }
	if !slices.ContainsFunc(d.chosen, launchesNothing) {
		return
	}
	without, launches := d.carriedOut()
	if fitBeside(without.WithoutBuffers(), launches) {
		return
	}
	shut, _ := d.base.WithoutBuffers().Shut(d.gone()...)
	d.chosen = slices.DeleteFunc(d.chosen, func(c command) bool {
		own := make([]*cluster.Node, len(c.nodes))
		for i, node := range c.nodes {
			own[i] = shut.Node(node)
		}
		return launchesNothing(c) && !fitBeside(shut.Without(own...), launches)
	})
}

// rollApart launches for all pods of a node, although some have places on existing nodes: with fewer new nodes the
// plan does not hold when the pods come in another order. If that does not hold either, all new nodes are as large as
// the largest of them. It reports whether one of the two holds.
func (d *disruption) rollApart(node *cluster.Node, reason plan.DisruptionReason) bool {
	future, node := d.future, d.now(node)
	apart, _ := future.Shut(slices.DeleteFunc(slices.Clone(future.Nodes),
		func(n *cluster.Node) bool { return n == node })...)
	without := apart.Without(node).WithoutBuffers()
	for range 2 {
		p := pack.Solve(without, without.Pending)
		if len(p.Unplaced) > 0 || len(p.Launches) == 0 {
			return false
		}
		room := largest(without, p.Launches)
		d.adopt(without, []*cluster.Node{node}, p, reason)
		d.future = future
		if d.dropUntilTogether(settles); len(d.chosen) > 0 {
			return true
		}
		without = without.AtLeast(room)
	}
	return false
}

// largest returns the most CPU and memory that a node of these launches has for pods and daemons.
func largest(s *cluster.Snapshot, launches []plan.Launch) resources.Vector {
	most := resources.Vector{}
	for i, l := range launches {
		room := virtual(s.Pool(l.Pool), l, newLast.of(i)).Allocatable
		for _, component := range []int{resources.CPU, resources.Memory} {
			most = most.With(component, max(most.At(component), room.At(component)))
		}
	}
	return most
}

// maxRolls bounds the commands of one round. With fewer nodes, each is replaced for itself: none waits for the
// replacement of another, nor is given up with it. Two go together where that is worth it (see rollPair).
const maxRolls = 50

// roll replaces nodes of the future at any price. None of them takes pods of another, and no command has nodes of two
// pools.
func (d *disruption) roll(group []*cluster.Node, reason plan.DisruptionReason) {
	d.future, group = d.future.Shut(group...)
	together := (len(group) + maxRolls - 1) / maxRolls
	for _, pool := range d.future.Pools {
		own := slices.DeleteFunc(slices.Clone(group), func(n *cluster.Node) bool { return n.Pool != pool.Name })
		for len(own) > 0 {
			if together == 1 && len(own) > 1 && !d.guarded(own[0]) && !d.guarded(own[1]) {
				d.rollPair(own[0], own[1], reason)
				own = own[2:]
				continue
			}
			n := min(together, len(own))
			d.rollTogether(own[:n], reason)
			own = own[n:]
		}
	}
}

// pairSaving is how much less, in percent, the launches for two nodes have to cost than those for each of them alone.
const pairSaving = 5

// rollPair replaces two nodes, in one command if that costs enough less than a command for each.
func (d *disruption) rollPair(a, b *cluster.Node, reason plan.DisruptionReason) {
	before := *d
	before.taken = maps.Clone(d.taken)
	d.rollTogether([]*cluster.Node{a}, reason)
	d.rollTogether([]*cluster.Node{b}, reason)
	if len(d.chosen) < len(before.chosen)+2 {
		return
	}
	cost := resources.Money(0)
	for _, c := range d.chosen[len(before.chosen):] {
		cost += d.costOfLaunches(c.launches)
	}
	without := before.future.Without(a, b)
	p := pack.Solve(without, without.Pending)
	if len(p.Unplaced) == 0 && cost-d.costOfLaunches(p.Launches) >= max(1, cost*pairSaving/100) {
		*d = before
		d.adopt(without, []*cluster.Node{a, b}, p, reason)
	}
}

// guarded reports whether a node may take long to drain: a PodDisruptionBudget selects one of its pods, or a pod must
// not be disrupted. No other node waits together with it.
func (d *disruption) guarded(node *cluster.Node) bool {
	return slices.ContainsFunc(node.Pods, func(pod *cluster.Pod) bool {
		return pod.DoNotDisrupt && !pod.Terminating || slices.ContainsFunc(d.base.Guards, func(g cluster.Guard) bool {
			return g.Namespace == pod.Namespace && g.Pods.Matches(pod.Shape.Labels)
		})
	})
}

// rollTogether replaces nodes in one command, or else in halves, down to single nodes.
func (d *disruption) rollTogether(group []*cluster.Node, reason plan.DisruptionReason) {
	without := d.future.Without(group...)
	p := pack.Solve(without, without.Pending)
	// Room for buffers keeps no node (K-40), and no pod may owe its place to room that keeps others away: room moves
	// on.
	if bare := without.WithoutBuffers(); bare != without && (len(p.Unplaced) > 0 || !fitBeside(bare, p.Launches)) {
		without, p = bare, pack.Solve(bare, bare.Pending)
	}
	switch half := len(group) / 2; {
	case len(p.Unplaced) == 0:
		d.adopt(without, group, p, reason)
	case half > 0:
		d.rollTogether(group[:half], reason)
		d.rollTogether(group[half:], reason)
	default:
		d.stay(group[0], "", p.Unplaced[0])
	}
}

// homeless says that a pod keeps its node from going.
func homeless(u plan.Unplaced) string {
	return "pod " + u.Pod.String() + " would find no place elsewhere: " + u.String()
}

// adopt chooses a group, with the launches that replace it and those that keep its pool at its floor (K-54).
func (d *disruption) adopt(without *cluster.Snapshot, group []*cluster.Node, p plan.Plan,
	reason plan.DisruptionReason) {
	p.Launches = append(p.Launches, d.refill(without, group, p.Launches)...)
	d.future = without.Bind(placements(without, p)).Launched(slotsOf(p.Launches)).
		Draws(drawing(d.base, p.Launches, newLast, len(d.launched()))...)
	for i := range p.Launches {
		p.Launches[i].Replaces, p.Launches[i].Together = names(group), len(p.Launches)
		p.Launches[i].Pods, p.Launches[i].Buffers = nil, nil // they run elsewhere still: nobody is promised anything
	}
	d.choose(command{nodes: group, launches: p.Launches, reason: reason})
}
