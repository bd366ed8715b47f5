package limit_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
)

// world is a pool at the API server: the slots that hold a claim, and how many claims it has beside them.
type world struct {
	n       int64
	slots   map[int]bool
	outside int64        // made before the limit, or under names of the pool before
	hand    int64        // made by hand at any time
	late    map[int]bool // slots taken on a list from before the limit was lowered, since then
	down    bool         // the count has been within the limit since that was lowered
}

func (w *world) count() int64 { return int64(len(w.slots)) + w.outside + w.hand }

// own counts what the proof is about: not claims made by hand, nor those on their way when the limit was lowered.
func (w *world) own() int64 { return int64(len(w.slots)-len(w.late)) + w.outside }

// set changes the limit. Slots that it takes away hold claims like any other. Once it is lowered, all that is there
// counts as made before.
func (w *world) set(n int64) {
	if n < w.n {
		w.late, w.down = map[int]bool{}, false
	}
	w.n = n
}

// sight is a list that a writer took, with the slots that it may use.
type sight struct {
	usable []int
	old    bool // from before the limit was lowered
}

// step lets a writer or a user do something.
func (w *world) step(t *rapid.T, sights []sight) {
	s := &sights[rapid.IntRange(0, len(sights)-1).Draw(t, "writer")]
	switch rapid.SampledFrom([]string{"list", "list", "create", "create", "create", "go", "go", "outside goes", "hand",
		"hand goes", "set"}).Draw(t, "step") {
	case "list":
		*s = sight{usable: limit.Usable(w.n, w.count(), func(slot int) bool { return w.slots[slot] }, 100)}
	case "create": // also long after the list, also again: a name that exists is refused
		if len(s.usable) == 0 {
			return
		}
		slot := s.usable[rapid.IntRange(0, len(s.usable)-1).Draw(t, "which")]
		if !w.slots[slot] {
			w.slots[slot] = true
			if s.old {
				w.late[slot] = true
			}
		}
	case "go":
		for slot := range 9 {
			if w.slots[slot] && rapid.Bool().Draw(t, "goes") {
				delete(w.slots, slot)
				delete(w.late, slot)
				return
			}
		}
	case "outside goes":
		w.outside = max(0, w.outside-1)
	case "hand":
		w.hand++
	case "hand goes":
		w.hand = max(0, w.hand-1)
	case "set":
		n := rapid.Int64Range(0, 6).Draw(t, "new limit")
		for i := range sights {
			sights[i].old = sights[i].old || n < w.n
		}
		w.set(n)
	}
}

// L-14: writers use the lists that they took, in any order and with any delay. Once the count has come down to the
// limit, no more claims exist than it says, apart from claims made by hand, and creates on lists from before the limit
// was lowered. The argument is in docs/limits.md.
func TestUsableSlotsKeepTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{n: rapid.Int64Range(0, 6).Draw(t, "limit"), slots: map[int]bool{}, late: map[int]bool{},
			outside: rapid.Int64Range(0, 6).Draw(t, "outside")}
		for slot := range rapid.IntRange(0, 8).Draw(t, "slots") {
			if rapid.Bool().Draw(t, "held") {
				w.slots[slot] = true
			}
		}
		sights := make([]sight, 3)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(t, sights)
			w.down = w.down || w.own() <= w.n
			if w.down && w.own() > w.n {
				t.Fatalf("%d claims (%v, %d outside; late %v) at a limit of %d", w.own(), w.slots, w.outside, w.late,
					w.n)
			}
		}
	})
}

// A free slot can always be used when the count is below the limit, so the rule never holds a pool below it for good.
func TestUsableSlotsReachTheLimit(t *testing.T) {
	t.Parallel()
	for n := range int64(7) {
		for mask := range 1 << 7 {
			for outside := range int64(4) {
				taken, count := func(slot int) bool { return mask>>slot&1 == 1 }, outside
				for slot := range 7 {
					if taken(slot) {
						count++
					}
				}
				usable := limit.Usable(n, count, taken, 100)
				if want := max(0, n-count); int64(len(usable)) != want || !slices.IsSorted(usable) {
					t.Fatalf("limit %d, slots %07b, %d outside: usable %v, want %d", n, mask, outside, usable, want)
				}
			}
		}
	}
}

