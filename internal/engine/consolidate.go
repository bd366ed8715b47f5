package engine

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Consolidate plans to make the cluster cheaper within the budgets (D-04, D-05): nodes whose pods fit on others go; then
// any number of nodes is replaced by any cheaper set of new ones. Of what pods there are, all keep a place. What is chosen
// in one round stands together: no two nodes count on the same room.
//
// Launches carry the claims that they replace; a node with such launches may go once they are initialized. The work of a
// round is bounded, and the next one goes on with what is left: nothing is thrown away for lack of time.
func Consolidate(s *cluster.Snapshot, terms Terms) plan.Plan {
	mayGo := wasteful(s, terms)
	if !slices.ContainsFunc(s.Nodes, mayGo) { // then pods that wait need not be planned to know that nothing goes
		return plan.Plan{BasedOn: s.Version, Names: s.Names}
	}
	d := begin(s, terms)
	rest := d.deleteAll(d.candidates(mayGo))
	d.replaceGroups(rest)
	d.dropUntilTogether(holds)
	return d.done(s)
}

// Holds reports whether a node that was chosen before may still go (D-09): everything on it and on the others that go with it
// has a place elsewhere. Where that takes a launch, because something else has come in the meantime, it must cost less than
// the nodes do, or the reason be another than their price.
func Holds(s *cluster.Snapshot, reason plan.DisruptionReason, nodes ...*cluster.Node) bool {
	d := beginFrom(s, s, Terms{})
	without := d.future.Without(nodes...)
	if _, fits := pack.Fit(without, without.Pending); fits {
		return true
	}
	p := pack.Solve(without, without.Pending)
	if reason == plan.Underutilized {
		price := resources.Money(0)
		for _, node := range nodes {
			price += node.Price
		}
		return len(p.Unplaced) == 0 && p.Price() < price
	}
	return len(p.Unplaced) == 0
}

// Room reports whether all that has to move from the nodes, when they go together, has a place on nodes that are there
// already: nothing would have to be launched.
func Room(s *cluster.Snapshot, nodes ...*cluster.Node) bool {
	without := beginFrom(s, s, Terms{}).future.Without(nodes...)
	_, fits := pack.Fit(without, without.Pending)
	return fits
}

// maxTries bounds how many nodes are looked at in vain in one round.
const maxTries = 300

// deleteAll chooses the nodes whose pods fit on others, and returns the candidates that it did not choose.
func (d *disruption) deleteAll(candidates []*cluster.Node) []*cluster.Node {
	base, rest, chosen, vain := d.future, []*cluster.Node(nil), []*cluster.Node(nil), 0
	count := map[string]int{}
	for _, candidate := range candidates {
		node := d.now(candidate)
		if count[node.Pool] == d.left(node.Pool, plan.Underutilized) {
			continue
		}
		if vain == maxTries {
			rest = append(rest, candidate)
			continue
		}
		without := d.future.Without(node)
		placed, fits := pack.Fit(without, without.Pending)
		if !fits || !d.worthIt([]*cluster.Node{node}, node.Price) {
			rest = append(rest, candidate)
			vain++
			continue
		}
		d.future = without.Bind(placed)
		count[node.Pool]++
		chosen = append(chosen, candidate)
	}
	d.future = base
	return append(rest, d.deleteTogether(chosen)...)
}

// deleteTogether chooses as many of the nodes, from the first on, as have places for all their pods when these are placed
// together, and not in the order in which the nodes were found: that is how they will come back. It returns the others.
func (d *disruption) deleteTogether(nodes []*cluster.Node) []*cluster.Node {
	for n := len(nodes); n > 0; n = min(n-1, n*7/8) {
		without := d.future.Without(nodes[:n]...)
		placed, fits := pack.Fit(without, without.Pending)
		if !fits {
			continue
		}
		d.future = without.Bind(placed)
		for _, node := range nodes[:n] {
			_, pods := DisruptionCost(node)
			d.choose(command{nodes: []*cluster.Node{node}, reason: plan.Underutilized, why: podsText(pods) + " elsewhere"})
		}
		return nodes[n:]
	}
	return nodes
}

// now returns the node as it is in the future: with the pods that come onto it.
func (d *disruption) now(node *cluster.Node) *cluster.Node {
	if current := d.future.Node(node); current != nil {
		return current
	}
	return node
}

func podsText(n int) string {
	if n == 1 {
		return "its pod fits"
	}
	return fmt.Sprintf("its %d pods fit", n)
}

