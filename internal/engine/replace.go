package engine

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file replaces nodes by cheaper ones, any number by any number (D-04). A plan for a group of nodes is expensive,
// so little is planned in vain. Nodes are ordered by what they could save at most, and tried as many at once as the
// budgets allow. No plan is made for a group that is unlikely to save enough, by a lower bound on the cost of its
// pods.

// replaceAll replaces candidates pool by pool, so that each has its share of the work, and its own minimum saving. A
// pool whose budget has nothing left gets no fresh plan.
func (d *disruption) replaceAll(candidates []*cluster.Node) {
	for _, pool := range d.base.Pools {
		if d.left(pool.Name, plan.Underutilized) == 0 {
			continue
		}
		var own []*cluster.Node
		for _, node := range candidates {
			if node.Pool == pool.Name {
				own = append(own, node)
			}
		}
		d.replaceIn(d.promising(own))
	}
	d.far = false
	list := d.beyondOne(candidates)
	d.replaceByOne(list)
	d.fillReservations(candidates)
	if len(d.chosen) == 0 { // so nothing has changed since
		d.replaceInTurn(list)
	}
}

// atBest is for nodes of which no fresh plan tells more. Their cost must be above the lower bound for their pods by
// this many times the least saving. The bound is seldom reached: groups of nodes closer to it are planned in vain, or
// replaced again. Half of the price is enough, unless the least saving is more.
const atBest = 4

// promising returns the nodes, as they are in the future, whose replacement might save enough. First come those that
// cost most beyond what a fresh plan pays for their pods; of equals, those that could save most, then those that cost
// least to disrupt.
func (d *disruption) promising(nodes []*cluster.Node) []*cluster.Node {
	type rank struct {
		saving resources.Money // at most
		cost   int64
	}
	ranks := map[*cluster.Node]rank{}
	var list []*cluster.Node
	for _, node := range nodes {
		if node = d.now(node); d.replaceable(node) {
			cost, _ := DisruptionCost(node)
			ranks[node] = rank{d.cost(node) - d.floorOf(node), cost}
			list = append(list, node)
		}
	}
	slices.SortStableFunc(list, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(ranks[b].saving, ranks[a].saving), cmp.Compare(ranks[a].cost, ranks[b].cost))
	})
	excess := d.excessOf(firstWith(list, freshPods))
	d.far = d.isFar(excess)
	list = slices.DeleteFunc(list, func(node *cluster.Node) bool {
		price := d.cost(node)
		least := max(1, d.share(price))
		if beyond, known := excess[node]; known {
			return beyond <= 0 || ranks[node].saving < least && allSpot([]*cluster.Node{node})
		}
		return ranks[node].saving < max(least, min(atBest*least, price/2))
	})
	slices.SortStableFunc(list, func(a, b *cluster.Node) int { return cmp.Compare(excess[b], excess[a]) })
	return list
}

const (
	// vainPods bounds how many pods are planned for in vain in one pool and round. vainGroups bounds the same, as a
	// multiple of the pods of the first group; the larger bound counts. Where nothing can be gained, that is all the
	// work.
	vainPods   = 300
	vainGroups = 2
)

// replaceIn replaces nodes of one pool, the most promising ones together at first, then smaller groups.
func (d *disruption) replaceIn(nodes []*cluster.Node) {
	first := d.within(nodes)
	left := max(vainPods, vainGroups*podsOf(first))
	for size := len(first); size > 0; size /= 2 {
		for from := 0; from < len(nodes) && left > 0; {
			group := d.within(nodes[from:min(from+size, len(nodes))])
			if len(group) == 0 {
				return
			}
			if before := d.cost(group...); d.floorOf(group...) > before-d.minSaving(before, len(group)) {
				from += size
				continue
			}
			if d.replace(group) { // nodes of it that keepSame leaves out are worth keeping
				nodes = slices.DeleteFunc(nodes, func(n *cluster.Node) bool { return slices.Contains(group, n) })
				continue
			}
			left -= podsOf(group)
			from += size
		}
	}
}

