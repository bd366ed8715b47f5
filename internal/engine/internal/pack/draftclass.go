package pack

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// class stands for nodes that are the same for all constraints between pods, except those over the hostname: a zone,
// for instance.
type class struct {
	offers catalog.Bits
	labels requirement.Set  // what makes it the class
	bin    int              // of the tracker, while classes are given
	cost   float64          // of all pods there, if they could be split
	unit   []float64        // by resource: what one costs where it is cheapest
	asked  resources.Vector // by the pods that are given it
	load   float64          // of the pods that are given it, in nodes of the largest size
	apart  map[string]int   // pods of groups that keep apart
}

const (
	// maxClasses bounds the effort: where there are more, nothing is drafted.
	maxClasses = 16
	// sameCost is how many times dearer a class may be and still count as costing the same.
	sameCost = 1.01
	// sameShare is how much the costs that a pod adds to two classes may differ and still count as the same, as a
	// share of what the pod costs alone.
	sameShare = 0.01
)

// classify makes the classes. It reports false when constraints look at labels that the provider does not decide, or
// at too many values.
func (d *draft) classify() bool {
	byValues := map[string]*class{}
	for i := range d.pool.plain().All() {
		labels, key := requirement.NewSet(), ""
		for k, name := range d.topology.KeyNames() {
			if d.topology.Hostname(k) {
				continue
			}
			known := requirement.Key(name)
			value, single := d.pool.Catalog.Offers[i].Labels.Get(known).Single()
			if !d.pool.Catalog.Known(known) || !single {
				return false
			}
			labels, key = labels.With(requirement.OneOf(known, value)), key+value+"\x00"
		}
		c := byValues[key]
		if c == nil {
			c = &class{labels: labels, offers: catalog.NewBits(len(d.pool.Catalog.Offers)), apart: map[string]int{}}
			byValues[key] = c
			d.classes = append(d.classes, c)
		}
		c.offers.Add(i)
	}
	return len(d.classes) > 0 && len(d.classes) <= maxClasses
}

// assign gives each pod a class. It removes and returns the pods that no class takes. Pods bound by constraints come
// first, counted as if each class were one node. The others go where they even out the load.
func (d *draft) assign() []*cluster.Pod {
	d.price()
	for _, c := range d.classes {
		b := &outlook{pool: d.pool, offers: c.offers, custom: d.pool.custom}
		c.bin = d.topology.AddBin(b.labelValue, d.counts(b))
		d.topology.Occupy(c.bin)
	}
	var placed, waiting []*drafted
	for _, own := range d.pods {
		if own.bound {
			waiting = append(waiting, own)
		}
	}
	for {
		var still []*drafted
		for _, own := range waiting {
			if own.class = d.choose(own); own.class == nil {
				still = append(still, own)
				continue
			}
			d.give(own)
			d.topology.Place(own.info.Shape, own.class.bin, topology.Placed)
			placed = append(placed, own)
		}
		if len(still) == len(waiting) || len(still) == 0 {
			break
		}
		waiting = still
	}
	for _, own := range slices.Backward(placed) {
		d.topology.Retract(own.info.Shape, own.class.bin)
	}
	for _, c := range slices.Backward(d.classes) {
		d.topology.Vanish(c.bin)
		d.topology.DropBin()
	}
	for _, own := range d.pods {
		if !own.bound {
			if own.class = d.choose(own); own.class != nil {
				d.give(own)
				placed = append(placed, own)
			}
		}
	}
	var rest []*cluster.Pod
	for _, own := range d.pods {
		if own.class == nil {
			rest = append(rest, own.pod)
		}
	}
	d.pods = placed
	return rest
}

func (d *draft) give(own *drafted) {
	own.class.load += d.loadOf(own.info)
	own.class.asked = own.class.asked.Plus(own.info.Requests)
	for _, term := range own.info.apart {
		own.class.apart[term]++
	}
}

