package limit_test

import (
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// nodes are limits on the number of nodes alone.
func nodes(soft, hard int64) limit.Limits { return limit.Limits{SoftNodes: soft, HardNodes: hard} }

// L-01: without a limit nothing is in the way.
func TestUnlimitedBlocksNothing(t *testing.T) {
	t.Parallel()
	l := limit.Unlimited()
	used := limit.Usage{Nodes: 1 << 40, Capacity: resources.Vector{1 << 40}}
	if e, ok := l.Check(used, resources.Vector{1}); !ok {
		t.Errorf("%+v is in the way", e)
	}
	if l.HasResources() || l.Above(used) || l.NodesLeft(used.Nodes) != int(limit.None) ||
		!l.Room(used, used.Capacity) {
		t.Errorf("resources are limited: %t, above: %t, nodes left: %d", l.HasResources(), l.Above(used),
			l.NodesLeft(used.Nodes))
	}
}

// L-01, L-02: only components that have a limit are limited, each by its own.
func TestEachComponentHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	l := limit.Unlimited().With(2, 10).With(0, 5) // component 1 has none
	if !l.HasResources() {
		t.Error("no resource is limited")
	}
	for _, c := range []struct {
		used, more resources.Vector
		want       limit.Exceeded // none when all fits
	}{
		{resources.Vector{4, 100, 4}, resources.Vector{1, 100, 6}, limit.Exceeded{}},
		{resources.Vector{4, 0, 0}, resources.Vector{2}, limit.Exceeded{Component: 0, Limit: 5, Used: 4, Request: 2}},
		{resources.Vector{0, 0, 9}, resources.Vector{0, 0, 2},
			limit.Exceeded{Component: 2, Limit: 10, Used: 9, Request: 2}},
	} {
		used := limit.Usage{Nodes: 3, Capacity: c.used}
		got, ok := l.Check(used, c.more)
		if got != c.want || ok != (c.want == limit.Exceeded{}) || l.Room(used, c.more) != ok {
			t.Errorf("%v more beside %v: %+v, ok %t; want %+v", c.more, c.used, got, ok, c.want)
		}
	}
	for _, c := range []struct {
		capacity resources.Vector
		want     bool
	}{
		{resources.Vector{3, 100, 7}, true}, {resources.Vector{4, 0, 7}, false}, {resources.Vector{3, 0, 8}, false},
	} {
		if got := l.Within(c.capacity, resources.Vector{3, 0, 7}); got != c.want {
			t.Errorf("%v is within {3 0 7}: %t, want %t", c.capacity, got, c.want)
		}
	}
}

// L-03, L-10: a node limit is checked before the resources, and the hard one instead of the soft one. The result says
// which limit is in the way, how much is used, and that one more was asked for.
func TestTheNodeLimitInTheWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits limit.Limits
		used   int64
		want   limit.Exceeded
		left   int
	}{
		{nodes(3, limit.None), 2, limit.Exceeded{}, 1},
		{nodes(3, limit.None), 3, limit.Exceeded{Component: limit.Nodes, Limit: 3, Used: 3, Request: 1}, 0},
		{nodes(3, limit.None), 5, limit.Exceeded{Component: limit.Nodes, Limit: 3, Used: 5, Request: 1}, 0},
		{nodes(limit.None, 3), 0, limit.Exceeded{}, 3},
		{nodes(limit.None, 3), 3, limit.Exceeded{Component: limit.Nodes, Limit: 3, Used: 3, Request: 1, Hard: true},
			0},
		{nodes(limit.None, 3), 4, limit.Exceeded{Component: limit.Nodes, Limit: 3, Used: 4, Request: 1, Hard: true},
			0},
		{nodes(2, 4), 3, limit.Exceeded{}, 1},
		{nodes(2, 4).With(0, 1), 4, limit.Exceeded{Component: limit.Nodes, Limit: 4, Used: 4, Request: 1, Hard: true},
			0},
	} {
		got, ok := c.limits.Check(limit.Usage{Nodes: c.used}, nil)
		if got != c.want || ok != (c.want == limit.Exceeded{}) {
			t.Errorf("%+v with %d nodes: %+v, ok %t; want %+v", c.limits, c.used, got, ok, c.want)
		}
		if left := c.limits.NodesLeft(c.used); left != c.left {
			t.Errorf("%+v with %d nodes: %d left, want %d", c.limits, c.used, left, c.left)
		}
	}
}