// L-17, L-03: which bound a static pool runs at.
func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ replicas, soft, hard, target, slots int64 }{
		{12, 10, limit.None, 10, 10}, {12, limit.None, 10, 10, 10}, {12, 5, 10, 10, 10}, {3, 5, 10, 3, 3},
		{3, limit.None, limit.None, 3, 3}, {0, 5, 5, 0, 0},
	} {
		l := limit.Limits{SoftNodes: c.soft, HardNodes: c.hard}
		target, exceeded := l.Target(c.replicas)
		if target != c.target || l.Slots(c.replicas) != c.slots || (exceeded != nil) != (target < c.replicas) {
			t.Errorf("%+v: target %d, slots %d, exceeded %+v", c, target, l.Slots(c.replicas), exceeded)
		}
	}
	if l := (limit.Limits{SoftNodes: 3, HardNodes: limit.None}); l.Slots(limit.None) != limit.None {
		t.Error("a soft limit gives slots")
	}
}

// L-31: replacements of a static pool's nodes keep to its node limit, hard or soft; without one there may be one for
// each claim.
func TestSurgeSlots(t *testing.T) {
	t.Parallel()
	const none = limit.None
	for _, c := range []struct{ replicas, soft, hard, count, want int64 }{
		{10, 12, none, 10, 12}, {10, 10, none, 10, 10}, {10, none, 12, 10, 12}, {10, 11, 12, 10, 12},
		{3, none, none, 4, 7}, {none, 12, none, 10, none}, {none, none, 12, 10, 12},
	} {
		if got := (limit.Limits{SoftNodes: c.soft, HardNodes: c.hard}).SurgeSlots(c.replicas, c.count); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// L-30, L-32, L-33: the smaller of budget and room below the hard limit bounds what is launched; soft limits do not
// (L-31).
func TestReplacements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		soft, hard int64
		budget     int
		count      int64
		want       limit.Disruptions
	}{
		{limit.None, 10, 3, 10, limit.Disruptions{Allowed: 0, ByLimit: true}},
		{limit.None, 10, 3, 12, limit.Disruptions{Allowed: 0, ByLimit: true}},
		{limit.None, 10, 3, 9, limit.Disruptions{Allowed: 1, ByLimit: true}},
		{limit.None, 10, 3, 7, limit.Disruptions{Allowed: 3}},
		{limit.None, 10, 0, 10, limit.Disruptions{Allowed: 0}}, // the budget alone would do
		{10, limit.None, 3, 10, limit.Disruptions{Allowed: 3}},
		{10, limit.None, -1, 10, limit.Disruptions{Allowed: 0}},
		{5, 10, 3, 8, limit.Disruptions{Allowed: 2, ByLimit: true}},
	} {
		if got := (limit.Limits{SoftNodes: c.soft, HardNodes: c.hard}).Replacements(c.budget, c.count); got != c.want {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

// L-42: leaving nodes are no excess; a negative number says how many of them could stay.
func TestExcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ soft, hard, replicas, count, leaving, want int64 }{
		{3, limit.None, limit.None, 5, 0, 2}, {3, limit.None, limit.None, 5, 2, 0},
		{3, limit.None, limit.None, 5, 4, -2},
		{3, 4, limit.None, 5, 0, 1}, {limit.None, limit.None, limit.None, 5, 1, -1},
		{limit.None, limit.None, 2, 5, 0, 3}, {4, limit.None, 2, 5, 1, 2}, {1, limit.None, 2, 5, 0, 4},
	} {
		if got := (limit.Limits{SoftNodes: c.soft, HardNodes: c.hard}).Excess(c.replicas, c.count,
			c.leaving); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}
