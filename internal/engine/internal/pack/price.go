package pack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file packs by price (P-22) what no constraint ties to anything: lots of equal pods that only need room. Package mix
// finds the cheapest mixes of them on the offerings that could be launched.

// lot is pods that ask for the same and may stand in the same places; they may differ in what does not matter here.
type lot struct {
	info *shape         // of the first
	pods []*cluster.Pod // not placed yet
	// custom are the demands on labels that the provider does not decide, as text: lots that differ in it may
	// contradict each other on one node.
	custom string
}

// packLots places the pods of plain shapes: on existing nodes, in the room that planned nodes have anyway, and then on
// new nodes by price. It returns the pods for which nothing was found.
func (s *solver) packLots(pods []*cluster.Pod) []*cluster.Pod {
	lots := s.lots(pods)
	for _, l := range lots {
		l.pods = s.fillBins(l)
	}
	for _, p := range s.pools {
		if p.Blocked == "" && !p.closed && p.Catalog != nil && (len(p.MinValues) == 0 || p.RelaxMinValues) {
			s.packReserved(p, lots)
			s.packSizes(p, lots)
		}
	}
	var rest []*cluster.Pod
	for _, l := range lots {
		rest = append(rest, l.pods...)
	}
	slices.SortStableFunc(rest, compare)
	return rest
}

// lots groups pods, which are in the order of compare, by what they ask for.
func (s *solver) lots(pods []*cluster.Pod) []*lot {
	var list []*lot
	byShape, byKey := map[*cluster.Shape]*lot{}, map[string]*lot{}
	for _, pod := range pods {
		l := byShape[pod.Shape]
		if l == nil {
			info := s.info(pod.Shape)
			key := s.alike(info)
			if l = byKey[key]; l == nil {
				l = &lot{info: info, custom: info.custom()}
				byKey[key] = l
				list = append(list, l)
			}
			byShape[pod.Shape] = l
		}
		l.pods = append(l.pods, pod)
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

// fillBins places pods of the lot on existing nodes, and on planned ones as far as the offering that they would be
// launched with has room, which costs nothing. It returns the pods that are left.
func (s *solver) fillBins(l *lot) []*cluster.Pod {
	left := l.pods
	for i := 0; i < len(s.existing) && len(left) > 0; i++ {
		for len(left) > 0 && s.tryExisting(i, left[:1], s.info(left[0].Shape)) == topology.Yes {
			left = left[1:]
		}
	}
	for i := 0; i < len(s.planned) && len(left) > 0; i++ {
		for len(left) > 0 && s.planned[i].hasSlack(l.info) &&
			s.tryPlanned(len(s.existing)+i, left[:1], s.info(left[0].Shape)) == topology.Yes {
			left = left[1:]
		}
	}
	return left
}

// hasSlack reports whether the cheapest offering that a planned node would be launched with has room for one more pod.
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
	price int64  // micro-dollars per hour, with what a node costs beside it
	takes []bool // by lot: node selection allows it there
}

// packPool launches nodes of one pool for the lots, until none of them gets anything from it any more or a limit of the
// pool is reached. Lots with different demands on custom labels come one kind after the other, those without any last:
// they may use what room the nodes of the others have.
func (s *solver) packPool(p *pool, lots []*lot) {
	var kinds []string
	for _, l := range lots {
		if len(l.pods) > 0 && !slices.Contains(kinds, l.custom) {
			kinds = append(kinds, l.custom)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int { return strings.Compare(b, a) })
	for i, kind := range kinds {
		var group []*lot
		for _, l := range lots {
			if i > 0 && l.custom == kind {
				l.pods = s.fillBins(l)
			}
			if l.custom == kind && len(l.pods) > 0 {
				group = append(group, l)
			}
		}
		for _, found := range s.mixes(p, group) {
			for range found.Times {
				if !s.launchPattern(p, group, found) {
					return
				}
			}
		}
	}
}

// mixes finds nodes of the pool for the lots: as few as the pool's tolerance allows beside the cheapest ones (P-22), or when
// those are more than the pool may have, as few as it can.
func (s *solver) mixes(p *pool, lots []*lot) []mix.Pattern {
	candidates := s.candidates(p, lots)
	items := make([]mix.Item, len(lots))
	for i, l := range lots {
		items[i] = mix.Item{Amounts: l.info.Requests, Count: len(l.pods)}
	}
	bins, dearest := make([]mix.Bin, len(candidates)), int64(1)
	for i, c := range candidates {
		bins[i] = mix.Bin{Room: c.room, Price: c.price, Takes: c.takes}
		dearest = max(dearest, c.price)
	}
	way := mix.Beside(s.packing, int64(p.NodeOverheadPrice))
	cheapest := mix.Fewer(way, items, bins, float64(p.PriceTolerance)/100)
	if nodes, admitted := mix.Nodes(cheapest), p.admitted(); admitted < 0 || nodes <= admitted {
		return cheapest
	}
	for i := range bins {
		bins[i].Price += dearest * fewNodes
	}
	return s.packing(items, bins)
}

// fewNodes is how many times the dearest node a further node counts when nodes are short.
const fewNodes = 100

// candidates lists the offerings of the pool that some lot could run on, without those that another one makes useless:
// no dearer, no smaller, and open to the same lots.
func (s *solver) candidates(p *pool, lots []*lot) []candidate {
	var list []candidate
	seen, takes, key := map[string]bool{}, make([]bool, len(lots)), make([]byte, 0, len(lots)+32)
	open, any := p.openTo(lots)
	p.plain().AndTo(any)
	for i := range any.All() { // by price
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
		c.price = max(int64(p.Catalog.Offers[i].Price), 1) + int64(p.NodeOverheadPrice)
		if !slices.ContainsFunc(list, func(other candidate) bool { return other.covers(&c) }) {
			c.takes = slices.Clone(takes)
			list = append(list, c)
		}
	}
	return list
}

// openTo returns, by lot, the offers on which its pods could run, and those on which the pods of any could.
func (p *pool) openTo(lots []*lot) (byLot []catalog.Bits, any catalog.Bits) {
	any = catalog.NewBits(len(p.Catalog.Offers))
	for _, l := range lots {
		offers := catalog.NewBits(len(p.Catalog.Offers))
		if len(l.pods) > 0 {
			for _, w := range l.info.ways[p.index] {
				w.offers.OrTo(offers)
			}
			p.keepFitting(l.info.Requests, offers)
			offers.OrTo(any)
		}
		byLot = append(byLot, offers)
	}
	return byLot, any
}

// covers reports whether other, which is no cheaper than c, is of no use beside c.
func (c *candidate) covers(other *candidate) bool {
	for n, takes := range other.takes {
		if takes && !c.takes[n] {
			return false
		}
	}
	for i := range max(len(c.room), len(other.room)) {
		if c.room.At(i) < other.room.At(i) {
			return false
		}
	}
	return true
}

// launchPattern plans a node for the pattern. It reports false when a limit of the pool stopped it.
func (s *solver) launchPattern(p *pool, lots []*lot, found mix.Pattern) bool {
	if !p.mayGrow() {
		return false
	}
	b, index := s.addPlanned(p, p.plain())
	for n, count := range found.Counts {
		l := lots[n]
		for count > 0 {
			same := 1
			for same < count && l.pods[same].Shape == l.pods[0].Shape {
				same++
			}
			if s.tryPlanned(index, l.pods[:same], s.info(l.pods[0].Shape)) != topology.Yes {
				break
			}
			l.pods, count = l.pods[same:], count-same
		}
	}
	if len(b.pods) == 0 {
		s.dropPlanned()
		return false
	}
	s.opened(b)
	return true
}