// L-31: a pool is above its limits when it has more than they allow, in nodes or in a resource; at them it is not.
func TestAboveTheLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits limit.Limits
		used   limit.Usage
		want   bool
	}{
		{nodes(2, limit.None), limit.Usage{Nodes: 2}, false},
		{nodes(2, limit.None), limit.Usage{Nodes: 3}, true},
		{nodes(0, limit.None), limit.Usage{Nodes: 1}, true},
		{nodes(1, 2), limit.Usage{Nodes: 2}, false},
		{nodes(limit.None, 2), limit.Usage{Nodes: 3}, true},
		{limit.Unlimited().With(0, 4), limit.Usage{Nodes: 9, Capacity: resources.Vector{4}}, false},
		{limit.Unlimited().With(0, 4), limit.Usage{Nodes: 9, Capacity: resources.Vector{5}}, true},
	} {
		if got := c.limits.Above(c.used); got != c.want {
			t.Errorf("%+v with %+v: above %t, want %t", c.limits, c.used, got, c.want)
		}
	}
}

// L-17: a static pool runs its replicas, or as many as its limit allows; then it says which limit is in the way.
func TestTheTargetOfAStaticPool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits   limit.Limits
		replicas int64
		want     int64
		why      limit.Exceeded
	}{
		{limit.Unlimited(), 3, 3, limit.Exceeded{}},
		{nodes(3, limit.None), 3, 3, limit.Exceeded{}},
		{nodes(3, limit.None), 5, 3, limit.Exceeded{Component: limit.Nodes, Limit: 3, Used: 5}},
		{nodes(9, 2), 5, 2, limit.Exceeded{Component: limit.Nodes, Limit: 2, Used: 5, Hard: true}},
	} {
		got, exceeded := c.limits.Target(c.replicas)
		var why limit.Exceeded
		if exceeded != nil {
			why = *exceeded
		}
		if got != c.want || why != c.why || (exceeded == nil) != (c.why == limit.Exceeded{}) {
			t.Errorf("%+v, %d replicas: %d since %+v; want %d since %+v", c.limits, c.replicas, got, why, c.want,
				c.why)
		}
	}
}

// L-14: the usable slots are the n - count lowest free ones below n, even when the count is too low for the slots that
// are taken. No more are listed than were asked for.
func TestUsableSlotsAreTheLowestFreeOnes(t *testing.T) {
	t.Parallel()
	taken := func(slots ...int) func(int) bool { return func(slot int) bool { return slices.Contains(slots, slot) } }
	for _, c := range []struct {
		n, count int64
		taken    func(int) bool
		most     int
		want     []int
	}{
		{4, 2, taken(0, 2), 9, []int{1, 3}},
		{4, 3, taken(0, 2), 9, []int{1}},
		{4, 9, taken(), 9, nil},
		{2, 0, taken(0), 9, []int{1}},
		{2, 0, taken(0, 1), 9, nil},
		{9, 0, taken(1), 3, []int{0, 2, 3}},
		{9, 0, taken(), 0, nil},
	} {
		if got := limit.Usable(c.n, c.count, c.taken, c.most); !slices.Equal(got, c.want) {
			t.Errorf("n %d, count %d, at most %d: %v, want %v", c.n, c.count, c.most, got, c.want)
		}
	}
}

// L-14: the name of a slot is the same for every writer and every version, and no other name stands for a slot.
func TestNamesOfSlots(t *testing.T) {
	t.Parallel()
	const pool, uid = "default", "0123456789abcdef"
	if got, want := limit.SlotName(pool, uid, 12), "default-01234567-12"; got != want {
		t.Errorf("slot 12 is named %q, want %q", got, want)
	}
	if got, want := limit.SlotName(pool, "uid", 0), "default-uid-0"; got != want {
		t.Errorf("slot 0 is named %q, want %q", got, want)
	}
	for name, want := range map[string]int{
		"default-01234567-0": 0, "default-01234567-12": 12,
		"default-01234567-": -1, "default-01234567--1": -1, "default-01234567-07": -1, "default-01234567-x": -1,
		"default-01234567-+3": -1,
		"default-fedcba98-0":  -1, "other-01234567-0": -1, "default-0": -1, "3": -1,
		"default-01234567-99999999999999999999": -1,
	} {
		if slot, held := limit.SlotOf(name, pool, uid); held != (want >= 0) || held && slot != want {
			t.Errorf("%s holds slot %d: %t, want %d", name, slot, held, want)
		}
	}
}