// within returns the first nodes of a group that the budgets still allow, as they are in the future.
func (d *disruption) within(group []*cluster.Node) []*cluster.Node {
	count := map[string]int{}
	var list []*cluster.Node
	for _, node := range group {
		if count[node.Pool] < d.left(node.Pool, plan.Underutilized) {
			count[node.Pool]++
			list = append(list, d.now(node))
		}
	}
	return list
}

// replace chooses the group if what its pods need can be launched for enough less; false when not.
func (d *disruption) replace(group []*cluster.Node) bool {
	return d.replaceBy(group, anyLaunches)
}

func anyLaunches([]plan.Launch) bool { return true }

// replaceBy is replace, if the launches are as wanted.
func (d *disruption) replaceBy(group []*cluster.Node, wanted func([]plan.Launch) bool) bool {
	c, found := d.replacementOf(group, wanted)
	if !found {
		return false
	}
	d.future = d.future.Without(c.nodes...).Draws(drawing(d.base, c.launches, newLast, len(d.launched()))...)
	d.choose(c)
	return true
}

// replacementOf returns the command that replaces a group, if its launches cost enough less and are as wanted; false
// when there is none. Nodes of the group that keepSame leaves out are not part of it.
func (d *disruption) replacementOf(group []*cluster.Node, wanted func([]plan.Launch) bool) (command, bool) {
	price := d.cost(group...)
	launches, found := d.replacement(group, price-d.minSaving(price, len(group)))
	if !found {
		return command{}, false
	}
	group, launches = d.keepSame(group, launches)
	before, after := d.cost(group...), d.costOfLaunches(launches)
	if !wanted(launches) || onlyMore(d.future, group, before, launches) || d.feeds(launches) ||
		len(launches) == 0 && !d.savesAsScheduled(group, d.future.Without(group...)) {
		return command{}, false
	}
	if held, _ := d.holds(group, launches, before-after); held != "" {
		return command{}, false
	}
	if !d.pin(group, launches) {
		return command{}, false
	}
	for i := range launches {
		if !d.onlyCheaper(&launches[i], group, before, after) {
			return command{}, false
		}
		launches[i].Replaces, launches[i].Together = names(group), len(launches)
		launches[i].Pods, launches[i].Buffers = nil, nil // they run elsewhere still: nobody is promised anything
	}
	return command{nodes: group, launches: launches, reason: plan.Underutilized, why: d.instead(launches, group)}, true
}

// holds says what keeps a group although its replacement by launches would save enough; "" for nothing.
func (d *disruption) holds(group []*cluster.Node, launches []plan.Launch,
	saving resources.Money) (code cause.Code, why string) {
	switch {
	case !d.worthIt(group, saving):
		return cause.SavingTooSmall, "that is too little for the pods that would move: NodePool " + group[0].Pool +
			" is Balanced"
	case !d.keepsFloors(group, launches):
		return cause.MinNodes, "NodePool " + group[0].Pool + " would have fewer nodes than it always keeps"
	case !d.keepsMix(group, launches):
		return cause.SpotRatio, "a NodePool would have more spot nodes than its spot ratio allows"
	case !d.roomStays(d.future.Without(group...).With(virtuals(d.future, launches, newLast))):
		return cause.KeepsRoom, "room for a CapacityBuffer or a NodePool's headroom might be lost: pods need not go " +
			"where they are planned"
	}
	return "", ""
}

// slotsOf lists, by pool, the slots that launches take; plan.NoSlot for one without.
func slotsOf(launches []plan.Launch) map[string][]int {
	taken := map[string][]int{}
	for _, l := range launches {
		taken[l.Pool] = append(taken[l.Pool], l.Slot)
	}
	return taken
}

func allSpot(group []*cluster.Node) bool {
	for _, node := range group {
		if capacityType(node) != catalog.Spot {
			return false
		}
	}
	return true
}
