package pack

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file packs by price (P-22) what no constraint ties to anything: lots of equal pods that only need room. For each
// offering that could be launched it fills a node with a mix of lots, compares what the mix is worth with what the
// offering costs, launches the best pattern as often as the lots last, and goes on with what is left. What a pod is
// worth are the prices of its resources, as the cheapest mix of offerings would sell them (see worth.go).

// lot is pods of one shape that may stand anywhere their node selection allows.
type lot struct {
	info *shape
	pods []*cluster.Pod // not placed yet
	left int            // how many of pods no pattern has taken yet
	// placeable is false once no candidate takes a pod of the lot any more.
	placeable bool
	value     float64 // what a pod of the lot is worth, in micro-dollars: its requests at the worth of the resources
}

// plain reports whether a shape can be packed by the lot: nothing counts it, it counts nothing, and it takes no port.
func (info *shape) plain() bool { return len(info.rules.Keys) == 0 && len(info.HostPorts) == 0 }

// packLots places the pods of plain shapes: on existing nodes, in the room that planned nodes have anyway, and then on
// new nodes by price. It returns the pods for which nothing was found.
func (s *solver) packLots(pods []*cluster.Pod) []*cluster.Pod {
	lots := s.lots(pods)
	for _, l := range lots {
		l.pods = s.fillBins(l)
	}
	for _, p := range s.pools {
		if p.Blocked == "" && p.Catalog != nil && (len(p.MinValues) == 0 || p.RelaxMinValues) {
			s.packPool(p, lots)
		}
	}
	var rest []*cluster.Pod
	for _, l := range lots {
		rest = append(rest, l.pods...)
	}
	slices.SortStableFunc(rest, compare)
	return rest
}

// lots groups pods, which are in the order of compare, by shape.
func (s *solver) lots(pods []*cluster.Pod) []*lot {
	var list []*lot
	for _, pod := range pods {
		if n := len(list); n == 0 || list[n-1].info.Shape != pod.Shape {
			list = append(list, &lot{info: s.info(pod.Shape)})
		}
		last := list[len(list)-1]
		last.pods = append(last.pods, pod)
	}
	return list
}

// fillBins places pods of the lot on existing nodes, and on planned ones as far as the offering that they would be
// launched with has room, which costs nothing. It returns the pods that are left.
func (s *solver) fillBins(l *lot) []*cluster.Pod {
	left := l.pods
	for number := 0; number < len(s.bins) && len(left) > 0; number++ {
		b := s.bins[number]
		for len(left) > 0 {
			if b.node == nil && !b.hasSlack(l.info) {
				break
			}
			if s.try(number, left[:1], l.info) != topology.Yes {
				break
			}
			left = left[1:]
		}
	}
	return left
}

