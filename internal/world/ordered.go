package world

import (
	"maps"
	"slices"
	"strings"
)

// ordered is a sorted list of pointers that changes little between two reads. A read costs the changes plus one copy
// of the list, and nothing if there are no changes. compare must tell any two members apart.
type ordered[T any] struct {
	compare     func(a, b *T) int
	sorted      []*T // never changed in place: snapshots share it
	added, gone map[*T]struct{}
}

func newOrdered[T any](compare func(a, b *T) int) *ordered[T] {
	return &ordered[T]{compare: compare, added: map[*T]struct{}{}, gone: map[*T]struct{}{}}
}

// replace takes old out of the list and puts fresh in; either may be nil. What is in the list must not change.
func (o *ordered[T]) replace(old, fresh *T) {
	if old != nil {
		if _, unread := o.added[old]; unread {
			delete(o.added, old)
		} else {
			o.gone[old] = struct{}{}
		}
	}
	if fresh != nil {
		o.added[fresh] = struct{}{}
	}
}

// list returns the members in order. The result never changes; the caller must not change it either.
func (o *ordered[T]) list() []*T {
	if len(o.added) == 0 && len(o.gone) == 0 {
		return o.sorted
	}
	var cuts []int
	for member := range o.gone {
		at, _ := slices.BinarySearchFunc(o.sorted, member, o.compare)
		cuts = append(cuts, at)
	}
	slices.Sort(cuts)
	merged := make([]*T, 0, len(o.sorted)+len(o.added)-len(o.gone))
	done := 0
	upTo := func(end int) {
		for len(cuts) > 0 && cuts[0] < end {
			merged = append(merged, o.sorted[done:cuts[0]]...)
			done, cuts = cuts[0]+1, cuts[1:]
		}
		merged = append(merged, o.sorted[done:end]...)
		done = end
	}
	for _, member := range slices.SortedFunc(maps.Keys(o.added), o.compare) {
		at, _ := slices.BinarySearchFunc(o.sorted[done:], member, o.compare)
		upTo(done + at)
		merged = append(merged, member)
	}
	upTo(len(o.sorted))
	o.sorted = merged
	clear(o.added)
	clear(o.gone)
	return o.sorted
}

// keyed is a list of values by name that changes little between two reads. A read costs the changes plus one copy of
// the list, and nothing if there are no changes.
type keyed[T any] struct {
	byName map[string]*member[T]
	order  *ordered[member[T]]
	values []T // never changed in place: snapshots share it
	stale  bool
}

type member[T any] struct {
	name  string
	value T
}

func newKeyed[T any]() *keyed[T] {
	return &keyed[T]{byName: map[string]*member[T]{},
		order: newOrdered(func(a, b *member[T]) int { return strings.Compare(a.name, b.name) })}
}

// put stores the value of a name, nil for none, and reports whether there was or is one.
func (k *keyed[T]) put(name string, value *T) bool {
	old := k.byName[name]
	if old == nil && value == nil {
		return false
	}
	var fresh *member[T]
	if delete(k.byName, name); value != nil {
		fresh = &member[T]{name, *value}
		k.byName[name] = fresh
	}
	k.order.replace(old, fresh)
	k.stale = true
	return true
}

// list returns the values in order of their names. The result never changes; the caller must not change it either.
func (k *keyed[T]) list() []T {
	if k.stale {
		k.stale, k.values = false, make([]T, 0, len(k.byName))
		for _, one := range k.order.list() {
			k.values = append(k.values, one.value)
		}
	}
	return k.values
}
