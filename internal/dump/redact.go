package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Known reports whether it is one of the redactions.
func (r Redaction) Known() bool {
	return slices.Contains([]Redaction{RedactNone, RedactNames, RedactAll}, r)
}

// Redactions lists them for messages.
func Redactions() string { return "none, names or all" }

// Key maps the names in a redacted dump to the real ones, by kind of name.
type Key map[string]map[string]string

// Redact replaces each name by its kind and its rank among the names of that kind, so that comparisons of names have
// the same results. It makes the plans again. same reports whether they equal those before, apart from names and from
// sentences with names.
func Redact(d Dump, how Redaction, differences ...Difference) (redacted Dump, key Key, same bool, err error) {
	if how == RedactNone {
		d.Header.Redaction = how
		return d, nil, true, nil
	}
	before, err := contentOf(d).copied()
	if err != nil {
		return d, nil, false, err
	}
	found := &ranks{how: how, numeric: map[string]bool{}, names: map[string]map[string]bool{}}
	(&walk{how: how, visit: found.collect, bounded: found.bounded}).content(&before)
	key = found.settle()
	(&walk{how: how, visit: found.replace, bounded: func(string) {}}).content(&before)
	replaceAsks(&before, d, key)
	redacted, err = read(before)
	if err != nil {
		return d, nil, false, fmt.Errorf("redacting: %w", err)
	}
	redacted.Header = d.Header
	redacted.Header.Redaction = how
	same = true
	for i, planned := range redacted.Plans {
		if slices.ContainsFunc(differences, func(d Difference) bool { return d.Question == planned.Question }) {
			// A plan that the engine no longer reproduces is kept, without its sentences.
			redacted.Plans[i].Plan = readPlan(wordless(before.plans[i]), redacted.Snapshot.Names)
			continue
		}
		p, err := Ask(planned.Question, redacted.Snapshot, redacted.Terms)
		if err != nil {
			return d, nil, false, err
		}
		redacted.Plans[i].Plan = p
		same = same && alikeBut(before.plans[i], plannedRecord(redacted.Plans[i]))
	}
	return redacted, key, same, nil
}

// copied returns the records, without memory shared with the values that they were made from.
func (c content) copied() (content, error) {
	var own content
	for _, l := range c.lines() {
		var fresh line
		if err := json.Unmarshal(encoded(l), &fresh); err != nil {
			return own, fmt.Errorf("redacting: %w", err)
		}
		own.add(fresh)
	}
	return own, nil
}

// alikeBut reports whether two plans are equal, apart from sentences and what they name.
func alikeBut(a, b planRecord) bool { return bytes.Equal(encoded(wordless(a)), encoded(wordless(b))) }

// wordless returns a plan without its sentences.
func wordless(p planRecord) planRecord {
	p, _ = copiedPlan(p)
	for i := range p.Removes {
		p.Removes[i].Why = ""
	}
	for i := range p.Stays {
		p.Stays[i].Why, p.Stays[i].Lead = "", ""
		if p.Stays[i].Homeless != nil {
			p.Stays[i].Homeless.silence()
		}
	}
	for i := range p.Unplaced {
		p.Unplaced[i].silence()
	}
	for i := range p.NoRoom {
		p.NoRoom[i].silence()
	}
	return p
}

// silence removes what the steps name.
func (u *unplacedRecord) silence() {
	for i := range u.Pools {
		for j := range u.Pools[i].Steps {
			step := &u.Pools[i].Steps[j]
			step.Key, step.Detail = "", ""
		}
	}
}

func copiedPlan(p planRecord) (own planRecord, err error) {
	err = json.Unmarshal(encoded(p), &own)
	return own, err
}

