package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Consolidate plans to make the cluster cheaper within the budgets (D-04, D-05). First, nodes go whose pods fit on
// others. Then any number of nodes is replaced by any cheaper set of new ones. All existing pods keep a place. The
// choices of one round stand together: no two nodes count on the same room.
//
// Launches name the claims that they replace; those nodes may go once all their launches are initialized. The work of
// a round is bounded, and the next one goes on with what is left: nothing is thrown away for lack of time.
func Consolidate(s *cluster.Snapshot, terms Terms) plan.Plan {
	h := hear(s, terms.Now)
	mayGo := func(node *cluster.Node) bool {
		return !terms.Passing[node.Pool] && h.mayGo(node, plan.Underutilized) && !slices.ContainsFunc(node.Pods, bound)
	}
	if !slices.ContainsFunc(s.Nodes, mayGo) { // nothing can go: pending pods need no plan to know that
		return plan.Plan{BasedOn: s.Version, Names: s.Names}
	}
	d := begin(s, terms)
	if candidates := d.candidates(mayGo); terms.Again {
		d.replaceInTurn(d.beyondOne(candidates))
	} else {
		d.replaceAll(d.deleteAll(candidates))
	}
	if len(s.Buffers) > 0 {
		d.dropUntilTogether(func(without *cluster.Snapshot, launches []plan.Launch) bool {
			return d.roomStays(without.With(virtuals(without, launches, newLast)))
		})
	}
	return d.done(s)
}

// holds reports whether nodes that were chosen before may still go together (D-09): everything on them has a place
// elsewhere. If that takes a launch, because something else has come in the meantime, the launch must cost less than
// the nodes, unless the reason is not about money. Buffers are left out: their room was considered before, and moves
// already.
func (h *hearing) holds(reason plan.DisruptionReason, nodes []*cluster.Node) bool {
	if h.hasRoom(nodes) {
		return true
	}
	s, without := h.s, h.bare().future.Without(nodes...)
	p := pack.Solve(without, without.Pending)
	if ForMoney(reason) {
		cost := s.Cost(nodes...)
		return len(p.Unplaced) == 0 && cost != resources.Unpriced && p.Cost(s.Overhead) < cost
	}
	return len(p.Unplaced) == 0
}

// hasRoom reports whether everything that has to move from the nodes, when they go together, has a place on existing
// nodes: nothing would be launched. For buffers something may have to be (K-40).
func (h *hearing) hasRoom(nodes []*cluster.Node) bool {
	without := h.bare().future.Without(nodes...)
	_, fits := pack.Fit(without, without.Pending)
	return fits
}

// maxVain bounds how many nodes a round tries one by one in vain; the others wait for the next round.
const maxVain = 300

// deleteAll chooses the nodes whose pods fit on others, and returns the candidates that it did not choose. It tries
// all at once first, then about half as many after each failure, and about twice as many after a success.
func (d *disruption) deleteAll(candidates []*cluster.Node) []*cluster.Node {
	base, rest, chosen, vain := d.future, []*cluster.Node(nil), []*cluster.Node(nil), 0
	count := map[string]int{}
	for size := len(candidates); len(candidates) > 0 && vain < maxVain; {
		group, others := d.nextToGo(candidates, count, size, &rest)
		if candidates = others; len(group) == 0 {
			break
		}
		current := make([]*cluster.Node, len(group))
		for i, node := range group {
			current[i] = d.now(node)
		}
		without := d.future.Without(current...)
		placed, fits := pack.Fit(without, without.Pending)
		switch {
		case fits && d.worthIt(current, d.cost(current...)) && d.roomStays(without) &&
			d.savesAsScheduled(current, without):
			d.future = without.Bind(placed)
			for _, node := range group {
				count[node.Pool]++
			}
			chosen, size = append(chosen, group...), 2*len(group)
		case len(group) > 1:
			candidates, size = append(group, others...), len(group)/2
		default:
			rest, vain = append(rest, group...), vain+1
		}
	}
	d.future = base
	rest = append(rest, candidates...)
	return append(rest, d.deleteTogether(chosen)...)
}

