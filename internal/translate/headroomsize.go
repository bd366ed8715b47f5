package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file is how large the room of a NodePool's headroom is, and of what shapes (K-54). The pool's own pods decide, and
// they come and go. Nodes must not come and go with each of them. So the number of pods that there is room for rises at
// once, and falls only after it was too high for [HeadroomSettles], to the highest number that was wanted in that time. What
// shapes they have follows the pods that run only as often as that, unless there are twice as many.

// HeadroomSettles is how long headroom stays as large as it was when less is wanted, and how long its shapes stay as they are.
const HeadroomSettles = 15 * time.Minute

// mostHeadroomShapes bounds how many shapes of pods headroom has: those of which most pods run.
const mostHeadroomShapes = 20

// Running is how many pods of a shape run on a pool's nodes.
type Running struct {
	Shape *cluster.Shape
	Pods  int
}

// HeadroomRoom is the room of one pool as it was planned last. The zero value has none.
type HeadroomRoom struct {
	// Parts are the shapes that there is room for, and for how many pods of each. The shapes are not interned.
	Parts []Running
	// Until is when the room may change although nothing else does; zero for never.
	Until time.Time

	of      *Headroom
	mix     []Running // of which Parts are a part, most pods first
	mixedAt time.Time
	total   int
	// lowerSince is since when fewer are wanted than total, highest how many at most since then.
	lowerSince time.Time
	highest    int
}

// Pods is for how many pods there is room.
func (r HeadroomRoom) Pods() (n int) {
	for _, part := range r.Parts {
		n += part.Pods
	}
	return n
}

// Next returns the room as it is to be at now, while these pods run on the nodes of the pool. h is nil for none.
func (r HeadroomRoom) Next(space *resources.Space, pool string, h *Headroom, running []Running, now time.Time) HeadroomRoom {
	if h == nil {
		return HeadroomRoom{}
	}
	if !h.Same(r.of) {
		r = HeadroomRoom{}
	}
	r.of = h
	r.remix(pool, running, now)
	if h.Percent > 0 {
		r.count(running, h.Percent, now)
		r.Parts = share(r.Parts, r.mix, r.total)
	} else {
		r.Parts = fill(space, pool, h.Amounts, r.mix)
	}
	r.Until = time.Time{}
	for _, since := range []time.Time{r.mixedAt, r.lowerSince} {
		at := since.Add(HeadroomSettles)
		if at.After(now) && (r.Until.IsZero() || at.Before(r.Until)) {
			r.Until = at
		}
	}
	return r
}

// remix takes the shapes of the pods that run, when those that it has are old.
func (r *HeadroomRoom) remix(pool string, running []Running, now time.Time) {
	pods, before := podsOf(running), podsOf(r.mix)
	switch {
	case pods == 0 && (before == 0 || r.total > 0):
		return // what ran last is as good a guess as any
	case before > 0 && pods < 2*before && now.Before(r.mixedAt.Add(HeadroomSettles)):
		return
	}
	byKey := map[string]*Running{}
	for _, of := range running {
		shape := roomShape(pool, of.Shape)
		key := shape.Key()
		if byKey[key] == nil {
			byKey[key] = &Running{Shape: shape}
		}
		byKey[key].Pods += of.Pods
	}
	keys := slices.SortedFunc(maps.Keys(byKey), func(a, b string) int {
		return cmp.Or(cmp.Compare(byKey[b].Pods, byKey[a].Pods), strings.Compare(a, b))
	})
	r.mix, r.mixedAt = nil, now
	for _, key := range keys[:min(len(keys), mostHeadroomShapes)] {
		r.mix = append(r.mix, *byKey[key])
	}
}

func podsOf(list []Running) (n int) {
	for _, of := range list {
		n += of.Pods
	}
	return n
}

// roomShape is the shape of room on nodes of a pool for pods of another shape: what they request and which nodes they want,
// without volumes, ports, devices and all that ties them to others.
func roomShape(pool string, of *cluster.Shape) *cluster.Shape {
	own := &cluster.Shape{Requests: of.Requests, Tolerations: of.Tolerations, Buffer: cluster.HeadroomOf(pool)}
	inPool := requirement.NewSet(requirement.OneOf(cluster.LabelPool, pool))
	for _, way := range of.Selecting().Alternatives {
		own.Alternatives = append(own.Alternatives, cluster.Alternative{Labels: way.Labels.And(inPool), Names: way.Names})
	}
	if len(own.Alternatives) == 0 {
		own.Alternatives = []cluster.Alternative{{Labels: inPool, Names: requirement.Any("metadata.name")}}
	}
	return own
}

