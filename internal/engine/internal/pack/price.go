package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file packs pods by price that no constraint ties (P-22): groups of equal pods that only need room. Package mix
// finds the cheapest mixes of them on the offerings that could be launched.

// group holds pods that ask for the same and may go to the same places. They may differ in what does not matter here.
type group struct {
	info *shape         // of the first
	pods []*cluster.Pod // not placed yet
	// custom are the demands on labels that the provider does not decide, as text: groups that differ in it may
	// contradict each other on one node.
	custom string
}

// packGroups places the pods of plain shapes: on existing nodes, in the room that planned nodes have anyway, and
// then on new nodes by price. It returns the pods for which nothing was found.
func (s *solver) packGroups(pods []*cluster.Pod) []*cluster.Pod {
	groups := s.groups(pods)
	if s.hosts.nodes > 0 { // they go into the room that there is: first those that can use less of it
		slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.info.offers(), b.info.offers()) })
	}
	for _, g := range groups {
		g.pods = s.fillBins(g)
	}
	for i, p := range s.pools {
		switch {
		case !p.launches():
		case p.mixable():
			s.packReserved(p, groups)
			s.packCommitted(p, groups)
			s.packSizes(p, groups)
		case slices.ContainsFunc(s.pools[i+1:], (*pool).launches):
			s.packEach(p, groups)
		}
	}
	var rest []*cluster.Pod
	for _, g := range groups {
		rest = append(rest, g.pods...)
	}
	slices.SortStableFunc(rest, compare)
	return rest
}

// mixable reports whether nodes of the pool can be chosen by price: a claim need not keep a choice of types.
func (p *pool) mixable() bool { return !p.insists() }

// launches reports whether the pool launches nodes for pods.
func (p *pool) launches() bool { return p.Blocked == "" && !p.closed && p.Catalog != nil }

// packEach places pods one by one where nodes of the pool cannot be chosen by price. So they do not pass it over for a
// later one (P-10).
func (s *solver) packEach(p *pool, groups []*group) {
	for _, g := range groups {
		for len(g.pods) > 0 {
			pod := g.pods[0]
			if !s.moved(pod, func(info *shape) bool {
				return s.placeInBins(pod, info) || len(info.ways[p.index]) > 0 && p.mayGrow() && s.openIn(p, pod, info)
			}) {
				break
			}
			g.pods = g.pods[1:]
		}
	}
}

// groups puts pods together by what they ask for. The pods are in the order of compare.
func (s *solver) groups(pods []*cluster.Pod) []*group {
	var list []*group
	byShape, byKey := map[*cluster.Shape]*group{}, map[string]*group{}
	for _, pod := range pods {
		g := byShape[pod.Shape]
		if g == nil {
			info := s.info(pod.Shape)
			key := s.alike(info)
			if g = byKey[key]; g == nil {
				g = &group{info: info, custom: info.custom()}
				byKey[key] = g
				list = append(list, g)
			}
			byShape[pod.Shape] = g
		}
		g.pods = append(g.pods, pod)
	}
	return list
}

// custom returns the shape's demands on labels that the provider does not decide, as text.
func (info *shape) custom() string {
	var labels []byte
	for pool, ways := range info.ways {
		for _, w := range ways {
			if w.custom.Len() > 0 {
				labels = fmt.Appendf(labels, "%d %s;", pool, w.custom)
			}
		}
	}
	return string(labels)
}

// fillBins places pods of the group on existing nodes, and on planned ones whose cheapest offering has room anyway,
// which costs nothing. It returns the pods that are left.
func (s *solver) fillBins(g *group) []*cluster.Pod {
	left := g.pods
	if len(left) == 0 {
		return nil
	}
	for _, i := range s.inOrder(g.info) {
		for len(left) > 0 && s.tryExisting(i, s.ask(left[:1], s.info(left[0].Shape))) == topology.Yes {
			left = left[1:]
		}
	}
	for i := 0; i < len(s.planned) && len(left) > 0; i++ {
		for len(left) > 0 && s.planned[i].hasSlack(g.info) &&
			s.tryPlanned(len(s.existing)+i, s.ask(left[:1], s.info(left[0].Shape))) == topology.Yes {
			left = left[1:]
		}
	}
	return left
}

// hasSlack reports whether the cheapest offering that a planned node would be launched with has room for one more
// pod.
func (b *planned) hasSlack(info *shape) bool {
	first := b.offers.First()
	for _, w := range info.ways[b.pool.index] {
		if w.offers.Has(first) {
			return b.used.Plus(info.Requests).Fits(b.pool.roomOf(first))
		}
	}
	return false
}

// candidate is an offering that could be launched, as a representative of all that are no better.
type candidate struct {
	offer int
	room  resources.Vector
	price int64  // micro-dollars per hour, with the pool's overhead price of a node
	takes []bool // by group: node selection allows it there
}

// packPool launches nodes of one pool for the groups, until no group gets anything from it any more or a limit is
// reached. If it is a resource limit, smaller nodes may fit into the rest, so that is mixed anew. Groups with
// different demands on custom labels come one kind after the other. Those without any come last: they may use what
// room the nodes of the others have.
func (s *solver) packPool(p *pool, groups []*group) { s.packAmong(p, p.plain(), groups) }