// nextToGo returns a group of the first candidates, at most size, that might fit elsewhere and that the budgets and
// floors of pools allow beside count. Those that cannot go are added to rest. others are the remaining candidates,
// without those for which the budgets have nothing left.
func (d *disruption) nextToGo(candidates []*cluster.Node, count map[string]int, size int,
	rest *[]*cluster.Node) (group, others []*cluster.Node) {
	wanted := maps.Clone(count)
	for i, node := range candidates {
		left, spare := d.left(node.Pool, plan.Underutilized), max(0, d.spareOf(node.Pool))
		switch {
		case len(group) == size:
			return group, append(others, candidates[i:]...)
		case count[node.Pool] == left:
		case count[node.Pool] >= spare: // it may be replaced one for one
			*rest = append(*rest, node)
		case wanted[node.Pool] == min(left, spare), !d.saves(group, node),
			!d.keepsMix(append(slices.Clip(group), node), nil):
			others = append(others, node)
		case !mightFit(d.future, d.now(node)):
			*rest = append(*rest, node)
		default:
			wanted[node.Pool]++
			group = append(group, node)
		}
	}
	return group, others
}

// mightFit is a cheap check before a node's pods are placed elsewhere. For CPU and for memory, it takes the pod that
// requests most: some other node must have room for it.
func mightFit(s *cluster.Snapshot, node *cluster.Node) bool {
	for _, component := range []int{resources.CPU, resources.Memory} {
		var largest resources.Vector
		for _, pod := range node.Pods {
			if pod.Moves() && pod.Shape.Requests.At(component) > largest.At(component) {
				largest = pod.Shape.Requests
			}
		}
		if !slices.ContainsFunc(s.Nodes, func(other *cluster.Node) bool {
			return other != node && other.HasRoom(largest)
		}) {
			return false
		}
	}
	return true
}

// deleteTogether chooses the first of these nodes, as many as can go when all their pods are placed together. The
// order in which the nodes were found must not matter: pods come back in another one. It returns the other nodes.
func (d *disruption) deleteTogether(nodes []*cluster.Node) []*cluster.Node {
	for n := len(nodes); n > 0; n = n * 7 / 8 {
		after, fit := d.fitElsewhere(nodes[:n])
		if !fit {
			continue
		}
		d.future = after
		for _, node := range nodes[:n] {
			d.choose(command{nodes: []*cluster.Node{node}, reason: plan.Underutilized, why: whatFits(node) +
				" elsewhere"})
		}
		return nodes[n:]
	}
	return nodes
}

// fitElsewhere reports whether the pods of nodes fit on others, in whatever order they come, so that the nodes may go
// together with no launch. after is the future without them.
func (d *disruption) fitElsewhere(nodes []*cluster.Node) (after *cluster.Snapshot, fit bool) {
	without := d.future.Without(nodes...)
	placed, fits := pack.Fit(without, without.Pending)
	if !fits || launched(without) || !d.roomStays(without) || !d.keepsMix(nodes, nil) ||
		!d.savesAsScheduled(nodes, without) {
		return nil, false
	}
	return without.Bind(placed), true
}

// savesAsScheduled reports whether the removal of nodes saves enough even if kube-scheduler places their pods in
// another way than the plan, and pods without a place then need launches. Without this check a node would go again and
// again, and another one come each time (D-15). without is the cluster without the nodes.
func (d *disruption) savesAsScheduled(nodes []*cluster.Node, without *cluster.Snapshot) bool {
	p, cost := pack.AsScheduled(without, without.Pending), d.cost(nodes...)
	return len(p.Unplaced) == 0 &&
		(len(p.Launches) == 0 || d.costOfLaunches(p.Launches) <= cost-d.minSaving(cost, len(nodes)))
}

// launched reports whether a node would be launched for pending pods of s, although they fit on its nodes. Pods that
// are tied to others may have to wait for them: one without a place at first gets a node at once when it really waits.
func launched(s *cluster.Snapshot) bool {
	tied := func(p *cluster.Pod) bool {
		return p.Shape.Tied()
	}
	return slices.ContainsFunc(s.Pending, tied) && len(pack.Sketch(s, s.Pending).Launches) > 0
}

// now returns the node as it is in the future: with the pods that come onto it.
func (d *disruption) now(node *cluster.Node) *cluster.Node {
	if current := d.future.Node(node); current != nil {
		return current
	}
	return node
}

func whatFits(node *cluster.Node) string {
	switch _, n := DisruptionCost(node); {
	case n == 1:
		return "its pod fits"
	case n == 0 && slices.ContainsFunc(node.Pods, (*cluster.Pod).IsBuffer):
		return "the room that it has for CapacityBuffers is"
	default:
		return fmt.Sprintf("its %d pods fit", n)
	}
}
