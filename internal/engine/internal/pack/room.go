package pack

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// roomRule: a node has room for what its pods and daemons request (P-06).
type roomRule struct{ anyPool }

func (roomRule) reads() []string { return []string{"Requests"} }

func (roomRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if !a.want.Fits(n.free) {
		return topology.Never
	}
	return topology.Yes
}

func (roomRule) placedOn(_ *solver, n *existing, a *attempt) { n.free = n.free.Minus(a.want) }

func (roomRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if !n.pool.keepFitting(n.used, a.want, a.offers) {
		return topology.Never
	}
	return topology.Yes
}

func (roomRule) placedIn(_ *solver, n *planned, a *attempt) { n.used = n.used.Plus(a.want) }

// ties: pods of equal size take the same room, whichever comes first.
func (roomRule) ties(*shape) bool { return false }

func (roomRule) alike(text []byte, info *shape) []byte {
	text = binary.AppendUvarint(text, uint64(len(info.Requests)))
	for _, amount := range info.Requests {
		text = binary.AppendVarint(text, amount)
	}
	return text
}

func (roomRule) explains(_ *solver, e *explainer) bool {
	for component, amount := range e.shape.Requests {
		if amount <= 0 {
			continue
		}
		allowed := e.pool.atLeast(component, amount)
		if allowed == nil {
			allowed = catalog.NewBits(len(e.pool.Catalog.Offers))
		}
		detail := e.names[component] + "=" + e.names.FormatOne(component, amount)
		if !e.narrow(plan.ByPod, e.shortage(component, amount), e.names[component], detail, allowed) {
			return false
		}
	}
	return true
}

// attachable begins the names of resources that count volumes, as the scheduler spells them.
const attachable = "attachable-volumes-"

// shortage returns the cause when none of the types that are left has this amount of a resource.
func (e *explainer) shortage(component int, amount int64) cause.Code {
	has := func(amount int64, among catalog.Bits) bool {
		enough := e.pool.roomFor(component, amount)
		return enough != nil && enough.Intersects(among)
	}
	switch {
	case strings.HasPrefix(e.names[component], attachable):
		return cause.VolumeLimit
	case has(amount, e.left):
		return cause.DaemonsTakeTheRoom
	case has(1, e.pool.Catalog.All()):
		return cause.PodTooLarge
	}
	return cause.ExtendedResource
}

// fitsAlone is a cheap check before a bin is opened: whether some way of the shape has room on an empty node.
func (s *solver) fitsAlone(p *pool, info *shape) bool {
	return slices.ContainsFunc(info.ways[p.index], func(w way) bool {
		left := w.offers.Clone()
		return p.keepFitting(nil, info.Requests, left)
	})
}

// daemonsOn returns what daemons request on a node of an offer.
func (p *pool) daemonsOn(offer int) resources.Vector {
	if p.some == nil {
		return p.overhead
	}
	sum := slices.Clone(p.overhead)
	for _, more := range p.some {
		if more.on.Has(offer) {
			sum = more.requests.AddTo(sum)
		}
	}
	return sum
}

// roomOf returns what an offer leaves to pods. It is computed once.
func (p *pool) roomOf(offer int) resources.Vector {
	if p.rooms == nil {
		p.rooms = make([]resources.Vector, len(p.Catalog.Offers))
	}
	if p.rooms[offer] == nil {
		p.rooms[offer] = p.Catalog.Types[p.Catalog.Offers[offer].Type].Allocatable.Minus(p.daemonsOn(offer)).Minus(
			p.spare)
	}
	return p.rooms[offer]
}

// keepFitting removes from offers, in place, those without room for want beside what is used and the daemons. It
// reports whether any is left. It is called more often than anything else here, so it makes no vector for the sum.
func (p *pool) keepFitting(used, want resources.Vector, offers catalog.Bits) bool {
	for component := range max(len(used), len(want)) {
		amount := resources.Sum(used.At(component), want.At(component))
		if amount <= 0 {
			continue
		}
		with := p.atLeast(component, amount)
		if with == nil {
			clear(offers)
			return false
		}
		with.AndTo(offers)
	}
	return !offers.Empty()
}

// atLeast returns the offers that leave at least amount of a component to pods; nil when none does.
func (p *pool) atLeast(component int, amount int64) catalog.Bits {
	return p.roomFor(component,
		resources.Sum(amount, resources.Sum(p.overhead.At(component), p.spare.At(component))))
}

// roomFor returns the offers that have at least amount, which is above 0, of a component beside the daemons that run
// on some offers only; nil when none has. It must not be changed.
func (p *pool) roomFor(component int, amount int64) catalog.Bits {
	if p.some == nil {
		return p.Catalog.Room.AtLeast(component, amount)
	}
	if p.uneven == nil {
		p.uneven = newUneven(p.Catalog, p.some)
	}
	return p.uneven.atLeast(component, amount)
}

// leastOf returns what every pod requests at least, in every component.
func leastOf(pods []*cluster.Pod) resources.Vector {
	if len(pods) == 0 {
		return nil
	}
	least := slices.Clone(pods[0].Shape.Requests)
	for _, pod := range pods {
		for r := range least {
			least[r] = min(least[r], pod.Shape.Requests.At(r))
		}
	}
	return least
}
