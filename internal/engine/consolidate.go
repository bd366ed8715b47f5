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

// Consolidate plans to make the cluster cheaper within the budgets (D-04, D-05): nodes whose pods fit on others go; then
// any number of nodes is replaced by any cheaper set of new ones. Of what pods there are, all keep a place. What is chosen
// in one round stands together: no two nodes count on the same room.
//
// Launches carry the claims that they replace; a node with such launches may go once they are initialized. The work of a
// round is bounded, and the next one goes on with what is left: nothing is thrown away for lack of time.
func Consolidate(s *cluster.Snapshot, terms Terms) plan.Plan {
	h := hear(s, terms.Now)
	mayGo := func(node *cluster.Node) bool {
		return !terms.Passing[node.Pool] && h.mayGo(node, plan.Underutilized) && !slices.ContainsFunc(node.Pods, bound)
	}
	if !slices.ContainsFunc(s.Nodes, mayGo) { // then pods that wait need not be planned to know that nothing goes
		return plan.Plan{BasedOn: s.Version, Names: s.Names}
	}
	d := begin(s, terms)
	rest := d.deleteAll(d.candidates(mayGo))
	d.replaceAll(rest)
	if len(s.Buffers) > 0 {
		d.dropUntilTogether(func(without *cluster.Snapshot, launches []plan.Launch) bool {
			return d.roomStays(without.With(virtuals(without, launches, newLast)))
		})
	}
	return d.done(s)
}

// Holds reports whether a node that was chosen before may still go (D-09): everything on it and on the others that go with it
// has a place elsewhere. Where that takes a launch, because something else has come in the meantime, it must cost less than
// the nodes do, or the reason be another than their price. Room for buffers was thought of before: it moves on already.
func Holds(s *cluster.Snapshot, reason plan.DisruptionReason, nodes ...*cluster.Node) bool {
	bare := s.WithoutBuffers()
	d := beginFrom(bare, bare, Terms{})
	without := d.future.Without(nodes...)
	if _, fits := pack.Fit(without, without.Pending); fits {
		return true
	}
	p := pack.Solve(without, without.Pending)
	if ForMoney(reason) {
		cost := s.Cost(nodes...)
		return len(p.Unplaced) == 0 && cost != resources.Unpriced && p.Cost(s.Overhead) < cost
	}
	return len(p.Unplaced) == 0
}

// hasRoom reports whether all that has to move from the nodes, when they go together, has a place on nodes that are there
// already: nothing would have to be launched. For buffers something may have to be (K-40).
func hasRoom(s *cluster.Snapshot, nodes ...*cluster.Node) bool {
	bare := s.WithoutBuffers()
	without := beginFrom(bare, bare, Terms{}).future.Without(nodes...)
	_, fits := pack.Fit(without, without.Pending)
	return fits
}

// maxVain bounds how many nodes are looked at one by one in vain in a round; the others wait for the next one.
const maxVain = 300

// deleteAll chooses the nodes whose pods fit on others, and returns the candidates that it did not choose. It asks about all
// at once first, about half as many as long as the answer is no, and about twice as many after a yes.
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
		case fits && d.worthIt(current, d.cost(current...)) && d.roomStays(without) && d.savesAsScheduled(current, without):
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

// nextToGo takes the first candidates, at most size, that the budgets and the floors of pools allow beside count and that might
// fit elsewhere; those that can not are added to rest. It returns the other candidates as well, without those for which the budgets
// have nothing left.
func (d *disruption) nextToGo(candidates []*cluster.Node, count map[string]int, size int, rest *[]*cluster.Node) (group, others []*cluster.Node) {
	wanted := maps.Clone(count)
	for i, node := range candidates {
		left, spare := d.left(node.Pool, plan.Underutilized), max(0, d.spareOf(node.Pool))
		switch {
		case len(group) == size:
			return group, append(others, candidates[i:]...)
		case count[node.Pool] == left:
		case count[node.Pool] >= spare: // it may be replaced one for one
			*rest = append(*rest, node)
		case wanted[node.Pool] == min(left, spare), !d.saves(group, node), !d.keepsMix(append(slices.Clip(group), node), nil):
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

// mightFit is a cheap look before a node's pods are placed elsewhere: those that request most of a component each fit into what some
// other node has left.
func mightFit(s *cluster.Snapshot, node *cluster.Node) bool {
	for _, component := range []int{resources.CPU, resources.Memory} {
		var largest resources.Vector
		for _, pod := range node.Pods {
			if !pod.Fixed && !pod.Terminating && pod.Shape.Requests.At(component) > largest.At(component) {
				largest = pod.Shape.Requests
			}
		}
		if !slices.ContainsFunc(s.Nodes, func(other *cluster.Node) bool { return other != node && other.HasRoom(largest) }) {
			return false
		}
	}
	return true
}

// deleteTogether chooses as many of the nodes, from the first on, as have places for all their pods when these are placed
// together, and not in the order in which the nodes were found: that is how they will come back. It returns the others.
func (d *disruption) deleteTogether(nodes []*cluster.Node) []*cluster.Node {
	for n := len(nodes); n > 0; n = n * 7 / 8 {
		without := d.future.Without(nodes[:n]...)
		placed, fits := pack.Fit(without, without.Pending)
		if !fits || launched(without) || !d.roomStays(without) || !d.keepsMix(nodes[:n], nil) ||
			!d.savesAsScheduled(nodes[:n], without) {
			continue
		}
		d.future = without.Bind(placed)
		for _, node := range nodes[:n] {
			d.choose(command{nodes: []*cluster.Node{node}, reason: plan.Underutilized, why: whatFits(node) + " elsewhere"})
		}
		return nodes[n:]
	}
	return nodes
}

// savesAsScheduled reports whether enough is saved by nodes that go also where kube-scheduler puts their pods otherwise than the
// plan, and something is launched for those that find no place then. Without that a node would go again and again, and another
// one come each time (D-15). without is the cluster without the nodes.
func (d *disruption) savesAsScheduled(nodes []*cluster.Node, without *cluster.Snapshot) bool {
	p, cost := pack.AsScheduled(without, without.Pending), d.cost(nodes...)
	return len(p.Unplaced) == 0 && (len(p.Launches) == 0 || d.costOfLaunches(p.Launches) <= cost-d.minSaving(cost, len(nodes)))
}

// launched reports whether a node would be launched for pending pods of s, which fit on its nodes. Pods that are tied to others may
// have to wait for these: one that finds no place at first gets a node at once when it really waits.
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
