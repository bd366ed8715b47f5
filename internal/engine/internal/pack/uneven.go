package pack

import (
	"math"
	"slices"
	"sort"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// partial is what daemons request on some offers.
type partial struct {
	on       catalog.Bits
	requests resources.Vector
}

// amounts returns what a daemon requests on offers of the pool: each amount with the offers on which it does.
func (p *pool) amounts(daemon *cluster.Daemon, on catalog.Bits) []partial {
	if !daemon.Varies(p.Name) {
		return []partial{{on, daemon.On(p.Name, "")}}
	}
	var list []partial
	byType := make([]int, len(p.Catalog.Types)) // position in list and 1
	for i := range on.All() {
		t := p.Catalog.Offers[i].Type
		if byType[t] == 0 {
			list, byType[t] = p.amount(list, daemon.On(p.Name, p.Catalog.Types[t].Name))
		}
		list[byType[t]-1].on.Add(i)
	}
	return list
}

// amount returns the list with an amount, and its position there and 1.
func (p *pool) amount(list []partial, requests resources.Vector) ([]partial, int) {
	at := slices.IndexFunc(list, func(known partial) bool { return known.requests.Equal(requests) })
	if at < 0 {
		at, list = len(list), append(list, partial{catalog.NewBits(len(p.Catalog.Offers)), requests})
	}
	return list, at + 1
}

// uneven answers the questions of [catalog.Thresholds] for a pool where daemons take some offers' room only. A
// what-if makes all pools anew and asks about few of them, for few amounts. So all is worked out when it is first
// needed: sorting the whole catalogue for each pool would cost far more than the rest of most what-ifs.
type uneven struct {
	index   *catalog.Index
	kinds   []partial      // every offer is in one
	rooms   []unevenRoom   // of the types in each kind
	columns []unevenColumn // by component
}

// unevenRoom is what a type has, and what daemons take of it.
type unevenRoom struct{ has, taken resources.Vector }

// unevenColumn is a column of thresholds, ascending. Those nobody has asked for have no offers yet.
type unevenColumn struct {
	amounts []int64
	atLeast []catalog.Bits
}

func newUneven(index *catalog.Index, some []partial) *uneven {
	u := &uneven{index: index, kinds: []partial{{on: index.All()}}}
	for _, more := range some {
		u.kinds = split(u.kinds, more)
	}
	last := make([]int, len(index.Types)) // the kind, from 1, in which each type was last seen
	for k, kind := range u.kinds {
		for i := range kind.on.All() {
			if t := index.Offers[i].Type; last[t] != k+1 {
				last[t] = k + 1
				u.rooms = append(u.rooms, unevenRoom{index.Types[t].Allocatable, kind.requests})
			}
		}
	}
	return u
}

// split adds to kinds what daemons request on some offers. Kinds with equal requests become one.
func split(kinds []partial, more partial) []partial {
	var list []partial
	add := func(on catalog.Bits, requests resources.Vector) {
		at := slices.IndexFunc(list, func(known partial) bool { return known.requests.Equal(requests) })
		switch {
		case on.Empty():
		case at < 0:
			list = append(list, partial{on, requests})
		default:
			on.OrTo(list[at].on)
		}
	}
	for _, kind := range kinds {
		add(kind.on.And(more.on), kind.requests.Plus(more.requests))
		add(kind.on.Minus(more.on), kind.requests)
	}
	return list
}

// atLeast returns the offers that have at least amount, which is above 0, of a component left; nil when none has. It
// must not be changed.
func (u *uneven) atLeast(component int, amount int64) catalog.Bits {
	for component >= len(u.columns) {
		u.columns = append(u.columns, unevenColumn{})
	}
	c := &u.columns[component]
	if c.amounts == nil {
		for _, r := range u.rooms {
			c.amounts = append(c.amounts,
				resources.Sum(r.has.At(component), -max(r.taken.At(component), -math.MaxInt64)))
		}
		slices.Sort(c.amounts)
		c.amounts = slices.Compact(c.amounts)
		c.atLeast = make([]catalog.Bits, len(c.amounts))
	}
	i := sort.Search(len(c.amounts), func(i int) bool { return c.amounts[i] >= amount })
	if i == len(c.amounts) {
		return nil
	}
	if c.atLeast[i] == nil {
		c.atLeast[i] = u.having(component, c.amounts[i])
	}
	return c.atLeast[i]
}

// having returns the offers that have at least amount of a component left.
func (u *uneven) having(component int, amount int64) catalog.Bits {
	all := catalog.NewBits(len(u.index.Offers))
	for _, kind := range u.kinds {
		with := u.index.Room.AtLeast(component, resources.Sum(amount, kind.requests.At(component)))
		for word := range with {
			all[word] |= with[word] & kind.on[word]
		}
	}
	return all
}
