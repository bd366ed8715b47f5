package pack

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// This file grants wishes (P-05). They are weighed once, when every pod has its place. The pods of a planned node may
// prefer another zone, capacity type or family. The node is narrowed to that if it costs nothing, or if at least half
// of its pods wish it. So a wish can change what a node is, and never whether there is one.

// wish is what some pods of a node want of it.
type wish struct {
	labels requirement.Set
	weight int64 // summed over the pods
	pods   int
}

// grantWishes goes through the planned nodes in the order in which they were planned.
func (s *solver) grantWishes() {
	s.moveToLiked()
	c := s.newCrowds()
	for _, b := range s.planned {
		wishes, before := s.wishesOf(b, c), *b
		for _, w := range wishes {
			b.grant(w)
		}
		c.decided(b, &before)
	}
}

// wishesOf sums up what the pods of a planned node wish, the heaviest first.
func (s *solver) wishesOf(b *planned, c *crowds) []wish {
	pods := map[*cluster.Shape]int{}
	for _, pod := range b.pods {
		if len(pod.Shape.Wishes)+len(pod.Shape.SoftSpread) > 0 {
			pods[pod.Shape]++
		}
	}
	if len(pods) == 0 {
		return nil
	}
	sums := map[string]*wish{}
	add := func(labels requirement.Set, weight int32, n int) {
		key := labels.String()
		if sums[key] == nil {
			sums[key] = &wish{labels: labels}
		}
		sums[key].weight += int64(weight) * int64(n)
		sums[key].pods += n
	}
	for shape, n := range pods {
		for _, w := range shape.Wishes {
			if w.Term.Key == "" {
				add(w.Labels, w.Weight, n)
			} else if value, found := c.choose(b, w.Term.Key, c.near(w.Term), !w.Apart); found {
				add(requirement.NewSet(requirement.OneOf(requirement.Key(w.Term.Key), value)), w.Weight, n)
			}
		}
		for _, spread := range shape.SoftSpread {
			if value, found := c.choose(b, spread.Key, c.near(spreadTerm(shape, spread)), false); found {
				const weight = 100 // as much as a wish can weigh
				add(requirement.NewSet(requirement.OneOf(requirement.Key(spread.Key), value)), weight, n)
			}
		}
	}
	list := make([]wish, 0, len(sums))
	for _, w := range sums {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b wish) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.labels.String(), b.labels.String()))
	})
	return list
}

// grant narrows the node to the wish, if it can be had: free of charge, or because at least half of the pods wish it.
func (b *planned) grant(w wish) {
	left := b.offers.Clone()
	var carried []requirement.Requirement
	for r := range w.labels.All() {
		if !b.pool.Catalog.Known(r.Key()) {
			if value, known := b.labelValue(string(r.Key())); !known || value == "" && !r.AllowsAbsent() ||
				value != "" && !r.Has(value) {
				return // a label that the pool has decided otherwise, or leaves open to its pods' demands
			}
			continue
		}
		b.pool.Catalog.Compatible(r).AndTo(left)
		carried = append(carried, r)
	}
	narrowed := *b
	narrowed.offers, narrowed.labels = left, b.labels.And(requirement.NewSet(carried...))
	kept := narrowed.withinHeld()
	if kept.Empty() || !narrowed.choice() {
		return
	}
	was, is := b.pool.Catalog.Offers[b.withinHeld().First()], b.pool.Catalog.Offers[kept.First()]
	if b.pool.Limits.HasResources() && was.Type != is.Type {
		return // what the plan counts against the limits is the type
	}
	if was.Commitment != 0 && is.List > was.List {
		return // what the plan counts against the commitment is its price
	}
	free := is.Price <= was.Price
	if free || 2*w.pods >= len(b.pods) {
		b.offers, b.labels = left, narrowed.labels
	}
}

// crowds counts, for terms that wishes look at, the pods of the term by value of its label.
type crowds struct {
	solver *solver
	counts map[string]*crowd
}

type crowd struct {
	term   cluster.AffinityTerm
	counts map[string]int // by label value
}

func (s *solver) newCrowds() *crowds { return &crowds{solver: s, counts: map[string]*crowd{}} }

// near returns the crowd of a term. When first asked for it, it counts the pods on existing nodes, and on every
// planned node whose value is decided by then, its turn over or not. The others count when they are decided.
func (c *crowds) near(term cluster.AffinityTerm) *crowd {
	key := term.String()
	if known, found := c.counts[key]; found {
		return known
	}
	own := &crowd{term: term, counts: map[string]int{}}
	c.counts[key] = own
	for _, node := range c.solver.snapshot.Nodes {
		if !node.Deleting && !node.Disrupting {
			n := existing{node: node}
			own.add(c.solver, n.labelValue, node.Pods)
		}
	}
	for _, n := range c.solver.existing {
		own.add(c.solver, n.labelValue, n.pods)
	}
	for _, n := range c.solver.planned {
		own.add(c.solver, n.labelValue, n.pods)
	}
	return own
}

// decided counts the pods of a planned node for the crowds whose label was open before its wishes were granted.
func (c *crowds) decided(b, before *planned) {
	for _, own := range c.counts {
		if _, known := before.labelValue(own.term.Key); !known {
			own.add(c.solver, b.labelValue, b.pods)
		}
	}
}

func (own *crowd) add(s *solver, labelValue func(string) (string, bool), pods []*cluster.Pod) {
	value, decided := labelValue(own.term.Key)
	if !decided || value == "" {
		return
	}
	for _, pod := range pods {
		if s.topology.Matches(own.term, pod.Shape) {
			own.counts[value]++
		}
	}
}

// choose returns the value that has most (or fewest) of a crowd, of those that a planned node may still get for a
// label. Equals are decided by price. It returns false for the hostname, for labels that the provider does not decide,
// and if most is asked for and no value has any.
func (c *crowds) choose(b *planned, key string, near *crowd, most bool) (string, bool) {
	if key == cluster.LabelHostname || !b.pool.Catalog.Known(requirement.Key(key)) {
		return "", false
	}
	best, bestCount := "", 0
	for i, value := range b.candidates(key) {
		count := near.counts[value]
		if i == 0 || most && count > bestCount || !most && count < bestCount {
			best, bestCount = value, count
		}
	}
	return best, best != "" && (!most || bestCount > 0)
}

// spreadTerm returns a spread constraint's choice of pods as a term.
func spreadTerm(shape *cluster.Shape, spread cluster.Spread) cluster.AffinityTerm {
	return cluster.AffinityTerm{Key: spread.Key, Pods: spread.Pods, Namespaces: []string{shape.Namespace}}
}
