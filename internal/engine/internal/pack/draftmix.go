package pack

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// draftGroup holds pods of a class that are the same for the mix.
type draftGroup struct {
	group
	early bool
	bound bool
	slots []slot
	first int // no slot before this one is free
}

// slot holds places for pods of a group on a node of the draft.
type slot struct {
	target *target
	left   int
}

// maxApart bounds how many groups that keep apart are resources of their own. The largest ones are.
const maxApart = 8

// carefulPods is the most pods of a draft that are mixed with [mix.Careful]. With 500, the drafts of B-10's pods got
// so cheap that nodes of one size cost more beside them than they may. Then more nodes are launched than planned
// (B-16).
const carefulPods = 200

// mix drafts the nodes of each class.
func (d *draft) mix() {
	for _, c := range d.classes {
		groups := d.groupsOf(c)
		if len(groups) == 0 {
			continue
		}
		for _, found := range d.mixesOf(c, groups) {
			for range found.Times {
				t := &target{class: c, index: -1}
				for n, count := range found.Counts {
					if count > 0 {
						t.bound = t.bound || groups[n].bound
						groups[n].slots = append(groups[n].slots, slot{t, count})
					}
				}
			}
		}
	}
}

// groupsOf puts the pods of a class together that are the same for the mix.
func (d *draft) groupsOf(c *class) []*draftGroup {
	var list []*draftGroup
	var key []byte
	byShape, byKey := map[*shape]*draftGroup{}, map[string]*draftGroup{}
	for _, own := range d.pods {
		if own.class != c {
			continue
		}
		g := byShape[own.info]
		if g == nil {
			key = d.keyOf(key[:0], own)
			if g = byKey[string(key)]; g == nil {
				g = &draftGroup{group: group{info: own.info}, early: own.early, bound: own.bound}
				byKey[string(key)] = g
				list = append(list, g)
			}
			byShape[own.info] = g
		}
		g.pods = append(g.pods, own.pod)
		own.group = g
	}
	return list
}

// keyOf appends what pods of one group have in common.
func (d *draft) keyOf(key []byte, own *drafted) []byte {
	for _, is := range []bool{own.early, own.bound} {
		if key = append(key, '0'); is {
			key[len(key)-1] = '1'
		}
	}
	for _, term := range own.info.apart {
		key = append(append(key, term...), 0)
	}
	for _, r := range d.rules.all {
		key = r.alike(key, own.info)
	}
	return appendWays(key, own.info)
}

// mixesOf finds the nodes of a class.
func (d *draft) mixesOf(c *class, groups []*draftGroup) []mix.Pattern {
	plain := make([]*group, len(groups))
	var asked resources.Vector
	for i, g := range groups {
		plain[i] = &g.group
		asked = asked.Max(g.info.Requests)
	}
	var used []int // components that some pod asks for
	for r, amount := range asked {
		if amount > 0 {
			used = append(used, r)
		}
	}
	apart, few, any := c.largest(), d.fewOf(c, groups), false
	items := make([]mix.Item, len(groups))
	for i, g := range groups {
		amounts := chosen(g.info.Requests, used)
		for _, term := range apart {
			amounts = append(amounts, one(slices.Contains(g.info.apart, term)))
		}
		any = any || g.early
		items[i] = mix.Item{Amounts: append(amounts, one(g.early)), Count: len(g.pods)}
	}
	var bins []mix.Bin
	all := sumOf(groups)
	for _, own := range d.candidates(d.pool, c.offers, plain, (*candidate).similar) {
		room := chosen(own.room, used)
		for range apart {
			room = append(room, 1)
		}
		bins = append(bins, mix.Bin{Room: append(room, few), Price: own.price, Takes: own.takes})
		if !slices.Contains(own.takes, false) && all.Fits(own.room) {
			break // nothing dearer is of any use
		}
	}
	if !any {
		for i := range items {
			items[i].Amounts = items[i].Amounts[:len(used)+len(apart)]
		}
		for i := range bins {
			bins[i].Room = bins[i].Room[:len(used)+len(apart)]
		}
	}
	way := mix.Way(mix.Sketch)
	switch { // the more pods there are, the better they fit together
	case len(d.pods) <= carefulPods:
		way = mix.Careful
	case len(d.pods) > evenPods:
		way = mix.Draft
	}
	return mix.Beside(way, int64(d.pool.NodeOverheadPrice))(items, bins)
}

// sumOf returns what all pods of groups request.
func sumOf(groups []*draftGroup) resources.Vector {
	var sum resources.Vector
	for _, g := range groups {
		sum = sum.Plus(g.info.Requests.Times(len(g.pods)))
	}
	return sum
}

// chosen returns these components of amounts.
func chosen(amounts resources.Vector, components []int) []int64 {
	list := make([]int64, 0, len(components)+maxApart+1)
	for _, r := range components {
		list = append(list, amounts.At(r))
	}
	return list
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// largest returns the groups of a class that keep apart, the largest first.
func (c *class) largest() []string {
	var list []string
	for term, n := range c.apart {
		if n > 1 {
			list = append(list, term)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		if c.apart[a] != c.apart[b] {
			return c.apart[b] - c.apart[a]
		}
		return strings.Compare(a, b)
	})
	return list[:min(len(list), maxApart)]
}

// fewOf returns how many pods spread over hostnames a node should have at most: twice their share, since they get in
// each other's way.
func (d *draft) fewOf(c *class, groups []*draftGroup) int64 {
	early, nodes := 0, 1
	for _, g := range groups {
		if g.early {
			early += len(g.pods)
		}
	}
	for _, n := range c.apart {
		nodes = max(nodes, n)
	}
	return int64(2 * ((early + nodes - 1) / nodes))
}

const (
	// alikeRoom is how far apart the rooms of two offerings may be, for their prices, to be of one shape.
	alikeRoom = 0.03
	// alikePrice is how many times dearer than another of its shape an offering must be for a mix to look at both.
	alikePrice = 1.15
)

// similar reports whether other is nearly the same as c, which is no dearer. So the mix has less to look at. A node is
// launched with the smaller one all the same where its pods fit.
func (c *candidate) similar(other *candidate) bool {
	if c.covers(other) {
		return true
	}
	ratio := float64(other.price) / float64(c.price)
	if ratio > alikePrice || !slices.Equal(c.takes, other.takes) {
		return false
	}
	for r := range max(len(c.room), len(other.room)) {
		most := float64(float64(c.room.At(r)) * ratio)
		if own := float64(other.room.At(r)); own > most*(1+alikeRoom) || own < most*(1-alikeRoom) {
			return false
		}
	}
	return true
}
