package topology

import (
	"fmt"
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// counts holds a number for each domain; domains beyond its length have 0.
type counts []int32

func (c counts) at(domain int32) int32 {
	if domain < 0 || int(domain) >= len(c) {
		return 0
	}
	return c[domain]
}

func (c *counts) add(domain int32, n int32) {
	for int(domain) >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[domain] += n
}

// spread is a topology spread constraint as one kind of pod has it.
type spread struct {
	owner      *cluster.Shape
	constraint cluster.Spread
	key        int
	selfMatch  int32      // 1 when the constraint counts the pods that have it
	counting   []Counting // by bin
	counts     counts     // pods in bins that count Surely
	unsure     counts     // pods in bins that count Maybe
	inSet      []bool     // by domain: it takes part in the minimum
	inUse      []bool     // by domain: a bin that counts Surely stands in it
	offered    []bool     // by domain: it takes part whatever stands in it
	used       int32      // number of domains in use
	levels     []int32
	lowest     int32
	landed     []int32 // domains where this round has placed pods that have the constraint
	late       bool    // a domain came to take part after pods had landed
	floor      int32   // the minimum is taken to be at most this; -1: no such bound (see Tracker.Violated)
}

// known makes a domain take part in the minimum.
func (s *spread) known(domain int32) {
	for int(domain) >= len(s.inSet) {
		s.inSet, s.inUse, s.offered = append(s.inSet, false), append(s.inUse, false), append(s.offered, false)
	}
	if s.inSet[domain] {
		return
	}
	s.inSet[domain] = true
	s.late = s.late || len(s.landed) > 0
	count := s.counts.at(domain)
	s.level(count, 1)
	if count < s.lowest || s.levels[s.lowest] == 0 {
		s.lowest = count
		s.settle()
	}
}

// present notes that a bin is in a domain. With Maybe, the minimum may be taken from the domain, but the domain does
// not count for minDomains.
func (s *spread) present(domain int32, as Counting) {
	if as == Not || domain < 0 {
		return
	}
	s.known(domain)
	if as == Surely && !s.inUse[domain] {
		s.inUse[domain] = true
		s.used++
	}
}

// most is how many pods a domain has if all unsure ones count.
func (s *spread) most(domain int32) int32 { return s.counts.at(domain) + s.unsure.at(domain) }

// add counts one pod more in a domain, or with by = -1 one less.
func (s *spread) add(domain int32, as Counting, by int32) {
	switch {
	case as == Not || domain < 0:
		return
	case as == Maybe:
		s.unsure.add(domain, by)
		return
	}
	before := s.counts.at(domain)
	s.counts.add(domain, by)
	if int(domain) < len(s.inSet) && s.inSet[domain] {
		s.level(before, -1)
		s.level(before+by, 1)
		s.lowest = min(s.lowest, before+by)
		s.settle()
	}
}

// level changes how many domains of the set have this count.
func (s *spread) level(count, by int32) {
	for int(count) >= len(s.levels) {
		s.levels = append(s.levels, 0)
	}
	s.levels[count] += by
}

// settle moves lowest up to the smallest count that a domain has.
func (s *spread) settle() {
	for int(s.lowest)+1 < len(s.levels) && s.levels[s.lowest] == 0 {
		s.lowest++
	}
}

// minimum is the global minimum as kube-scheduler has it: 0 while fewer domains exist than minDomains asks for.
func (s *spread) minimum() int32 {
	if s.used < s.constraint.MinDomains {
		return 0
	}
	if s.floor >= 0 {
		return min(s.floor, s.lowest)
	}
	return s.lowest
}

// allows reports whether a pod with the constraint may be placed in a domain, whether or not the unsure pods there
// count. They raise the domain's count. They also raise the minimum, if it is that domain's own count. They weigh most
// when all of them count.
func (s *spread) allows(domain int32) bool {
	lowest, most := s.minimum(), s.most(domain)
	switch {
	case int(domain) >= len(s.inSet) || !s.inSet[domain]:
		lowest = 0 // a domain that comes to exist only now is itself empty
	case most > s.lowest && lowest == s.lowest && s.counts.at(domain) == lowest && s.levels[lowest] == 1:
		lowest = min(most, s.above(lowest))
		if s.floor >= 0 {
			lowest = min(lowest, s.floor)
		}
		if s.used < s.constraint.MinDomains {
			lowest = 0
		}
	}
	return most+s.selfMatch-lowest <= s.constraint.MaxSkew
}

// above returns the smallest count above another that a domain has.
func (s *spread) above(count int32) int32 {
	for next := count + 1; int(next) < len(s.levels); next++ {
		if s.levels[next] > 0 {
			return next
		}
	}
	return math.MaxInt32
}

// affinity is the required pod affinity of one kind of pod: all its terms together.
type affinity struct {
	owner     *cluster.Shape
	keys      []int // by term
	counts    []counts
	total     int
	selfMatch bool
}

// add counts one pod more in a bin, or with by = -1 one less. A bin that has none of the labels does not count, as in
// kube-scheduler: a group whose pods all run on such nodes starts anew elsewhere.
func (a *affinity) add(t *Tracker, bin int, by int32) {
	somewhere := false
	for i, key := range a.keys {
		domain := t.bins[key][bin]
		somewhere = somewhere || domain != Lacks
		if domain >= 0 {
			a.counts[i].add(domain, by)
		}
	}
	if somewhere {
		a.total += int(by)
	}
}

// allowed follows kube-scheduler. Each term needs a pod in its domain that matches all terms. If there is none
// anywhere, the first pod of a group that matches itself may start one.
func (a *affinity) allowed(key int, domain int32) Verdict {
	for i, k := range a.keys {
		if k != key {
			continue
		}
		if domain == Lacks {
			return Never
		}
		if a.counts[i].at(domain) == 0 && (a.total > 0 || !a.selfMatch) {
			return Now
		}
	}
	return Yes
}

// anti is one required term of pod anti-affinity.
type anti struct {
	term     cluster.AffinityTerm
	identity string
	key      int
	owners   counts // pods that have the term
	chosen   counts // pods that the term is about
}

func (a *anti) add(domain int32, owner, chosen bool, by int32) {
	if owner {
		a.owners.add(domain, by)
	}
	if chosen {
		a.chosen.add(domain, by)
	}
}

// register makes the constraints of a shape known.
func (t *Tracker) register(shape *cluster.Shape) {
	for _, constraint := range shape.Spread {
		identity := spreadIdentity(shape, constraint)
		if _, found := t.byIdentity[identity]; found {
			continue
		}
		s := &spread{owner: shape, constraint: constraint, key: t.key(constraint.Key), floor: -1}
		if constraint.Pods.Matches(shape.Labels) {
			s.selfMatch = 1
		}
		t.byIdentity[identity] = s
		t.spreads = append(t.spreads, s)
	}
	if len(shape.Affinity) > 0 {
		t.registerAffinity(shape)
	}
	for _, term := range shape.AntiAffinity {
		identity := antiIdentity(term)
		if _, found := t.byIdentity[identity]; !found {
			a := &anti{term: term, identity: identity, key: t.key(term.Key)}
			t.byIdentity[identity] = a
			t.antis = append(t.antis, a)
		}
	}
}

func (t *Tracker) registerAffinity(shape *cluster.Shape) {
	identity := affinityIdentity(shape)
	if _, found := t.byIdentity[identity]; found {
		return
	}
	a := &affinity{owner: shape, selfMatch: t.matchesAll(shape.Affinity, shape)}
	for _, term := range shape.Affinity {
		a.keys = append(a.keys, t.key(term.Key))
		a.counts = append(a.counts, nil)
	}
	t.byIdentity[identity] = a
	t.affinities = append(t.affinities, a)
}

// Identities. Two shapes share a count only if it is the same for both. For spread that includes which nodes are
// eligible and how many domains are asked for. For spread and affinity it includes whether the owner counts itself.
func spreadIdentity(shape *cluster.Shape, c cluster.Spread) string {
	identity := fmt.Sprintf("spread %s %s %s %d %d %t", shape.Namespace, c.Key, c.Pods, c.MaxSkew, c.MinDomains,
		c.Pods.Matches(shape.Labels))
	for _, other := range shape.Spread {
		identity += " with " + other.Key
	}
	if !c.IgnoreAffinity {
		for _, alternative := range shape.Selecting().Alternatives {
			identity += fmt.Sprintf(" or %s @%s", alternative.Labels, alternative.Names)
		}
	}
	if c.HonorTaints {
		identity += fmt.Sprintf(" tolerating %q", shape.Tolerations)
	}
	return identity
}

func affinityIdentity(shape *cluster.Shape) string {
	identity := "affinity"
	for _, term := range shape.Affinity {
		identity += " " + term.String()
	}
	return fmt.Sprintf("%s in %s %v", identity, shape.Namespace, shape.Labels)
}

func antiIdentity(term cluster.AffinityTerm) string { return "anti " + term.String() }

// compile finds every constraint that a shape has or is counted by.
func (t *Tracker) compile(shape *cluster.Shape) *Rules {
	r := &Rules{}
	for _, constraint := range shape.Spread {
		if s, found := t.byIdentity[spreadIdentity(shape, constraint)].(*spread); found {
			r.spreads = append(r.spreads, s)
			r.need(s.key)
		}
	}
	for _, s := range t.spreads {
		if s.owner.Namespace == shape.Namespace && s.constraint.Pods.Matches(shape.Labels) {
			r.counted = append(r.counted, counter{spread: s})
			r.need(s.key)
		}
	}
	if len(shape.Affinity) > 0 {
		if a, found := t.byIdentity[affinityIdentity(shape)].(*affinity); found {
			r.affinity = append(r.affinity, a)
			r.need(a.keys...)
		}
	}
	for _, a := range t.affinities {
		if t.matchesAll(a.owner.Affinity, shape) {
			r.counted = append(r.counted, counter{affinity: a})
			r.need(a.keys...)
		}
	}
	t.compileAntis(shape, r)
	slices.Sort(r.Keys)
	return r
}

func (t *Tracker) compileAntis(shape *cluster.Shape, r *Rules) {
	if len(t.antis) == 0 {
		return
	}
	own := make([]string, len(shape.AntiAffinity))
	for i, term := range shape.AntiAffinity {
		own[i] = antiIdentity(term)
	}
	for _, a := range t.antis {
		owner := slices.Contains(own, a.identity)
		chosen := t.Matches(a.term, shape)
		if owner {
			r.antis = append(r.antis, a)
		}
		if chosen {
			r.blocking = append(r.blocking, a)
		}
		if owner || chosen {
			r.counted = append(r.counted, counter{anti: a, owner: owner, chosen: chosen})
			r.need(a.key)
		}
	}
}

func (r *Rules) need(keys ...int) {
	for _, key := range keys {
		if !slices.Contains(r.Keys, key) {
			r.Keys = append(r.Keys, key)
		}
	}
}

// Matches reports whether a term is about pods of a shape, by their labels and namespace.
func (t *Tracker) Matches(term cluster.AffinityTerm, shape *cluster.Shape) bool {
	return about(term, shape, t.namespaces)
}

func about(term cluster.AffinityTerm, shape *cluster.Shape, namespaces map[string]map[string]string) bool {
	if !term.Pods.Matches(shape.Labels) {
		return false
	}
	_, named := slices.BinarySearch(term.Namespaces, shape.Namespace)
	return named || term.NamespaceSelector.Matches(namespaces[shape.Namespace])
}

// Repels reports whether some required anti-affinity of owner is about pods of the other shape.
func Repels(owner, other *cluster.Shape, namespaces map[string]map[string]string) bool {
	return slices.ContainsFunc(owner.AntiAffinity, func(term cluster.AffinityTerm) bool {
		return about(term, other, namespaces)
	})
}

func (t *Tracker) matchesAll(terms []cluster.AffinityTerm, shape *cluster.Shape) bool {
	return !slices.ContainsFunc(terms, func(term cluster.AffinityTerm) bool { return !t.Matches(term, shape) })
}

// Repel reports whether a required anti-affinity of either keeps pods of two shapes off the same node.
func (t *Tracker) Repel(a, b *cluster.Shape) bool {
	return t.repels(a, b, func(string) bool { return true })
}

// RepelAfar is Repel for terms over labels that several nodes share.
func (t *Tracker) RepelAfar(a, b *cluster.Shape) bool {
	return t.repels(a, b, func(key string) bool { return key != cluster.LabelHostname })
}

func (t *Tracker) repels(a, b *cluster.Shape, over func(key string) bool) bool {
	one := func(owner, other *cluster.Shape) bool {
		return slices.ContainsFunc(owner.AntiAffinity, func(term cluster.AffinityTerm) bool {
			return over(term.Key) && t.Matches(term, other)
		})
	}
	return one(a, b) || one(b, a)
}
