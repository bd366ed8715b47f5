package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file packs pods by price that constraints tie to each other (P-22, ADR 0030). If each went to the first node
// that takes it, large nodes would be full, and every pod that keeps apart would get a small, nearly empty one. So
// nodes are drafted before any pod is placed:
//
//   - Each pod is given a class. That is the label values of a node that constraints look at, without the hostname
//     (draftclass.go): a zone, where constraints are about zones. The tracker is asked as if each class were one node.
//   - The pods of a class are mixed by price like plain ones. Keeping apart by hostname is a further resource there: a
//     node has one of it, and each pod that keeps apart wants one (draftmix.go).
//   - Pods are then placed on the nodes of the mix, through the rules and in the order in which they got their
//     classes. A pod that a rule refuses goes onto another node with a place for such a pod, or into room that is left
//     over. Otherwise it is placed as if there were no draft.
//
// A draft is a proposal and knows the constraints only roughly. It never decides: the rules do. It counts when its
// plan is the cheaper one and no pod loses its place by it (orders.go, even.go).

// draft holds the nodes that are proposed.
type draft struct {
	*solver
	pool    *pool
	classes []*class
	pods    []*drafted       // in the order of placing
	largest resources.Vector // room of the pool's nodes, the most of each resource
	forced  int              // the least number of nodes: pods of the largest group that keeps apart
}

// drafted is a pod with what the draft has found for it.
type drafted struct {
	pod   *cluster.Pod
	info  *shape
	early bool // it is spread over hostnames, over more nodes than there are pods to count
	bound bool // constraints look at what class it is in
	class *class
	group *draftGroup
}

// target is a node of the draft.
type target struct {
	class *class
	bound bool // for pods that are bound to the class
	index int  // of its bin, once it is planned; else -1
}

// maxTries bounds on how many nodes of the draft a pod is tried, before the draft counts as having nothing for it.
const maxTries = 8

// runDraft places pods on the nodes of a draft and returns the others. The pods are in the order of compare.
func (s *solver) runDraft(order []*cluster.Pod) []*cluster.Pod {
	p := s.draftPool()
	if p == nil || s.someWait() {
		return order
	}
	order = slices.DeleteFunc(order, func(pod *cluster.Pod) bool {
		return s.keepPromise(pod) || s.placeOnExisting(pod)
	})
	d := &draft{solver: s, pool: p}
	rest := d.take(order)
	if !d.classify() {
		return order
	}
	rest = append(rest, d.assign()...)
	d.mix()
	rest = append(rest, d.place()...)
	slices.SortStableFunc(rest, compare)
	return rest
}

// someWait reports whether a pod to place still runs. Such a pod leaves its node only after others have their places,
// and a draft knows no order.
func (s *solver) someWait() bool {
	for _, l := range s.leavers {
		if !l.left {
			return true
		}
	}
	return false
}

// draftPool returns the first pool that launches; nil when a draft could not tell what that pool launches.
func (s *solver) draftPool() *pool {
	for _, p := range s.pools {
		if !p.launches() {
			continue
		}
		if p.reserved == nil && p.covered == nil && p.mixable() {
			return p
		}
		return nil
	}
	return nil
}

// placeOnExisting places a pod on an existing node. Pods spread over hostnames wait, as ever, until it is known how
// many nodes there are.
func (s *solver) placeOnExisting(pod *cluster.Pod) bool {
	if len(s.existing) == 0 || lateness(pod.Shape) == lastOfAll {
		return false
	}
	return s.placeInExisting(s.askOne(pod, s.info(pod.Shape)))
}

