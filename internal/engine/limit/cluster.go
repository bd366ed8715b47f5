package limit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// This file is the arithmetic of the hard limit of the whole cluster (K-53; the argument is in ADR 0023). With a limit
// of n, each NodeClaim that Joiner makes stands in one of n cluster slots, whose names are the same for all pools. A
// pool with slots of its own has a list of them, its places, so that its own limit holds too.

// ClusterSlotName returns the name of the NodeClaim that holds a slot of the cluster: a function of its number, from
// 0.
func ClusterSlotName(slot int) string { return clusterSlotPrefix + strconv.Itoa(slot) }

// ClusterSlotOf returns the slot of the cluster that a claim of that name holds, and whether it holds one.
func ClusterSlotOf(claim string) (int, bool) {
	number, found := strings.CutPrefix(claim, clusterSlotPrefix)
	slot, err := strconv.Atoi(number)
	return slot, found && err == nil && slot >= 0 && strconv.Itoa(slot) == number
}

const clusterSlotPrefix = "node-slot-"

// Table is what all processes share about the hard limit of the cluster.
type Table struct {
	// Most is the limit, 1 or more.
	Most int64
	// Places has, by the UID of a NodePool with slots of its own, its places: slots of the cluster, in the order in
	// which it got them. New ones are added at the end.
	Places map[string][]int
}

// The keys of a table's data.
const (
	tableMost   = "limit"
	tablePlaces = "places"
)

// ParseTable reads a table as [Table.Data] wrote it. The error names the key and what is wrong with it.
func ParseTable(data map[string]string) (Table, error) {
	most, err := strconv.ParseInt(data[tableMost], 10, 64)
	if err != nil || most < 1 {
		return Table{}, fmt.Errorf("key %s is %q: want a number of NodeClaims above 0", tableMost, data[tableMost])
	}
	t := Table{Most: most, Places: map[string][]int{}}
	if text := data[tablePlaces]; text != "" {
		if err := json.Unmarshal([]byte(text), &t.Places); err != nil {
			return Table{},
				fmt.Errorf("key %s is %q: want lists of slots by the UID of a NodePool, such as {\"UID\":[0,1]}: %w",
					tablePlaces, shortened(text), err)
		}
	}
	return t, nil
}

// shortened is the beginning of a text, as much as a message can hold.
func shortened(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

// Data returns the table as text, for a ConfigMap. Equal tables have equal texts.
func (t Table) Data() map[string]string {
	places := t.Places
	if places == nil {
		places = map[string][]int{}
	}
	text, err := json.Marshal(places) // in the order of its keys
	if err != nil {
		panic(fmt.Sprintf("lists of numbers have no text: %v", err))
	}
	return map[string]string{tableMost: strconv.FormatInt(t.Most, 10), tablePlaces: string(text)}
}

// Held says who has a slot of the cluster.
type Held int

const (
	Free   Held = iota
	ByPool      // a claim of the pool that is asked for
	ByAnother
)

// UsablePlaces returns those of a pool's places in which its own limit, n, lets it make a claim. count is the number
// of all its claims. Only the first n - count places without a claim of the pool are looked at; of these, the free
// ones are usable. A place where another pool's claim stands counts among the first ones: it may become free.
func UsablePlaces(places []int, n, count int64, held func(slot int) Held) []int {
	usable := []int{}
	for _, slot := range places {
		if n <= count {
			break
		}
		if who := held(slot); who != ByPool {
			n--
			if who == Free {
				usable = append(usable, slot)
			}
		}
	}
	return usable
}

// WithPlaces returns the table with places for a pool that wants to make want more claims, and whether that changed
// the table. The pool has n slots of its own and count claims. open are the slots that the limit of the cluster
// allows, ascending. Only the first n - count places without a claim of the pool are of use to it ([UsablePlaces]). If
// there are fewer, some are added. If there are as many, those that it cannot use are exchanged, for places further
// behind or for new ones: another pool's claim stands there, or they are not open. Slots that are no other pool's
// places are taken first.
func (t Table) WithPlaces(pool string, n, count int64, want int, open []int, held func(slot int) Held) (Table, bool) {
	own := slices.Clone(t.Places[pool])
	isOpen := func(slot int) bool { _, found := slices.BinarySearch(open, slot); return found }
	var inVain, behind []int // indexes in own: of no use, and of use if they were among the first
	room := max(0, n-count)
	lacks := min(int64(want), room)
	for i, slot := range own {
		switch who := held(slot); {
		case who == ByPool:
			continue
		case room == 0:
			if who == Free && isOpen(slot) {
				behind = append(behind, i)
			}
			continue
		case who == Free && isOpen(slot):
			lacks--
		default:
			inVain = append(inVain, i)
		}
		room--
	}
	fresh, changed := t.unplaced(pool, open), false
	for ; lacks > 0 && len(fresh) > 0 && room > 0; lacks, room = lacks-1, room-1 {
		own, fresh, changed = append(own, fresh[0]), fresh[1:], true
	}
	for ; lacks > 0 && len(behind) > 0 && len(inVain) > 0; lacks-- {
		own[inVain[0]], own[behind[0]] = own[behind[0]], own[inVain[0]]
		inVain, behind, changed = inVain[1:], behind[1:], true
	}
	for ; lacks > 0 && len(fresh) > 0 && len(inVain) > 0; lacks-- {
		own[inVain[0]], inVain, fresh, changed = fresh[0], inVain[1:], fresh[1:], true
	}
	if !changed {
		return t, false
	}
	more := Table{Most: t.Most, Places: maps.Clone(t.Places)}
	if more.Places == nil {
		more.Places = map[string][]int{}
	}
	more.Places[pool] = own
	return more, true
}

// unplaced returns those slots that are not places of the pool, first those that are no other pool's places either.
func (t Table) unplaced(pool string, slots []int) []int {
	own, others := map[int]bool{}, map[int]bool{}
	for uid, list := range t.Places {
		for _, slot := range list {
			if uid == pool {
				own[slot] = true
			} else {
				others[slot] = true
			}
		}
	}
	var nobodys, somebodys []int
	for _, slot := range slots {
		switch {
		case own[slot]:
		case others[slot]:
			somebodys = append(somebodys, slot)
		default:
			nobodys = append(nobodys, slot)
		}
	}
	return append(nobodys, somebodys...)
}

// NobodysFirst returns these slots, first those that are no pool's places.
func (t Table) NobodysFirst(slots []int) []int { return t.unplaced("", slots) }

// Without returns the table without the places of pools that are gone.
func (t Table) Without(gone func(uid string) bool) Table {
	fewer := Table{Most: t.Most, Places: make(map[string][]int, len(t.Places))}
	for uid, places := range t.Places {
		if !gone(uid) {
			fewer.Places[uid] = places
		}
	}
	return fewer
}