// count finds for how many pods there is to be room, of so many percent of those that run.
func (r *HeadroomRoom) count(running []Running, percent int, now time.Time) {
	wanted := min((podsOf(running)*percent+99)/100, MostBufferPods)
	if wanted >= r.total {
		r.total, r.lowerSince, r.highest = wanted, time.Time{}, 0
		return
	}
	if r.lowerSince.IsZero() {
		r.lowerSince, r.highest = now, wanted
	}
	r.highest = max(r.highest, wanted)
	if now.Before(r.lowerSince.Add(HeadroomSettles)) {
		return
	}
	r.total, r.lowerSince = r.highest, time.Time{}
	if wanted < r.total {
		r.lowerSince, r.highest = now, wanted
	}
}

// share divides room for so many pods among shapes by how many run of each, with as little change of what there was as that
// allows: a pod more or less of one shape leaves the others alone.
func share(before, mix []Running, total int) []Running {
	all, parts := podsOf(mix), make([]int, len(mix))
	if all == 0 {
		return nil
	}
	have := 0
	for i, of := range mix {
		for _, old := range before {
			if old.Shape.Key() == of.Shape.Key() {
				parts[i] = old.Pods
			}
		}
		have += parts[i]
	}
	lacks := func(i int) int { return total*mix[i].Pods - parts[i]*all } // in pods, times all
	most := func(sign int) int {
		best := 0
		for i := range mix {
			if sign*lacks(i) > sign*lacks(best) {
				best = i
			}
		}
		return best
	}
	for ; have < total; have++ {
		parts[most(1)]++
	}
	for ; have > total; have-- {
		parts[most(-1)]--
	}
	for over := most(-1); lacks(over) < -all; over = most(-1) { // off by more than one pod
		parts[most(1)]++
		parts[over]--
	}
	return withPods(mix, parts)
}

func withPods(mix []Running, parts []int) []Running {
	var list []Running
	for i, of := range mix {
		if parts[i] > 0 {
			list = append(list, Running{of.Shape, parts[i]})
		}
	}
	return list
}

// fill fills amounts with pods of the mix, in the proportion in which they run, as long as one of them fits in what is left; and
// the rest with small ones of no particular shape. It is never more than was asked for, but for rounding.
func fill(space *resources.Space, pool string, amounts corev1.ResourceList, mix []Running) []Running {
	var left resources.Vector
	named := map[int]bool{}
	for name, quantity := range amounts {
		component := space.Index(string(name))
		left, named[component] = left.With(component, amount(name, quantity)), true
	}
	fits := func(i int) bool {
		asks := false
		for component := range named {
			request := mix[i].Shape.Requests.At(component)
			if request > left.At(component) {
				return false
			}
			asks = asks || request > 0
		}
		return asks
	}
	parts := make([]int, len(mix))
	for range MostBufferPods {
		best := -1
		for i := range mix {
			// The next pod of a shape is due earlier the more pods of it run.
			if fits(i) && (best < 0 || (parts[i]+1)*mix[best].Pods < (parts[best]+1)*mix[i].Pods) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		parts[best]++
		for component := range named {
			left = left.With(component, left.At(component)-mix[best].Shape.Requests.At(component))
		}
	}
	return append(withPods(mix, parts), small(space, pool, left)...)
}

// small divides an amount into pods of at most a core and 4Gi, and one piece of anything else, which fit on every node that
// is of any use.
func small(space *resources.Space, pool string, all resources.Vector) []Running {
	pieces := int64(0)
	for component, amount := range all {
		unit := int64(1)
		switch space.Names()[component] {
		case resources.NameCPU:
			unit = 1000
		case resources.NameMemory, resources.NameEphemeralStorage:
			unit = 4 << 30
		}
		pieces = max(pieces, (amount+unit-1)/unit)
	}
	if pieces = min(pieces, MostBufferPods); pieces == 0 {
		return nil
	}
	each := resources.Vector(nil).With(resources.Pods, 1)
	for component, amount := range all {
		if amount > 0 {
			each = each.With(component, (amount+pieces-1)/pieces)
		}
	}
	return []Running{{roomShape(pool, &cluster.Shape{Requests: each,
		Tolerations: []cluster.Toleration{{Operator: cluster.TolerationExists}}}), int(pieces)}}
}

// Total sums what the room is of, for people: cpu and memory, and what else the shapes request.
func (r HeadroomRoom) Total(space *resources.Space) map[string]resource.Quantity {
	var sum resources.Vector
	for _, part := range r.Parts {
		sum = sum.Plus(part.Shape.Requests.Times(part.Pods))
	}
	total := map[string]resource.Quantity{}
	for component, amount := range sum {
		if name := space.Names()[component]; amount > 0 {
			total[name] = Quantity(name, amount)
		}
	}
	return total
}
