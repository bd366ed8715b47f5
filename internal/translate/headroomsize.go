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

// This file computes the size and the shapes of a NodePool's headroom (K-54). The pool's own pods decide, and they
// come and go. Nodes must not come and go with each of them. So the number of pods to keep room for rises at once. It
// falls only after it was too high for [HeadroomSettles], to the highest number wanted in that time. The shapes follow
// the running pods only once in HeadroomSettles, unless the pods have doubled.

// HeadroomSettles is how long headroom keeps its size when less is wanted, and how long it keeps its shapes.
const HeadroomSettles = 15 * time.Minute

// mostHeadroomShapes bounds the shapes of headroom. Those with the most running pods are kept.
const mostHeadroomShapes = 20

// Running is how many pods of a shape run on a pool's nodes.
type Running struct {
	Shape *cluster.Shape
	Pods  int
}

// HeadroomRoom is the room of one pool as it was last planned. The zero value has none.
type HeadroomRoom struct {
	// Parts are the shapes to keep room for, and the number of pods of each. The shapes are not interned.
	Parts []Running
	// Until is when the room may change by time alone; zero for never.
	Until time.Time

	of      *Headroom
	mix     []Running // the shapes that Parts are chosen from, most pods first
	mixedAt time.Time
	total   int
	// lowerSince is since when fewer than total are wanted, highest the most wanted since then.
	lowerSince time.Time
	highest    int
}

// Pods returns the number of pods in the room.
func (r HeadroomRoom) Pods() (n int) {
	for _, part := range r.Parts {
		n += part.Pods
	}
	return n
}

// Next returns the room to keep at now, given the pods that run on the pool's nodes, and the taints of its template. h
// is nil for no room.
func (r HeadroomRoom) Next(space *resources.Space, pool string, taints []corev1.Taint, h *Headroom, running []Running,
	now time.Time) HeadroomRoom {
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
		r.Parts = fill(space, pool, taints, h.Amounts, r.mix)
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

// remix replaces old shapes by those of the running pods.
func (r *HeadroomRoom) remix(pool string, running []Running, now time.Time) {
	pods, before := podsOf(running), podsOf(r.mix)
	switch {
	case pods == 0 && (before == 0 || r.total > 0):
		return // the last pods are as good a guess as any
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

// roomShape returns the shape of room on a pool's nodes for pods of shape of. It has their requests and node
// selection. It leaves out volumes, ports, devices and all that ties pods to others.
func roomShape(pool string, of *cluster.Shape) *cluster.Shape {
	own := &cluster.Shape{Requests: of.Requests, Tolerations: of.Tolerations, Buffer: cluster.HeadroomOf(pool)}
	inPool := requirement.NewSet(requirement.OneOf(cluster.LabelPool, pool))
	for _, way := range of.Selecting().Alternatives {
		own.Alternatives = append(own.Alternatives, cluster.Alternative{Labels: way.Labels.And(inPool),
			Names: way.Names})
	}
	if len(own.Alternatives) == 0 {
		own.Alternatives = []cluster.Alternative{{Labels: inPool, Names: requirement.Any("metadata.name")}}
	}
	return own
}

// count updates total, the number of pods to keep room for. It follows percent of the running pods.
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

// share divides total pods among the shapes of mix in proportion to their running pods. It changes before as little as
// possible: one pod more or less of a shape leaves the other shapes alone.
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

// fill fills amounts with pods of the mix, in proportion to their running pods, as long as one fits into the rest. It
// fills the rest with small pods of no particular shape. Apart from the rounding of cores and bytes, the result never
// exceeds amounts.
func fill(space *resources.Space, pool string, taints []corev1.Taint, amounts corev1.ResourceList,
	mix []Running) []Running {
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
	return append(withPods(mix, parts), small(space, pool, taints, left)...)
}

const (
	// mostDevices is the largest amount of a resource that is taken for a number of devices. More of it is a measure,
	// such as the MiB of a GPU's memory.
	mostDevices = 1000
	// measurePieces is into how many pieces a measure is divided.
	measurePieces = 16
	// hugePagesPiece is how many bytes of huge pages a piece has, unless a page is larger.
	hugePagesPiece = 1 << 30
)

// small divides an amount into pods of at most one core, 4Gi, and one device. Such pods fit on every useful node. They
// tolerate the pool's own taints and no others, such as that of a cordoned node: no pod comes there. All pods have the
// same cores and bytes. Of devices the first pods have one more than the others: their sum is what was asked for,
// since a device too many may be a node too many.
func small(space *resources.Space, pool string, taints []corev1.Taint, all resources.Vector) []Running {
	pieces, names := int64(0), space.Names()
	for component, amount := range all {
		pieces = max(pieces, piecesOf(names[component], amount))
	}
	if pieces = min(pieces, MostBufferPods); pieces == 0 {
		return nil
	}
	var tolerations []cluster.Toleration
	for _, taint := range Taints(taints) {
		tolerations = append(tolerations, cluster.Toleration{Key: taint.Key, Operator: cluster.TolerationEqual,
			Value: taint.Value, Effect: taint.Effect})
	}
	ends := []int64{pieces} // where pods that have one grain more of something end
	for component, amount := range all {
		if grain := grainOf(names[component]); grain > 0 {
			ends = append(ends, rounded(amount, grain)%pieces)
		}
	}
	slices.Sort(ends)
	var list []Running
	begin := int64(0)
	for _, end := range ends {
		if end == begin {
			continue
		}
		each := resources.Vector(nil).With(resources.Pods, 1)
		for component, amount := range all {
			if part := partOf(names[component], amount, begin, pieces); part > 0 {
				each = each.With(component, part)
			}
		}
		shape := &cluster.Shape{Requests: each, Tolerations: tolerations}
		list = append(list, Running{roomShape(pool, shape), int(end - begin)})
		begin = end
	}
	return list
}

// piecesOf returns into how many pieces an amount of a resource is divided.
func piecesOf(name string, amount int64) int64 {
	grain := grainOf(name)
	switch {
	case name == resources.NameCPU:
		return rounded(amount, 1000)
	case grain == 0:
		return rounded(amount, 4<<30)
	case strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return rounded(amount, max(hugePagesPiece, grain))
	case amount > mostDevices:
		return measurePieces
	}
	return amount
}

// partOf returns how much of a resource the pod of a number has, counted from 0, if amount is divided among so many
// pieces.
func partOf(name string, amount, number, pieces int64) int64 {
	grain := grainOf(name)
	if grain == 0 {
		return rounded(amount, pieces)
	}
	grains := rounded(amount, grain)
	part := grains / pieces
	if number < grains%pieces {
		part++
	}
	return part * grain
}

// grainOf returns the least amount of a resource that a pod can have, apart from 0 for none: one device, or one huge
// page. It is 0 for cores and bytes, which can be divided at will.
func grainOf(name string) int64 {
	switch name {
	case resources.NameCPU, resources.NameMemory, resources.NameEphemeralStorage:
		return 0
	}
	if size, huge := strings.CutPrefix(name, corev1.ResourceHugePagesPrefix); huge {
		if page, err := resource.ParseQuantity(size); err == nil && page.Value() > 0 {
			return page.Value()
		}
	}
	return 1
}

// rounded divides, and rounds up.
func rounded(amount, by int64) int64 { return (amount + by - 1) / by }

// Total returns the sum of all resources that the room requests, for display.
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