// choose returns the class for a pod: where its own spread constraints count fewest, then the first in the order of
// compare; nil when none takes it.
func (d *draft) choose(own *drafted) *class {
	var best *class
	var crowd int32
	for _, c := range d.classes {
		if own.bound && !d.allows(c, own.info) {
			continue
		}
		if _, some := d.within(c, own.info); !some {
			continue
		}
		n := int32(0)
		if own.bound {
			n = d.crowd(c, own.info)
		}
		if best == nil || cmp.Or(cmp.Compare(n, crowd), c.compare(best, own.info)) < 0 {
			best, crowd = c, n
		}
	}
	return best
}

// compare orders classes for a pod: the cheaper first, then the one to whose price it adds least, then the one with
// less load. So pods with much memory join pods with many cores, and nodes get both. Pods that keep apart need a node
// each, and there should be others to fill it. So they go where there are fewest of them for the load.
func (c *class) compare(other *class, info *shape) int {
	switch {
	case c.cost > other.cost*sameCost:
		return 1
	case other.cost > c.cost*sameCost:
		return -1
	}
	for _, term := range info.apart {
		return cmp.Compare(float64(c.apart[term]+1)*(other.load+1e-9), float64(other.apart[term]+1)*(c.load+1e-9))
	}
	own, others, same := c.adds(info), other.adds(info), float64(c.least(info.Requests)*sameShare)
	if own < others-same || own > others+same {
		return cmp.Compare(own, others)
	}
	return cmp.Compare(c.load, other.load)
}

// adds returns how much a pod adds to the least cost of the class: 0 where the room is needed for others anyway.
func (c *class) adds(info *shape) float64 {
	return c.least(c.asked.Plus(info.Requests)) - c.least(c.asked)
}

// least returns a lower bound on what these amounts cost there.
func (c *class) least(amounts resources.Vector) float64 {
	highest := 0.0
	for r, amount := range amounts {
		highest = max(highest, float64(c.unit[r]*float64(amount)))
	}
	return highest
}

func (d *draft) allows(c *class, info *shape) bool {
	return !slices.ContainsFunc(info.topology.Keys, func(key int) bool {
		return !d.topology.Hostname(key) &&
			d.topology.Allowed(info.topology, key, d.topology.DomainOf(key, c.bin)) != topology.Yes
	})
}

func (d *draft) crowd(c *class, info *shape) int32 {
	var sum int32
	for _, key := range info.topology.Keys {
		if !d.topology.Hostname(key) {
			sum += d.topology.Crowd(info.topology, key, d.topology.DomainOf(key, c.bin))
		}
	}
	return sum
}

// price computes for each class what a unit of each resource costs where it is cheapest, and what all pods would cost
// if they could be split.
func (d *draft) price() {
	var sum resources.Vector
	for _, own := range d.pods {
		sum = sum.Plus(own.info.Requests)
	}
	for _, c := range d.classes {
		c.unit = make([]float64, len(sum))
		for r, amount := range sum {
			least := math.Inf(1)
			for i := range c.offers.All() {
				if room := d.pool.roomOf(i).At(r); room > 0 {
					least = min(least, float64(d.pool.Catalog.Offers[i].Price+d.pool.NodeOverheadPrice)/float64(room))
				}
			}
			if amount > 0 {
				if !math.IsInf(least, 1) {
					c.unit[r] = least
				}
				c.cost = max(c.cost, float64(least*float64(amount)))
			}
		}
	}
}

// loadOf measures a pod by the largest node of the pool.
func (d *draft) loadOf(info *shape) float64 {
	if d.largest == nil {
		for i := range d.pool.plain().All() {
			d.largest = d.largest.Max(d.pool.roomOf(i))
		}
	}
	sum := 0.0
	for r, amount := range info.Requests {
		if most := d.largest.At(r); most > 0 {
			sum += float64(float64(amount) / float64(most))
		}
	}
	return sum
}