// replaceGroups replaces candidates, the most wasteful ones together at first, then smaller groups, by cheaper new nodes.
func (d *disruption) replaceGroups(candidates []*cluster.Node) {
	candidates = slices.DeleteFunc(candidates, func(n *cluster.Node) bool { return !d.mightSave(n) })
	tries := 0
	for size := len(d.within(candidates)); size > 0; size /= 2 {
		for from := 0; from < len(candidates) && tries < maxTries; {
			group := d.within(candidates[from:min(from+size, len(candidates))])
			if len(group) == 0 {
				from += size
				continue
			}
			tries++
			if d.replace(group) {
				candidates = slices.DeleteFunc(candidates, func(n *cluster.Node) bool {
					return slices.ContainsFunc(group, func(gone *cluster.Node) bool { return gone.Claim == n.Claim })
				})
				continue
			}
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

// mightSave is a cheap look before a node is planned anew: its pods' resources, bought where each is cheapest, must cost
// less than the node does.
func (d *disruption) mightSave(node *cluster.Node) bool {
	node = d.now(node)
	var needs resources.Vector
	for _, pod := range node.Pods {
		if !pod.Fixed {
			needs = needs.Plus(pod.Shape.Requests)
		}
	}
	for _, pool := range d.future.Pools {
		if pool.Blocked == "" && pool.Catalog != nil && d.floor(pool).Of(needs) < node.Price {
			return true
		}
	}
	return false
}

// floor returns the lowest prices of resources in a pool. They are found once.
func (d *disruption) floor(pool *cluster.Pool) catalog.Floor {
	known, found := d.floors[pool.Name]
	if !found {
		offers := pool.Catalog.Available.Clone()
		for r := range pool.Requirements.All() {
			if pool.Catalog.Known(r.Key()) {
				pool.Catalog.Compatible(r).AndTo(offers)
			}
		}
		known = pool.Catalog.Floor(offers)
		d.floors[pool.Name] = known
	}
	return known
}

// replace chooses the group if what its pods need can be launched for less; false when not.
func (d *disruption) replace(group []*cluster.Node) bool {
	without := d.future.Without(group...)
	p := pack.Solve(without, without.Pending)
	if len(p.Unplaced) > 0 {
		return false
	}
	before := resources.Money(0)
	for _, node := range group {
		before += node.Price
	}
	after := p.Price()
	if before-after < max(d.terms.MinSaving, 1) || !d.worthIt(group, before-after) {
		return false
	}
	if !holds(without, p.Launches) || d.feeds(p.Launches) {
		return false
	}
	for i := range p.Launches {
		if !d.onlyCheaper(&p.Launches[i], group, before, after) {
			return false
		}
	}
	d.adopt(without, group, p, plan.Underutilized, fmt.Sprintf("%s/h instead of %s/h", after, before))
	return true
}

// adopt chooses a group with the launches that replace it.
func (d *disruption) adopt(without *cluster.Snapshot, group []*cluster.Node, p plan.Plan, reason plan.DisruptionReason, why string) {
	d.future = without.Bind(placements(without, p)).Launched(slotsOf(p.Launches))
	for i := range p.Launches {
		p.Launches[i].Replaces, p.Launches[i].Together = names(group), len(p.Launches)
		p.Launches[i].Pods = nil // they run elsewhere still: nobody is promised anything
	}
	d.choose(command{nodes: group, launches: p.Launches, reason: reason, why: why})
}

// slotsOf lists, by pool, the slots that launches take; plan.NoSlot for one without.
func slotsOf(launches []plan.Launch) map[string][]int {
	taken := map[string][]int{}
	for _, l := range launches {
		taken[l.Pool] = append(taken[l.Pool], l.Slot)
	}
	return taken
}

// enoughTypes is how many cheaper types a spot node must have to move to, so that it does not chase the market (D-05).
const enoughTypes = 15

// onlyCheaper narrows a launch to instance types that keep the whole command cheaper, whichever of them the provider
// takes. false when the rules for spot and reserved capacity do not allow it (D-05).
func (d *disruption) onlyCheaper(l *plan.Launch, group []*cluster.Node, before, after resources.Money) bool {
	if l.Cheapest.CapacityType == catalog.Reserved {
		return true
	}
	pool := d.future.Pool(l.Pool)
	spot := l.Cheapest.CapacityType == catalog.Spot
	if spot {
		l.Requirements = l.Requirements.With(requirement.OneOf(catalog.LabelCapacityType, catalog.Spot))
		l.CapacityTypes = []string{catalog.Spot}
	}
	// What the command may cost more than planned is shared by price.
	most := resources.Money(float64(l.Cheapest.Price) * float64(before-1) / float64(max(after, 1)))
	allowed := pool.Catalog.Available.Clone()
	for r := range l.Requirements.All() {
		if pool.Catalog.Known(r.Key()) {
			pool.Catalog.Compatible(r).AndTo(allowed)
		}
	}
	var kept []string
	for _, name := range l.Types {
		offers := pool.Catalog.OfType(name).And(allowed)
		if first := offers.First(); first >= 0 && pool.Catalog.Offers[first].Price <= most {
			kept = append(kept, name)
		}
	}
	l.Types = kept
	if spot && allSpot(group) && (!d.terms.SpotToSpot || len(group) == 1 && len(kept) < enoughTypes) {
		return false
	}
	return len(kept) > 0
}

func allSpot(group []*cluster.Node) bool {
	for _, node := range group {
		if capacityType(node) != catalog.Spot {
			return false
		}
	}
	return true
}

// worthIt is the rule of Balanced pools (D-03): the saving's share of what the pools cost must be at least half of the share
// of all their pods, by the cost of disrupting them, that has to move. In other pools every saving is worth it.
func (d *disruption) worthIt(group []*cluster.Node, saving resources.Money) bool {
	pools, balanced := map[string]bool{}, false
	cost := int64(0)
	for _, node := range group {
		pools[node.Pool] = true
		balanced = balanced || d.future.Pool(node.Pool).Consolidates == cluster.Balanced
		own, _ := DisruptionCost(node)
		cost += max(0, own)
	}
	if !balanced {
		return true
	}
	price, all := 0.0, 0.0
	for _, node := range d.future.Nodes {
		if pools[node.Pool] && node.Price != resources.Unpriced {
			own, _ := DisruptionCost(node)
			price, all = price+float64(node.Price), all+float64(max(0, own))
		}
	}
	if price == 0 || all == 0 {
		return true
	}
	const threshold = 0.5
	return float64(saving)/price >= threshold*float64(cost)/all
}
