package cluster

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Shapes makes equal shapes one pointer. It counts its users, so that shapes of pods that are gone are forgotten.
// It is not safe for concurrent use: the store that owns it has the lock.
type Shapes struct {
	byKey map[string]*counted
}

type counted struct {
	shape *Shape
	users int
}

// NewShapes returns an empty table.
func NewShapes() *Shapes { return &Shapes{byKey: map[string]*counted{}} }

// Intern returns the one shape equal to s, and counts a user of it. The caller must not change s afterwards.
func (t *Shapes) Intern(s *Shape) *Shape {
	if s.key == "" {
		s.key = s.canonical()
	}
	known, found := t.byKey[s.key]
	if !found {
		s.ask = s.hashAsk()
		known = &counted{shape: s}
		t.byKey[s.key] = known
	}
	known.users++
	return known.shape
}

// Release forgets one user of a shape that Intern returned.
func (t *Shapes) Release(s *Shape) {
	if s == nil {
		return
	}
	if known, found := t.byKey[s.key]; found {
		if known.users--; known.users == 0 {
			delete(t.byKey, s.key)
		}
	}
}

// Len returns the number of distinct shapes in use.
func (t *Shapes) Len() int { return len(t.byKey) }

// Key returns a text that is equal for equal shapes and orders unequal ones.
func (s *Shape) Key() string {
	if s.key == "" {
		return s.canonical()
	}
	return s.key
}

// Ask returns a short text for what the shape asks of a node, without its labels. Pods that take each other's place
// have the same text, even when something tells them apart.
func (s *Shape) Ask() string {
	if s.ask == "" {
		return s.hashAsk()
	}
	return s.ask
}

func (s *Shape) hashAsk() string {
	if s.Buffer != "" { // whatever its template asks for: it does not wait with the pods that ask for the same
		return "buffer " + s.Buffer
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%v|", s.Namespace, s.Requests)
	s.writeRest(&b)
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(b.String())) // a hash takes everything
	return strconv.FormatUint(sum.Sum64(), 36)
}

func (s *Shape) canonical() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%v|", s.Namespace, s.Requests)
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		fmt.Fprintf(&b, "%s=%s,", name, s.Labels[name])
	}
	s.writeRest(&b)
	return b.String()
}

// writeRest writes what decides beside requests and labels.
func (s *Shape) writeRest(b *strings.Builder) {
	for _, alternative := range s.Alternatives {
		fmt.Fprintf(b, "|or %s @%s", alternative.Labels, alternative.Names)
	}
	if s.own != nil {
		b.WriteString("|own")
		for _, alternative := range s.own.Alternatives {
			fmt.Fprintf(b, "|own %s @%s", alternative.Labels, alternative.Names)
		}
	}
	if s.Buffer != "" {
		fmt.Fprintf(b, "|buffer %s", s.Buffer)
	}
	if s.Blocked != "" {
		fmt.Fprintf(b, "|blocked %q", s.Blocked)
	}
	for _, claim := range s.Claims {
		fmt.Fprintf(b, "|devices %q", claim)
	}
	s.writeVolumes(b)
	fmt.Fprintf(b, "|%q|%v", s.Tolerations, s.HostPorts)
	for _, spread := range s.Spread {
		fmt.Fprintf(b, "|spread %s %s %d %d %t %t", spread.Key, spread.Pods, spread.MaxSkew, spread.MinDomains,
			spread.IgnoreAffinity, spread.HonorTaints)
	}
	for _, term := range s.Affinity {
		fmt.Fprintf(b, "|with %s", term)
	}
	for _, term := range s.AntiAffinity {
		fmt.Fprintf(b, "|apart %s", term)
	}
	for _, wish := range s.Wishes {
		fmt.Fprintf(b, "|wish %d %t %s %s", wish.Weight, wish.Apart, wish.Labels, wish.Term)
	}
	for _, spread := range s.SoftSpread {
		fmt.Fprintf(b, "|soft %s %s %d", spread.Key, spread.Pods, spread.MaxSkew)
		// No plan looks at the rest; what is written out does.
		if spread.MinDomains > 1 || spread.IgnoreAffinity || spread.HonorTaints {
			fmt.Fprintf(b, " %d %t %t", spread.MinDomains, spread.IgnoreAffinity, spread.HonorTaints)
		}
	}
}

// Narrow sets the alternatives that are left when the pod's volumes are considered too (P-07). It is for shapes
// that are not interned yet.
func (s *Shape) Narrow(alternatives []Alternative) {
	s.own = s.Selecting()
	if s.own == s {
		s.own = &Shape{Alternatives: s.Alternatives}
	}
	s.Alternatives = alternatives
}

// Selecting returns a shape with the pod's own node selection, volumes aside: spread constraints count the nodes
// that it accepts, wherever the volumes are.
func (s *Shape) Selecting() *Shape {
	if s.own != nil {
		return s.own
	}
	return s
}

// Tied reports whether the shape has required constraints on other pods.
func (s *Shape) Tied() bool { return len(s.Spread)+len(s.Affinity)+len(s.AntiAffinity) > 0 }

// ApartTerms are the anti-affinity terms by which pods of the shape keep apart from each other by hostname: a node
// takes one of them.
func (s *Shape) ApartTerms() []AffinityTerm {
	var terms []AffinityTerm
	for _, term := range s.AntiAffinity {
		if term.Key == LabelHostname && term.Pods.Matches(s.Labels) && slices.Contains(term.Namespaces, s.Namespace) {
			terms = append(terms, term)
		}
	}
	return terms
}

// WithoutTies returns the shape without labels, and without constraints on other pods: it takes room, and no pod
// minds.
func (s *Shape) WithoutTies() *Shape {
	own := *s
	own.Labels, own.Spread, own.Affinity, own.AntiAffinity, own.Wishes, own.SoftSpread = nil, nil, nil, nil, nil, nil
	own.key, own.ask = "", ""
	return &own
}

// WithoutWishes returns the shape without what it only prefers. It tolerates all taints that only ask.
func (s *Shape) WithoutWishes() *Shape {
	own := *s
	own.Wishes, own.SoftSpread, own.key = nil, nil, ""
	own.Tolerations = append(slices.Clone(s.Tolerations),
		Toleration{Operator: TolerationExists, Effect: PreferNoSchedule})
	return &own
}

// String prints the selector canonically.
func (s Selector) String() string {
	if !s.Enabled {
		return "none"
	}
	return s.Labels.String()
}

// String prints the term canonically.
func (t AffinityTerm) String() string {
	return t.Key + " (" + t.Pods.String() + ") in [" + strings.Join(t.Namespaces, " ") + "] (" +
		t.NamespaceSelector.String() + ")"
}