// replaceAsks updates what nodes and launches are for to the words that the shapes have now (cluster.Shape.Ask).
func replaceAsks(c *content, d Dump, key Key) {
	now := map[string]string{plan.AskReplicas: plan.AskReplicas, plan.AskFloor: plan.AskFloor}
	shapes := (&reader{in: *c, components: len(c.picture.Resources)}).allShapes()
	for i, then := range shapesOf(d) {
		now[then.Ask()] = shapes[i].Ask()
		for j, v := range then.NewVolumes {
			now[cluster.StorageAsk(v.Class)] = cluster.StorageAsk(shapes[i].NewVolumes[j].Class)
		}
	}
	unknown := map[string]bool{}
	all := func(visit func(string) string) {
		list := func(asks []string) {
			for i := range asks {
				asks[i] = visit(asks[i])
			}
			slices.Sort(asks)
		}
		for i := range c.nodes {
			list(c.nodes[i].For)
		}
		for i := range c.plans {
			for j := range c.plans[i].Launches {
				list(c.plans[i].Launches[j].For)
			}
		}
		for i := range c.holds {
			c.holds[i].Ask = visit(c.holds[i].Ask)
		}
	}
	all(func(ask string) string {
		if now[ask] == "" {
			unknown[ask] = true
		}
		return ask
	})
	for i, ask := range slices.Sorted(maps.Keys(unknown)) {
		now[ask] = rank("ask", i)
		keep(key, "ask", now[ask], ask)
	}
	all(func(ask string) string { return now[ask] })
}

// shapesOf returns the shapes of a dump in the order of their records.
func shapesOf(d Dump) []*cluster.Shape {
	w := &writer{shapes: map[*cluster.Shape]int{}, pods: map[*cluster.Pod]int{}}
	w.gatherPods(d.Snapshot)
	list := make([]*cluster.Shape, len(w.out.shapes))
	for shape, at := range w.shapes {
		list[at] = shape
	}
	return list
}

func (r *reader) allShapes() []*cluster.Shape {
	table := cluster.NewShapes()
	for _, s := range r.in.shapes {
		r.shape(s, table)
	}
	return r.shapes
}

// ranks collects all names of each kind, and gives each its rank.
type ranks struct {
	how     Redaction
	numeric map[string]bool            // kinds of values that are compared as numbers
	names   map[string]map[string]bool // by kind
	now     map[string]map[string]string
}

func (r *ranks) collect(kind, name string) string {
	if r.names[kind] == nil {
		r.names[kind] = map[string]bool{}
	}
	r.names[kind][name] = true
	return name
}

func (r *ranks) bounded(kind string) { r.numeric[kind] = true }

func (r *ranks) replace(kind, name string) string { return r.now[kind][name] }

// settle assigns ranks, and returns the real names.
func (r *ranks) settle() Key {
	key := Key{}
	r.now = map[string]map[string]string{}
	for kind, names := range r.names {
		r.now[kind] = map[string]string{}
		sorted, number, below, some := slices.Sorted(maps.Keys(names)), 0, "", false
		for _, name := range sorted {
			some = some || name != "" && r.kept(kind, name)
		}
		for _, name := range sorted {
			if r.kept(kind, name) {
				r.now[kind][name], below = name, name
				continue
			}
			word, _, _ := strings.Cut(kind, " ")
			if some { // keep its order relative to a kept name before it
				word = below
			}
			r.now[kind][name] = rank(word, number)
			keep(key, kind, r.now[kind][name], name)
			number++
		}
	}
	return key
}

func keep(key Key, kind, now, then string) {
	if key[kind] == nil {
		key[kind] = map[string]string{}
	}
	key[kind][now] = then
}

func rank(word string, number int) string { return fmt.Sprintf("%s-%06d", word, number+1) }

// shortNumber is the number of digits up to which a number identifies nobody.
const shortNumber = 4

// kept reports whether a name stays as it is.
func (r *ranks) kept(kind, name string) bool {
	switch {
	case name == "":
		return true
	case kind == kindKey:
		return knownKey(name)
	case kind == kindResource:
		return knownResource(name)
	case !strings.HasPrefix(kind, kindValue):
		return false
	}
	// An open number is chosen as 0, or as the first one that nothing excludes. So small numbers stay.
	number, err := strconv.ParseInt(name, 10, 64)
	isNumber := err == nil && strconv.FormatInt(number, 10) == name
	return name == "true" || name == "false" || isNumber && (r.numeric[kind] || len(name) <= shortNumber)
}