// take chooses the pods that the draft is for, and returns the others. These are pods that the pool does not take or
// comes later for, pods that come alone, and pods spread over hostnames of which a node may get several.
func (d *draft) take(order []*cluster.Pod) (rest []*cluster.Pod) {
	apart := map[string]int{}
	var hosts []*cluster.Shape
	counts := map[*cluster.Shape]int{}
	for _, pod := range order {
		for _, term := range d.info(pod.Shape).apart {
			apart[term]++
			d.forced = max(d.forced, apart[term])
		}
		if counts[pod.Shape]++; counts[pod.Shape] == 1 {
			hosts = append(hosts, pod.Shape)
		}
	}
	d.topology.SetFloors(d.topology.Rare(hosts, counts, d.forced))
	var early, later []*drafted
	for _, pod := range order {
		info := d.info(pod.Shape)
		own := &drafted{pod: pod, info: info, bound: d.looksAtClass(info)}
		own.early = lateness(pod.Shape) == lastOfAll && d.topology.Strict(info.topology)
		switch {
		case len(info.ways[d.pool.index]) == 0 || info.isLater(d.pool) || comesAlone(pod),
			lateness(pod.Shape) == lastOfAll && !own.early:
			rest = append(rest, pod)
		case own.early:
			early = append(early, own)
		default:
			later = append(later, own)
		}
	}
	d.pods = append(early, later...)
	return rest
}

// looksAtClass reports whether a constraint over anything but the hostname has to do with the shape.
func (s *solver) looksAtClass(info *shape) bool {
	return slices.ContainsFunc(info.topology.Keys, func(key int) bool { return !s.topology.Hostname(key) })
}

// place puts the pods onto the nodes of the draft and returns those for which it has no place.
func (d *draft) place() []*cluster.Pod {
	waiting := d.pods
	for {
		var still []*drafted
		for _, own := range waiting {
			if !d.placeEarly(own) && !d.placeOnTarget(own) {
				still = append(still, own)
			}
		}
		if len(still) == 0 || len(still) == len(waiting) {
			waiting = still
			break
		}
		waiting = still
	}
	var rest []*cluster.Pod
	for _, own := range waiting {
		if !d.placeInSlack(own) {
			rest = append(rest, own.pod)
		}
	}
	return rest
}

// placeEarly places a pod that is spread over hostnames on an existing node. The others were tried there before.
func (d *draft) placeEarly(own *drafted) bool {
	return own.early && len(d.existing) > 0 && d.placeInExisting(d.askOne(own.pod, own.info))
}

// placeOnTarget places a pod on a node of the draft that has a place for one of its group.
func (d *draft) placeOnTarget(own *drafted) bool {
	g, tries := own.group, 0
	for g.first < len(g.slots) && g.slots[g.first].left == 0 {
		g.first++
	}
	for i := g.first; i < len(g.slots) && tries < maxTries; i++ {
		slot := &g.slots[i]
		if slot.left == 0 {
			continue
		}
		tries++
		if d.placeOn(slot.target, own) {
			slot.left--
			return true
		}
	}
	return false
}

// placeOn places a pod on a node of the draft, which is planned with its first pod.
func (d *draft) placeOn(t *target, own *drafted) bool {
	if t.index >= 0 {
		return d.tryPlanned(t.index, d.askOne(own.pod, own.info)) == topology.Yes
	}
	if !d.pool.mayGrow() {
		return false
	}
	offers := d.pool.plain()
	if t.bound {
		offers = offers.And(t.class.offers)
	}
	b, index := d.addPlanned(d.pool, offers)
	if t.bound {
		b.labels = t.class.labels
	}
	if d.tryPlanned(index, d.askOne(own.pod, own.info)) != topology.Yes {
		d.dropPlanned()
		return false
	}
	d.opened(b)
	t.index = index
	return true
}

// placeInSlack places a pod on a planned node whose offering has room for it anyway.
func (d *draft) placeInSlack(own *drafted) bool {
	for i, b := range d.planned {
		if len(own.info.ways[b.pool.index]) > 0 && b.hasSlack(own.info) &&
			d.tryPlanned(len(d.existing)+i, d.askOne(own.pod, own.info)) == topology.Yes {
			return true
		}
	}
	return false
}

// within returns the offers of a class that a shape may run on, those too small left out; false when there are none.
func (d *draft) within(c *class, info *shape) (catalog.Bits, bool) {
	offers := catalog.NewBits(len(d.pool.Catalog.Offers))
	for _, w := range info.ways[d.pool.index] {
		w.offers.OrTo(offers)
	}
	c.offers.AndTo(offers)
	return offers, d.pool.keepFitting(nil, info.Requests, offers)
}
