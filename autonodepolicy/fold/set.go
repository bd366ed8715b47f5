package fold

import (
	"iter"
	"slices"
	"strings"
)

// Set is a conjunction of requirements: at most one for each key, ordered by key. A key that it does not hold is
// unrestricted. The zero value restricts nothing. A Set is immutable.
type Set struct {
	byKey []Allowed // sorted by key, unique
}

// NewSet returns the conjunction of requirements. They may come in any order; it intersects those of one key.
func NewSet(requirements ...Allowed) Set {
	own := slices.Clone(requirements)
	slices.SortStableFunc(own, func(a, b Allowed) int { return strings.Compare(string(a.key), string(b.key)) })
	merged := own[:0]
	for _, r := range own {
		if last := len(merged) - 1; last >= 0 && merged[last].key == r.key {
			merged[last] = merged[last].And(r)
			continue
		}
		merged = append(merged, r)
	}
	return Set{byKey: merged}
}

// FromLabels returns the set that allows, for each of the labels, only its value.
func FromLabels(labels map[string]string) Set {
	list := make([]Allowed, 0, len(labels))
	for key, value := range labels {
		list = append(list, OneOf(Key(key), value))
	}
	return NewSet(list...)
}

// Len returns the number of keys.
func (s Set) Len() int { return len(s.byKey) }

// All yields the requirements in the order of their keys.
func (s Set) All() iter.Seq[Allowed] { return slices.Values(s.byKey) }

// Get returns the requirement for key, or Any(key) if the set does not hold it.
func (s Set) Get(key Key) Allowed {
	if i, found := s.find(key); found {
		return s.byKey[i]
	}
	return Any(key)
}

// Holds reports whether the set restricts key.
func (s Set) Holds(key Key) bool {
	_, found := s.find(key)
	return found
}

func (s Set) find(key Key) (int, bool) {
	return slices.BinarySearchFunc(s.byKey, key, func(r Allowed, key Key) int {
		return strings.Compare(string(r.key), string(key))
	})
}

// And returns the conjunction of both sets.
func (s Set) And(other Set) Set {
	if len(other.byKey) == 0 {
		return s
	}
	if len(s.byKey) == 0 {
		return other
	}
	merged := make([]Allowed, 0, len(s.byKey)+len(other.byKey))
	i, j := 0, 0
	for i < len(s.byKey) && j < len(other.byKey) {
		a, b := s.byKey[i], other.byKey[j]
		switch {
		case a.key < b.key:
			merged = append(merged, a)
			i++
		case a.key > b.key:
			merged = append(merged, b)
			j++
		default:
			merged = append(merged, a.And(b))
			i++
			j++
		}
	}
	merged = append(merged, s.byKey[i:]...)
	return Set{byKey: append(merged, other.byKey[j:]...)}
}

// With returns the set with one more requirement.
func (s Set) With(r Allowed) Set { return s.And(Set{byKey: []Allowed{r}}) }

// Without returns the set with key unrestricted.
func (s Set) Without(key Key) Set {
	return Set{byKey: slices.DeleteFunc(slices.Clone(s.byKey), func(r Allowed) bool { return r.key == key })}
}

// Intersects reports whether some node satisfies both sets. It is the same as len(s.And(other).EmptyKeys()) == 0 if
// neither set is a contradiction by itself.
func (s Set) Intersects(other Set) bool {
	for _, r := range other.byKey {
		if !s.Get(r.key).Intersects(r) {
			return false
		}
	}
	return true
}

// EmptyKeys returns the keys, sorted, for which the set allows nothing.
func (s Set) EmptyKeys() []Key {
	var keys []Key
	for _, r := range s.byKey {
		if r.Empty() {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// Matches reports whether a node with these labels satisfies the set.
func (s Set) Matches(labels map[string]string) bool {
	for _, r := range s.byKey {
		value, present := labels[string(r.key)]
		if present && !r.Has(value) || !present && !r.absent {
			return false
		}
	}
	return true
}

// Equal reports whether both sets hold the same keys with equal requirements.
func (s Set) Equal(other Set) bool {
	return slices.EqualFunc(s.byKey, other.byKey, Allowed.Equal)
}

// String prints the requirements in the order of their keys, separated by spaces; "any" when there are none.
func (s Set) String() string {
	if len(s.byKey) == 0 {
		return "any"
	}
	parts := make([]string, len(s.byKey))
	for i, r := range s.byKey {
		parts[i] = r.String()
	}
	return strings.Join(parts, " ")
}
