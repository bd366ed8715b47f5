package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file tries out what is launched for a group of nodes. Pods that move come back one by one, not as a plan packed
// them. So the cheapest possible plan is seldom one that holds.

// maxMends bounds how often launches are added to a plan until its pods find their places by themselves. Each time far
// fewer pods are left than the time before.
const maxMends = 6

// replacement plans launches for the pods of a group, beside all that was chosen before, whose pods are on their way
// as well. Then all pods are placed once more with the planned nodes there. Those without a place get further
// launches, until none is left. It is false when that costs more than most, or when some pod finds no place.
func (d *disruption) replacement(group []*cluster.Node, most resources.Money) ([]plan.Launch, bool) {
	s := d.with(group, nil, newLast)
	p := pack.SketchThriftily(s, s.Pending)
	var launches []plan.Launch
	for range maxMends {
		launches = append(launches, p.Launches...)
		if d.costOfLaunches(launches) > most || len(p.Unplaced) > 0 {
			return nil, false
		}
		if s, p = d.tryOut(group, launches); len(p.Launches)+len(p.Unplaced) == 0 {
			return d.spare(group, launches, s.Bind(placements(s, p))), true
		}
	}
	return nil, false
}

// tryOut places what has to move when the group goes too and these launches come. The first try takes the first node
// that has room, new ones before all others; the second takes the node where least stays free. It returns the plan of
// the first try that needs more, or that of the second, and the snapshot of that plan.
func (d *disruption) tryOut(group []*cluster.Node, launches []plan.Launch) (s *cluster.Snapshot, p plan.Plan) {
	s = d.with(group, launches, newFirst)
	if p = pack.SketchByName(s, s.Pending); len(p.Launches)+len(p.Unplaced) > 0 {
		return s, p
	}
	s = d.with(group, launches, newLast)
	return s, pack.Sketch(s, s.Pending)
}

// enough reports whether these launches are enough for the group to go.
func (d *disruption) enough(group []*cluster.Node, launches []plan.Launch) bool {
	_, p := d.tryOut(group, launches)
	return len(p.Launches)+len(p.Unplaced) == 0
}

// with returns the cluster as it was at the beginning, without the chosen nodes and the group, and with the launches
// for both.
func (d *disruption) with(group []*cluster.Node, launches []plan.Launch, names naming) *cluster.Snapshot {
	gone := d.gone()
	for _, node := range group {
		gone = append(gone, d.base.Node(node))
	}
	all := append(d.launched(), launches...)
	return d.base.Without(gone...).With(virtuals(d.base, all, names)).TakeSlots(slotsOf(all))
}

// launched lists the launches that were chosen.
func (d *disruption) launched() []plan.Launch {
	var list []plan.Launch
	for _, c := range d.chosen {
		list = append(list, c.launches...)
	}
	return list
}

// maxSpares bounds how many launched nodes are checked in vain for whether they are needed.
const maxSpares = 8

// spare returns the launches of a group, without those whose pods fit elsewhere once all pods have places: the next
// round would remove these nodes again (D-15). s is the cluster with everything in its place, the new nodes last.
func (d *disruption) spare(group []*cluster.Node, launches []plan.Launch, s *cluster.Snapshot) []plan.Launch {
	before, numbers := len(d.launched()), map[string]int{}
	for i := range launches {
		numbers[newLast.of(before+i)] = i
	}
	var nodes []*cluster.Node
	for _, node := range s.Nodes {
		if _, launched := numbers[node.Name]; launched {
			nodes = append(nodes, node)
		}
	}
	spared, vain := make([]bool, len(launches)), 0
	for _, candidate := range d.byWaste(nodes) {
		node := s.Node(candidate)
		if vain == maxSpares || !mightFit(s, node) {
			continue
		}
		without := s.Without(node)
		placed, fits := pack.Fit(without, without.Pending)
		if !fits {
			vain++
			continue
		}
		s, spared[numbers[node.Name]] = without.Bind(placed), true
	}
	var kept []plan.Launch
	for i, l := range launches {
		if !spared[i] {
			kept = append(kept, l)
		}
	}
	if len(kept) < len(launches) && d.enough(group, kept) {
		return kept
	}
	return launches
}

// keepSame leaves nodes out of a group that would be launched again just as they are, if the rest can be replaced
// without them. That saves as much, and moves fewer pods.
func (d *disruption) keepSame(group []*cluster.Node, launches []plan.Launch) ([]*cluster.Node, []plan.Launch) {
	going, coming := slices.Clone(group), []plan.Launch(nil)
	for _, l := range launches {
		if at := slices.IndexFunc(going, func(n *cluster.Node) bool { return isSame(n, l) }); at >= 0 {
			going = slices.Delete(going, at, at+1)
		} else {
			coming = append(coming, l)
		}
	}
	if len(going) == len(group) || len(going) == 0 || !d.enough(going, coming) {
		return group, launches
	}
	return going, coming
}

// isSame reports whether a node is what a launch brings.
func isSame(n *cluster.Node, l plan.Launch) bool {
	return n.Pool == l.Pool && n.InstanceType == l.Cheapest.Type && capacityType(n) == l.Cheapest.CapacityType &&
		n.Labels[string(catalog.LabelZone)] == l.Cheapest.Zone
}