// packAmong is packPool for nodes with some offers.
func (s *solver) packAmong(p *pool, among catalog.Bits, groups []*group) {
	var kinds []string
	for _, g := range groups {
		if len(g.pods) > 0 && !slices.Contains(kinds, g.custom) {
			kinds = append(kinds, g.custom)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int { return strings.Compare(b, a) })
	for i, kind := range kinds {
		var same []*group
		for _, g := range groups {
			if i > 0 && g.custom == kind {
				g.pods = s.fillBins(g)
			}
			if g.custom == kind {
				same = append(same, g)
			}
		}
		for {
			launched, stopped := s.packMix(p, among, same)
			if stopped && !(p.Limits.HasResources() && p.mayGrow()) {
				return
			}
			if launched == 0 || !stopped {
				break
			}
		}
	}
}

// packMix launches the nodes of one mix. It returns how many, and whether something stopped it.
func (s *solver) packMix(p *pool, among catalog.Bits, groups []*group) (launched int, stopped bool) {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return len(g.pods) == 0 })
	for _, found := range s.mixes(p, among, groups) {
		for range found.Times {
			if !s.launchPattern(p, among, groups, found) {
				return launched, true
			}
			launched++
		}
	}
	return launched, false
}

// mixes finds nodes of the pool for the groups: as few as the pool's price tolerance allows (P-22). If these are more
// than the pool may have, it finds as few as it can.
func (s *solver) mixes(p *pool, among catalog.Bits, groups []*group) []mix.Pattern {
	candidates := s.candidates(p, among, groups, (*candidate).covers)
	items := make([]mix.Item, len(groups))
	for i, g := range groups {
		items[i] = mix.Item{Amounts: g.info.Requests, Count: len(g.pods)}
	}
	bins, dearest := make([]mix.Bin, len(candidates)), int64(1)
	for i, c := range candidates {
		bins[i] = mix.Bin{Room: c.room, Price: c.price, Takes: c.takes}
		dearest = max(dearest, c.price)
	}
	way := mix.Beside(s.packing, int64(p.NodeOverheadPrice))
	cheapest := mix.Fewer(way, items, bins, float64(p.PriceTolerance)/100)
	if nodes, admitted := mix.Nodes(cheapest), p.admitted(); admitted < 0 || nodes <= admitted {
		// small ones fill up what is left
		if first := among.First(); first >= 0 && p.Catalog.Offers[first].Commitment != 0 {
			slices.SortStableFunc(cheapest,
				func(a, b mix.Pattern) int { return cmp.Compare(bins[b.Bin].Price, bins[a.Bin].Price) })
		}
		return cheapest
	}
	for i := range bins {
		bins[i].Price += dearest * fewNodes
	}
	return s.packing(items, bins)
}

// fewNodes is what each node costs extra when nodes are short, as a multiple of the dearest node's price.
const fewNodes = 100

// candidates lists the offerings in among that some group could run on, by price. It leaves out those that resource
// limits do not admit now, and those that another one, which is no dearer, makes useless.
func (s *solver) candidates(p *pool, among catalog.Bits, groups []*group,
	useless func(cheaper, own *candidate) bool) []candidate {
	var list []candidate
	seen, takes, key := map[string]bool{}, make([]bool, len(groups)), make([]byte, 0, len(groups)+32)
	open, any := p.openTo(groups)
	among.AndTo(any)
	limited := p.Limits.HasResources()
	for i := range any.All() { // by price
		if limited && !p.Limits.Room(p.used, p.capacityOf(i)) {
			continue
		}
		room := p.roomOf(i)
		key = key[:0]
		for n, offers := range open {
			bit := byte('0')
			if takes[n] = offers.Has(i); takes[n] {
				bit = '1'
			}
			key = append(key, bit)
		}
		for _, amount := range room {
			key = append(key, ' ')
			for ; amount > 0; amount /= 64 {
				key = append(key, byte('0'+amount%64))
			}
		}
		if seen[string(key)] {
			continue // the same at no higher price comes first
		}
		seen[string(key)] = true
		c := candidate{offer: i, room: room, takes: takes}
		c.price = max(int64(p.Catalog.Offers[i].Sold()), 1) + int64(p.NodeOverheadPrice)
		if !slices.ContainsFunc(list, func(other candidate) bool { return useless(&other, &c) }) {
			c.takes = slices.Clone(takes)
			list = append(list, c)
		}
	}
	return list
}

// openTo returns, by group, the offers on which its pods could run, and those on which the pods of any could.
func (p *pool) openTo(groups []*group) (byGroup []catalog.Bits, any catalog.Bits) {
	any = catalog.NewBits(len(p.Catalog.Offers))
	for _, g := range groups {
		offers := catalog.NewBits(len(p.Catalog.Offers))
		if len(g.pods) > 0 {
			for _, w := range g.info.ways[p.index] {
				w.offers.OrTo(offers)
			}
			p.keepFitting(nil, g.info.Requests, offers)
			offers.OrTo(any)
		}
		byGroup = append(byGroup, offers)
	}
	return byGroup, any
}

// covers reports whether other, which is no cheaper than c, is of no use beside c.
func (c *candidate) covers(other *candidate) bool {
	for i := range max(len(c.room), len(other.room)) {
		if c.room.At(i) < other.room.At(i) {
			return false
		}
	}
	for n, takes := range other.takes {
		if takes && !c.takes[n] {
			return false
		}
	}
	return true
}

// launchPattern plans a node for the pattern. It reports false when a limit stopped it, or no pod was placed.
func (s *solver) launchPattern(p *pool, among catalog.Bits, groups []*group, found mix.Pattern) bool {
	if !p.mayGrow() {
		return false
	}
	b, index := s.addPlanned(p, among)
	for n, count := range found.Counts {
		g := groups[n]
		for count > 0 {
			same := 1
			for same < count && g.pods[same].Shape == g.pods[0].Shape {
				same++
			}
			if s.tryPlanned(index, s.ask(g.pods[:same], s.info(g.pods[0].Shape))) != topology.Yes {
				break
			}
			g.pods, count = g.pods[same:], count-same
		}
	}
	if len(b.pods) == 0 {
		s.dropPlanned()
		return false
	}
	s.opened(b)
	return true
}