// hasSlack reports whether the cheapest offering that a planned node would be launched with has room for one more pod.
func (b *bin) hasSlack(info *shape) bool {
	first := b.offers.First()
	for _, w := range info.ways[b.pool.number] {
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
	price float64
	takes []bool  // by lot: node selection allows it there
	ratio float64 // worth for its price of the best pattern found so far; falls as lots run out
}

// pattern is a mix of lots on one node.
type pattern struct {
	counts []int // by lot
	used   resources.Vector
	price  float64 // of the candidate that it was made for
	ratio  float64
}

// packPool launches nodes of one pool for the lots, until none of them gets anything from it any more or a limit of the
// pool is reached.
func (s *solver) packPool(p *pool, lots []*lot) {
	candidates := s.candidates(p, lots)
	if len(candidates) == 0 {
		return
	}
	worth := worthOf(candidates, lots)
	for _, l := range lots {
		l.value, l.placeable = 0, true
		for r, amount := range l.info.Requests {
			l.value += float64(float64(amount) * worth[r])
		}
	}
	few := s.choose(p, candidates, lots, worth, fewNodes)
	for _, other := range [][]pattern{s.choose(p, candidates, lots, worth, fewDollars), s.chooseLargest(p, candidates, lots, worth)} {
		if total(other) < total(few)*(1-worthMoreNodes) {
			few = other
		}
	}
	for _, node := range few {
		if !s.launchPattern(p, lots, node) {
			return
		}
	}
}

// chooseLargest finds nodes for the largest pods first, each with the mix of others that makes it worth most: small pods
// fill up what large ones leave, instead of being gone when the large ones come.
func (s *solver) chooseLargest(p *pool, candidates []candidate, lots []*lot, worth []float64) []pattern {
	for _, l := range lots {
		l.left = len(l.pods)
	}
	for i := range candidates {
		candidates[i].ratio = candidates[i].most(worth)
	}
	byRatio := make([]*candidate, len(candidates))
	for i := range candidates {
		byRatio[i] = &candidates[i]
	}
	slices.SortStableFunc(byRatio, func(a, b *candidate) int { return cmp.Compare(b.ratio, a.ratio) })
	var nodes []pattern
	for {
		seed := -1
		for n, l := range lots {
			if l.left > 0 && l.placeable && (seed < 0 || l.value > lots[seed].value) {
				seed = n
			}
		}
		if seed < 0 {
			return s.mergeTail(nodes, candidates, lots)
		}
		var best pattern
		for _, c := range byRatio {
			if c.ratio <= best.ratio {
				break // not even a full node of it would be worth more
			}
			if c.takes[seed] {
				if found := s.fill(p, c, lots, worth, seed); found.ratio > best.ratio {
					best = found
				}
			}
		}
		if best.ratio <= 0 {
			lots[seed].placeable = false
			continue
		}
		for range best.take(lots) {
			nodes = append(nodes, best)
		}
	}
}

// most returns what a node of the candidate, filled to the brim, is worth for its price.
func (c *candidate) most(worth []float64) float64 {
	sum := 0.0
	for r, room := range c.room {
		sum += float64(float64(max(room, 0)) * worth[r])
	}
	return sum / c.price
}

// How far the ratios of two candidates may be apart and still count as equal: then the larger node wins. A wide margin
// makes fewer nodes, a narrow one takes the best price at every step; which is cheaper in the end is only known then.
const (
	fewNodes   = 0.05
	fewDollars = 0.001
	// worthMoreNodes is the part of the price that has to be saved to take the plan with more nodes.
	worthMoreNodes = 0.005
)

func total(nodes []pattern) float64 {
	sum := 0.0
	for _, node := range nodes {
		sum += node.price
	}
	return sum
}

// choose finds nodes for the lots, the one that is worth most for its price first.
func (s *solver) choose(p *pool, candidates []candidate, lots []*lot, worth []float64, margin float64) []pattern {
	for _, l := range lots {
		l.left = len(l.pods)
	}
	for i := range candidates {
		candidates[i].ratio = s.fill(p, &candidates[i], lots, worth, noSeed).ratio
	}
	var nodes []pattern
	for {
		best, found := s.best(p, candidates, lots, worth, margin)
		if !found {
			return s.mergeTail(nodes, candidates, lots)
		}
		for range best.take(lots) {
			nodes = append(nodes, best)
		}
	}
}

// take removes the pattern from the lots as often as they last, and returns how often that is.
func (found pattern) take(lots []*lot) int {
	times := 1 << 30
	for n, count := range found.counts {
		if count > 0 {
			times = min(times, lots[n].left/count)
		}
	}
	for n, count := range found.counts {
		lots[n].left -= count * times
	}
	return times
}

// best returns the pattern that is worth most for its price. Ratios only fall as lots run out, so the candidate whose
// old ratio is highest is looked at anew until one keeps the first place.
func (s *solver) best(p *pool, candidates []candidate, lots []*lot, worth []float64, margin float64) (pattern, bool) {
	for {
		first := 0
		for i := range candidates {
			if better(&candidates[i], &candidates[first], margin) {
				first = i
			}
		}
		if candidates[first].ratio <= 0 {
			return pattern{}, false
		}
		before := candidates[first].ratio
		found := s.fill(p, &candidates[first], lots, worth, noSeed)
		candidates[first].ratio = found.ratio
		if found.ratio >= before {
			return found, true
		}
		leads := true
		for i := range candidates {
			leads = leads && (i == first || !better(&candidates[i], &candidates[first], margin))
		}
		if leads && found.ratio > 0 {
			return found, true
		}
	}
}

func better(a, b *candidate, margin float64) bool {
	if a.ratio > b.ratio*(1+margin) || b.ratio > a.ratio*(1+margin) {
		return a.ratio > b.ratio
	}
	return a.price > b.price
}

// candidates lists the offerings of the pool that some lot could run on, without those that another one makes useless:
// no dearer, no smaller, and open to the same lots.
func (s *solver) candidates(p *pool, lots []*lot) []candidate {
	var list []candidate
	seen := map[string]bool{}
	for i := range p.offers.All() { // by price
		takes, any, key := make([]bool, len(lots)), false, make([]byte, 0, len(lots)+32)
		for n, l := range lots {
			takes[n] = len(l.pods) > 0 && l.info.wayFor(p, i) != nil && l.info.Requests.Fits(p.roomOf(i))
			any = any || takes[n]
			key = append(key, map[bool]byte{true: '1', false: '0'}[takes[n]])
		}
		if !any {
			continue
		}
		for _, amount := range p.roomOf(i) {
			key = append(key, ' ')
			for ; amount > 0; amount /= 64 {
				key = append(key, byte('0'+amount%64))
			}
		}
		if seen[string(key)] {
			continue // the same at no higher price comes first
		}
		seen[string(key)] = true
		c := candidate{offer: i, room: p.roomOf(i), price: max(float64(p.Catalog.Offers[i].Price), 1), takes: takes}
		if !slices.ContainsFunc(list, func(other candidate) bool { return other.covers(&c) }) {
			list = append(list, c)
		}
	}
	return list
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

// wayFor returns the first way of the shape that allows an offer, nil when none does.
func (info *shape) wayFor(p *pool, offer int) *way {
	for i := range info.ways[p.number] {
		if w := &info.ways[p.number][i]; w.offers.Has(offer) {
			return w
		}
	}
	return nil
}

// tail is how many of the last nodes are looked at for merging: the first ones are full, because patterns were repeated
// as often as the lots lasted.
const tail = 64

// mergeTail replaces pairs of the last nodes by one that costs no more: what was left in the end was packed in small
// pieces, each the best for itself.
func (s *solver) mergeTail(nodes []pattern, candidates []candidate, lots []*lot) []pattern {
	start := max(0, len(nodes)-tail)
	last := slices.Clone(nodes[start:])
	for i := 0; i < len(last); i++ {
		for j := i + 1; j < len(last); j++ {
			if merged, ok := merge(last[i], last[j], candidates, lots); ok {
				last[i] = merged
				last = slices.Delete(last, j, j+1)
				i, j = -1, len(last) // begin again: the merged node may take more
			}
		}
	}
	return append(nodes[:start:start], last...)
}

// merge returns both patterns on the cheapest candidate that holds them, if that costs no more than both.
func merge(a, b pattern, candidates []candidate, lots []*lot) (pattern, bool) {
	merged := pattern{counts: slices.Clone(a.counts), used: a.used.Plus(b.used), price: a.price + b.price}
	for n, count := range b.counts {
		merged.counts[n] += count
	}
	found := false
	for i := range candidates {
		if c := &candidates[i]; c.price <= merged.price && merged.used.Fits(c.room) && c.takesAll(merged.counts, lots) {
			merged.price, found = c.price, true
		}
	}
	return merged, found
}

// takesAll reports whether the candidate is open to all lots of a pattern, of which none may have a say in custom labels.
func (c *candidate) takesAll(counts []int, lots []*lot) bool {
	for n, count := range counts {
		if count > 0 && (!c.takes[n] || lots[n].info.custom()) {
			return false
		}
	}
	return true
}

// custom reports whether the shape asks for labels that the provider does not decide, in any pool.
func (info *shape) custom() bool {
	return slices.ContainsFunc(info.ways, func(ways []way) bool {
		return slices.ContainsFunc(ways, func(w way) bool { return w.custom.Len() > 0 })
	})
}

// launchPattern plans a node for the pattern. It reports false when a limit of the pool stopped it.
func (s *solver) launchPattern(p *pool, lots []*lot, found pattern) bool {
	if !p.mayGrow() {
		return false
	}
	b := &bin{pool: p, offers: p.offers, custom: p.custom, slot: plan.NoSlot, ports: slices.Clone(p.ports)}
	s.addPlanned(b)
	number := len(s.bins) - 1
	for n, count := range found.counts {
		if l := lots[n]; count > 0 && s.tryPlanned(number, l.pods[:count], l.info) == topology.Yes {
			l.pods = l.pods[count:]
		}
	}
	if len(b.pods) == 0 {
		s.dropPlanned()
		return false
	}
	s.opened(b)
	return true
}
