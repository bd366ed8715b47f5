// Package topology counts pods for spread constraints and pod (anti-)affinity: for each constraint, how many of the
// pods that it is about are in each domain (the nodes that share a label value). Counts change with each placement and
// are never recomputed.
//
// A bin is a node, existing or planned, known by its number. For the hostname every bin is a domain of its own. For
// other labels the domain of an existing node is known. That of a planned node may still be Open. It is fixed before
// the node gets a pod that any constraint on that label counts. So every count is exact, unless it stays open whether
// a spread constraint counts the bin (see Counting). Pods in such a bin count against a domain, and never in its
// favour.
//
// The rules mean what kube-scheduler's filters do (P-03, P-04). The package imports the standard library only.
package topology

import (
	"iter"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Values of a bin's domain for a label that are not the number of a domain.
const (
	Open  int32 = -1 // not decided yet
	Lacks int32 = -2 // the node will not have the label
)

// Tracker keeps the counts of one round of planning. New makes it, AddBin and Place fill it, and Allowed asks it.
type Tracker struct {
	namespaces map[string]map[string]string
	keys       []string
	keyIndex   map[string]int
	domains    []map[string]int32 // by key: value → domain; unused for the hostname
	names      [][]string         // by key and domain: value
	bins       [][]int32          // by key and bin: domain
	binCount   int

	spreads    []*spread
	affinities []*affinity
	antis      []*anti
	byIdentity map[string]any
	rules      map[*cluster.Shape]*Rules
	vanished   map[int]bool
	shrinks    bool // pods may leave: what anti-affinity refuses now it may admit later
}

// Counting is whether a spread constraint counts the pods of a bin, by its node inclusion policies.
type Counting int8

// A planned node counts Maybe when pods with the constraint could use only some of what it may become. The values are
// in the order of certainty: the least of several answers is the answer to all of them together.
const (
	Not Counting = iota
	Maybe
	Surely
)

// Rules holds all constraints that concern one shape: its own, and those that count it.
type Rules struct {
	// Keys are the labels, by index, whose domain must be known before a pod of the shape is placed.
	Keys []int

	spreads  []*spread   // its own
	affinity []*affinity // its own; at most one
	antis    []*anti     // its own
	blocking []*anti     // whose term is about it
	counted  []counter   // that count it once it is placed
}

// counter is a constraint that counts a pod placed in a bin: one of spread, affinity and anti. For anti, owner says
// whether the pod has the term, and chosen whether the term is about it.
type counter struct {
	spread   *spread
	affinity *affinity
	anti     *anti
	owner    bool
	chosen   bool
}

// New returns a tracker of the constraints of these shapes: the shapes to place, and those on nodes that have
// anti-affinity. Other shapes may be asked about later. They are counted but add no constraint.
func New(shapes []*cluster.Shape, namespaces map[string]map[string]string) *Tracker {
	t := &Tracker{
		namespaces: namespaces, keyIndex: map[string]int{}, byIdentity: map[string]any{},
		rules: map[*cluster.Shape]*Rules{},
	}
	for _, shape := range shapes {
		t.register(shape)
	}
	return t
}

// Constrained reports whether any constraint exists: when not, nothing needs to be counted.
func (t *Tracker) Constrained() bool { return len(t.keys) > 0 }

// KeyNames returns the labels that constraints are about, by index.
func (t *Tracker) KeyNames() []string { return t.keys }

func (t *Tracker) key(name string) int {
	if i, found := t.keyIndex[name]; found {
		return i
	}
	t.keyIndex[name] = len(t.keys)
	t.keys = append(t.keys, name)
	t.domains = append(t.domains, map[string]int32{})
	t.names = append(t.names, nil)
	t.bins = append(t.bins, nil)
	return len(t.keys) - 1
}

// Domain returns the number of the domain with a label value. A new value gets a new domain. It is not for the
// hostname.
func (t *Tracker) Domain(key int, value string) int32 {
	if d, found := t.domains[key][value]; found {
		return d
	}
	d := int32(len(t.names[key]))
	t.domains[key][value] = d
	t.names[key] = append(t.names[key], value)
	return d
}

// Hostname reports whether the key is the hostname, for which each bin is its own domain.
func (t *Tracker) Hostname(key int) bool { return t.keys[key] == cluster.LabelHostname }

// DomainOf returns a bin's domain for a key: a number, Open or Lacks.
func (t *Tracker) DomainOf(key, bin int) int32 { return t.bins[key][bin] }

// AddBin adds the next bin and returns its number. value returns the bin's label value for a key, and whether it is
// decided. Undecided means Open, and decided with the value "" means Lacks. counting says whether the spread
// constraint of a shape counts the bin.
func (t *Tracker) AddBin(value func(key string) (string, bool),
	counting func(*cluster.Shape, cluster.Spread) Counting) int {
	bin := t.binCount
	t.binCount++
	for key, name := range t.keys {
		domain := Open
		if t.Hostname(key) {
			domain = int32(bin)
		} else if v, decided := value(name); decided && v == "" {
			domain = Lacks
		} else if decided {
			domain = t.Domain(key, v)
		}
		t.bins[key] = append(t.bins[key], domain)
	}
	for _, s := range t.spreads {
		as := Not
		if t.hasAll(bin, s.owner) {
			as = counting(s.owner, s.constraint)
		}
		s.counting = append(s.counting, as)
	}
	return bin
}

// Reconsider asks again which spread constraints count a bin, after what its node may become was narrowed. Nothing may
// have been placed in the bin yet.
func (t *Tracker) Reconsider(bin int, counting func(*cluster.Shape, cluster.Spread) Counting) {
	for _, s := range t.spreads {
		t.reconsider(s, bin, counting)
	}
}

func (t *Tracker) reconsider(s *spread, bin int, counting func(*cluster.Shape, cluster.Spread) Counting) {
	switch {
	case !t.hasAll(bin, s.owner):
		s.counting[bin] = Not
	case s.counting[bin] == Maybe:
		s.counting[bin] = counting(s.owner, s.constraint)
	}
}

// Unsure yields the spread constraints that are about a pod with these rules, and count the bin Maybe. Each comes with
// a shape that has it.
func (t *Tracker) Unsure(rules *Rules, bin int) iter.Seq2[*cluster.Shape, cluster.Spread] {
	return func(yield func(*cluster.Shape, cluster.Spread) bool) {
		for _, c := range rules.counted {
			if c.spread != nil && c.spread.counting[bin] == Maybe && !yield(c.spread.owner, c.spread.constraint) {
				return
			}
		}
	}
}

// Settle asks again those spread constraints of these rules that count the bin Maybe. The bin may be occupied: pods
// placed before stay counted as they were.
func (t *Tracker) Settle(rules *Rules, bin int, counting func(*cluster.Shape, cluster.Spread) Counting) {
	again := func(s *spread) {
		if s.counting[bin] == Maybe {
			t.reconsider(s, bin, counting)
			s.present(t.bins[s.key][bin], s.counting[bin])
		}
	}
	for _, s := range rules.spreads {
		again(s)
	}
	for _, c := range rules.counted {
		if c.spread != nil {
			again(c.spread)
		}
	}
}

// hasAll reports whether the bin has, or may get, the labels of all spread constraints of a shape. A node that lacks
// one of them counts for none of the constraints, as in kube-scheduler.
func (t *Tracker) hasAll(bin int, owner *cluster.Shape) bool {
	return !slices.ContainsFunc(owner.Spread,
		func(c cluster.Spread) bool { return t.bins[t.keyIndex[c.Key]][bin] == Lacks })
}

// Occupy makes a bin count as a node that exists: its domains take part in the minimum of the constraints that count
// it. A planned bin is occupied once a pod has been placed in it.
func (t *Tracker) Occupy(bin int) {
	delete(t.vanished, bin)
	for _, s := range t.spreads {
		s.present(t.bins[s.key][bin], s.counting[bin])
	}
}

// MayStand tells which values a bin may get for a key for which it is Open. Each of them may be an empty domain. all
// says that there are no other values. If there may be others, the minimum is 0 until more is known.
func (t *Tracker) MayStand(bin, key int, values []string, all bool) {
	if !all {
		values = []string{nowhere}
	}
	for _, s := range t.spreads {
		if s.key == key && s.counting[bin] != Not {
			for _, value := range values {
				domain := t.Domain(key, value)
				s.known(domain)
				s.offered[domain] = true
			}
		}
	}
}

// nowhere stands for a value that no node has: its domain stays empty.
const nowhere = ""

// Fix decides the domain of an Open bin.
func (t *Tracker) Fix(key, bin int, domain int32) {
	t.bins[key][bin] = domain
	for _, s := range t.spreads {
		if s.key == key {
			s.present(domain, s.counting[bin])
		}
	}
}

// Offer tells the spread constraints of a shape that new nodes could be in a domain of the key. Even while empty it
// counts: pods are spread over all zones in which nodes can be launched, not only over those in use.
func (t *Tracker) Offer(shape *cluster.Shape, key int, value string) {
	for _, s := range t.Rules(shape).spreads {
		if s.key == key {
			domain := t.Domain(key, value)
			s.known(domain)
			s.offered[domain] = true
		}
	}
}

// Standing says why a pod is counted in a bin.
type Standing int

// A pod runs already, runs but is about to end, or is placed by this round. A pod that is about to end counts for
// affinity and anti-affinity only, as in kube-scheduler.
const (
	Running Standing = iota
	Ending
	Placed
)

// Place counts a pod of the shape in a bin. Every key of its Rules must be decided for the bin.
func (t *Tracker) Place(shape *cluster.Shape, bin int, standing Standing) {
	rules := t.Rules(shape)
	if standing == Placed {
		for _, s := range rules.spreads {
			s.landed = append(s.landed, t.bins[s.key][bin])
		}
	}
	t.count(rules, bin, standing, 1)
}

// Await counts a DaemonSet's pod that will come to a bin before other pods do. If it is not sure to come, or not sure
// where, it counts against a constraint and never in its favour: for pod affinity it is a companion elsewhere. values
// returns the values that the bin may get for a label for which it is Open. Anti-affinity with daemons is checked
// beforehand, not here.
func (t *Tracker) Await(shape *cluster.Shape, bin int, sure bool, values func(label string) []string) {
	for _, c := range t.Rules(shape).counted {
		switch {
		case c.affinity == nil:
		case sure:
			c.affinity.add(t, bin, 1)
		default:
			c.affinity.total++
		}
		if c.spread == nil {
			continue
		}
		as, domain := c.spread.counting[bin], t.bins[c.spread.key][bin]
		if !sure || domain == Open {
			as = min(as, Maybe)
		}
		if domain != Open {
			c.spread.add(domain, as, 1)
			continue
		}
		for _, value := range values(t.keys[c.spread.key]) {
			c.spread.add(t.Domain(c.spread.key, value), as, 1)
		}
	}
}

// SpreadCounts reports whether a spread constraint of owner counts pods of the other shape, and returns the label of
// the first one that does.
func SpreadCounts(owner, other *cluster.Shape) (label string, counts bool) {
	if owner.Namespace != other.Namespace {
		return "", false
	}
	for _, c := range owner.Spread {
		if c.Pods.Matches(other.Labels) {
			return c.Key, true
		}
	}
	return "", false
}

// Companion reports whether the pod affinity of owner is about pods of the other shape.
func (t *Tracker) Companion(owner, other *cluster.Shape) bool {
	return len(owner.Affinity) > 0 && t.matchesAll(owner.Affinity, other)
}

// count adds a pod to the counts of a bin, or takes it out with by = -1.
func (t *Tracker) count(rules *Rules, bin int, standing Standing, by int32) {
	for _, c := range rules.counted {
		switch {
		case c.spread != nil:
			if standing != Ending {
				c.spread.add(t.bins[c.spread.key][bin], c.spread.counting[bin], by)
			}
		case c.affinity != nil:
			c.affinity.add(t, bin, by)
		case c.anti != nil:
			if domain := t.bins[c.anti.key][bin]; domain >= 0 {
				c.anti.add(domain, c.owner, c.chosen, by)
			}
		}
	}
}

// MustDecide reports whether a bin's open label must be decided when the bin is opened. values are those that it may
// still get. It must be if some spread constraint counts the bin and does not know all of their domains. Even a node
// that the constraint's own pods cannot use (a taint, or nodeAffinityPolicy Ignore) lowers its minimum.
func (t *Tracker) MustDecide(key, bin int, values []string) bool {
	for _, s := range t.spreads {
		if s.key != key || s.counting[bin] == Not {
			continue
		}
		for _, value := range values {
			if d := t.Domain(key, value); int(d) >= len(s.inSet) || !s.inSet[d] {
				return true
			}
		}
	}
	return false
}

// Rules returns the constraints of a shape.
func (t *Tracker) Rules(shape *cluster.Shape) *Rules {
	if known, found := t.rules[shape]; found {
		return known
	}
	rules := t.compile(shape)
	t.rules[shape] = rules
	return rules
}

// Verdict is the answer to whether a pod may stand in a domain.
type Verdict int

// The verdicts. A constraint that refuses Now may admit later, when counts have moved; Never stays so.
const (
	Yes Verdict = iota
	Now
	Never
)

// Allowed says whether a pod with these rules may be placed in a domain of a key. domain is a number or Lacks.
func (t *Tracker) Allowed(rules *Rules, key int, domain int32) Verdict {
	for _, s := range rules.spreads {
		if s.key != key {
			continue
		}
		if domain == Lacks {
			return Never
		}
		if !s.allows(domain) {
			return Now
		}
	}
	for _, a := range rules.antis {
		if a.key == key && domain >= 0 && a.chosen.at(domain) > 0 {
			return t.never()
		}
	}
	for _, a := range rules.blocking {
		if a.key == key && domain >= 0 && a.owners.at(domain) > 0 {
			return t.never()
		}
	}
	for _, a := range rules.affinity {
		if verdict := a.allowed(key, domain); verdict != Yes {
			return verdict
		}
	}
	return Yes
}

// AllowedIn reports whether a pod of the shape may be placed in a bin whose domains are decided.
func (t *Tracker) AllowedIn(shape *cluster.Shape, bin int) bool {
	rules := t.Rules(shape)
	return !slices.ContainsFunc(rules.Keys, func(key int) bool {
		domain := t.DomainOf(key, bin)
		return domain != Open && t.Allowed(rules, key, domain) != Yes
	})
}

// Crowd returns how many pods the shape's own spread constraints count in a domain. Fewer is better.
func (t *Tracker) Crowd(rules *Rules, key int, domain int32) int32 {
	var sum int32
	for _, s := range rules.spreads {
		if s.key == key {
			sum += s.most(domain)
		}
	}
	return sum
}

// Blames says which constraint of a shape, or of others against it, may refuse domains of a key. It returns "" if the
// shape is only counted over that key.
func (t *Tracker) Blames(rules *Rules, key int) (cause.Code, string) {
	is := func(a *anti) bool { return a.key == key }
	switch {
	case slices.ContainsFunc(rules.spreads, func(s *spread) bool { return s.key == key }):
		return cause.SpreadNoDomain, "topology spread over " + t.keys[key]
	case slices.ContainsFunc(rules.affinity, func(a *affinity) bool { return slices.Contains(a.keys, key) }):
		return cause.AffinityNoTarget, "pod affinity over " + t.keys[key]
	case slices.ContainsFunc(rules.antis, is):
		return cause.AntiAffinityEverywhere, "pod anti-affinity over " + t.keys[key]
	case slices.ContainsFunc(rules.blocking, is):
		return cause.AntiAffinityEverywhere, "the anti-affinity of other pods over " + t.keys[key]
	}
	return "", ""
}

// DropBin removes the bin that AddBin added last. That bin must never have been occupied, or must have vanished.
func (t *Tracker) DropBin() {
	t.binCount--
	delete(t.vanished, t.binCount)
	for key := range t.keys {
		t.bins[key] = t.bins[key][:t.binCount]
	}
	for _, s := range t.spreads {
		s.counting = s.counting[:t.binCount]
	}
}
