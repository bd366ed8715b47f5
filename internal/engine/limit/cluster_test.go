package limit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
)

// K-53: a table reads back as it was written, and what cannot be one is refused with its key.
func TestK53_ATableIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	table := limit.Table{Most: 7, Places: map[string][]int{"b": {3, 1}, "a": {0}}}
	data := table.Data()
	if want := `{"a":[0],"b":[3,1]}`; data["limit"] != "7" || data["places"] != want {
		t.Fatalf("wrote %v, want limit 7 and %s", data, want)
	}
	read, err := limit.ParseTable(data)
	if err != nil || read.Most != 7 || !slices.Equal(read.Places["b"], []int{3, 1}) {
		t.Fatalf("read %+v, %v", read, err)
	}
	for key, bad := range map[string]map[string]string{
		"limit":  {"limit": "0"},
		"limit ": {},
		"places": {"limit": "7", "places": `["a"]`},
	} {
		if _, err := limit.ParseTable(bad); err == nil ||
			!strings.Contains(err.Error(), "key "+strings.TrimSpace(key)) {
			t.Errorf("%v: %v, want it refused, with the key %s", bad, err, key)
		}
	}
}

// K-53: the slots of the cluster have names of their own, which are no slot of a pool.
func TestK53_SlotsOfTheCluster(t *testing.T) {
	t.Parallel()
	if slot, is := limit.ClusterSlotOf(limit.ClusterSlotName(12)); !is || slot != 12 {
		t.Fatalf("%s is slot %d, %t", limit.ClusterSlotName(12), slot, is)
	}
	for _, name := range []string{"node-slot-", "node-slot-01", "node-slot--1", "default-12345678-0",
		limit.SlotName("node-slot", "12345678", 3)} {
		if slot, is := limit.ClusterSlotOf(name); is {
			t.Errorf("%s is slot %d of the cluster, want none", name, slot)
		}
	}
}

// clusterModel is a cluster with a hard limit, and writers that act on what they read long ago.
type clusterModel struct {
	table  limit.Table
	claims map[string]string // the pool of each, by name
	pools  map[string]int64  // their own limits, limit.None for none
	views  []clusterView
	// moved is when a place was last taken out of a pool's list, by pool, in steps.
	moved map[string]int
	step  int
	next  int

	version int // of the table
}

type clusterView struct {
	pool   string
	at     int
	table  limit.Table
	claims map[string]string

	version int
}

func (m *clusterModel) count(pool string, claims map[string]string) (n int64) {
	for _, of := range claims {
		if of == pool {
			n++
		}
	}
	return n
}

// look reads the table first and then the claims, as a writer does.
func (m *clusterModel) look(pool string) clusterView {
	v := clusterView{pool: pool, at: m.step, version: m.version, table: m.table, claims: map[string]string{}}
	for name, of := range m.claims {
		v.claims[name] = of
	}
	return v
}

func (v clusterView) held(slot int) limit.Held {
	of, is := v.claims[limit.ClusterSlotName(slot)]
	switch {
	case !is:
		return limit.Free
	case of == v.pool:
		return limit.ByPool
	}
	return limit.ByAnother
}

func (v clusterView) open() []int {
	return limit.Usable(v.table.Most, int64(len(v.claims)), func(s int) bool { return v.held(s) != limit.Free }, 100)
}

// usable lists where a writer with that view may create.
func (m *clusterModel) usable(v clusterView) []int {
	open := v.open()
	if m.pools[v.pool] == limit.None {
		return open
	}
	places := limit.UsablePlaces(v.table.Places[v.pool], m.pools[v.pool], m.count(v.pool, v.claims), v.held)
	return slices.DeleteFunc(places, func(s int) bool { return !slices.Contains(open, s) })
}

func newClusterModel(t *rapid.T) *clusterModel {
	m := &clusterModel{claims: map[string]string{}, pools: map[string]int64{}, moved: map[string]int{}}
	m.table = limit.Table{Most: rapid.Int64Range(1, 5).Draw(t, "limit"), Places: map[string][]int{}}
	for _, pool := range []string{"a", "b", "free"} {
		m.pools[pool] = limit.None
		if pool != "free" {
			m.pools[pool] = rapid.Int64Range(0, 4).Draw(t, "limit of "+pool)
		}
		for range rapid.IntRange(0, 2).Draw(t, "claims from before of "+pool) {
			if m.next++; int64(len(m.claims)) < m.table.Most &&
				(m.pools[pool] == limit.None || m.count(pool, m.claims) < m.pools[pool]) {
				m.claims[fmt.Sprint("old-", m.next)] = pool
			}
		}
	}
	return m
}

// K-53, the argument of ADR 0023: writers look, and create long after that, in any order. Meanwhile claims go, and
// places are given and exchanged. There are never more claims than the limit of the cluster, nor more of a pool than
// its own. That holds as long as no create rests on what was read before one of the pool's places was taken out.
func TestK53_NoOrderOfWritersBreaksTheLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newClusterModel(t)
		pool := rapid.SampledFrom([]string{"a", "b", "free"})
		for ; m.step < 60; m.step++ {
			switch rapid.SampledFrom([]string{"look", "look", "create", "create", "create", "go", "give",
				"give"}).Draw(t, "what") {
			case "look":
				m.views = append(m.views, m.look(pool.Draw(t, "pool")))
			case "create":
				m.create(t)
			case "go":
				if len(m.claims) > 0 {
					names := slices.Sorted(keys(m.claims))
					delete(m.claims, rapid.SampledFrom(names).Draw(t, "goes"))
				}
			case "give":
				m.give(t, pool.Draw(t, "pool"))
			}
		}
	})
}

func (m *clusterModel) create(t *rapid.T) {
	if len(m.views) == 0 {
		return
	}
	v := m.views[rapid.IntRange(0, len(m.views)-1).Draw(t, "view")]
	slots := m.usable(v)
	if at, is := m.moved[v.pool]; len(slots) == 0 || is && v.at <= at {
		return
	}
	name := limit.ClusterSlotName(rapid.SampledFrom(slots).Draw(t, "slot"))
	if _, exists := m.claims[name]; exists {
		return // AlreadyExists
	}
	m.claims[name] = v.pool
	if int64(len(m.claims)) > m.table.Most {
		t.Fatalf("%v: %d claims, the limit of the cluster is %d", m.claims, len(m.claims), m.table.Most)
	}
	if own := m.pools[v.pool]; own != limit.None && m.count(v.pool, m.claims) > own {
		t.Fatalf("%v: %d claims of pool %s, its limit is %d; places %v", m.claims, m.count(v.pool, m.claims), v.pool,
			own, m.table.Places)
	}
}

// give gives a pool places by a view that may be old, unless somebody has changed the table since: it is changed under
// its resourceVersion.
func (m *clusterModel) give(t *rapid.T, pool string) {
	own := m.pools[pool]
	if own == limit.None {
		return
	}
	fit := slices.DeleteFunc(slices.Clone(m.views), func(v clusterView) bool {
		return v.version != m.version || v.pool != pool
	})
	v := rapid.SampledFrom(append(fit, m.look(pool))).Draw(t, "view")
	before := m.table.Places[pool]
	more, changed := m.table.WithPlaces(pool, own, m.count(pool, v.claims), rapid.IntRange(1, 3).Draw(t, "wants"),
		v.open(), v.held)
	if !changed {
		return
	}
	after := more.Places[pool]
	if len(after) > max(int(own), len(before)) {
		t.Fatalf("pool %s has %d places, its limit is %d", pool, len(after), own)
	}
	if !slices.Equal(after[:len(before)], before) {
		m.moved[pool] = m.step
	}
	m.table = more
	m.version++
}

// K-53: nobody starves. When a pool cannot use its places and the cluster has room, it gets as many usable ones as its
// own limit allows.
func TestK53_APoolGetsPlacesThatItCanUse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newClusterModel(t)
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			v := m.look(rapid.SampledFrom([]string{"a", "b", "free"}).Draw(t, "pool"))
			m.give(t, v.pool)
			m.step++
			m.views = []clusterView{m.look(v.pool)}
			m.create(t)
			m.step++
			if m.pools["a"] > 1 && rapid.IntRange(0, 4).Draw(t, "lowers") == 0 {
				m.pools["a"]--
			}
		}
		v := m.look("a")
		want := int(min(m.pools["a"]-m.count("a", v.claims), int64(len(v.open())), 2))
		if more, changed := m.table.WithPlaces("a", m.pools["a"], m.count("a", v.claims), 2, v.open(),
			v.held); changed {
			m.table = more
		}
		if got := len(m.usable(m.look("a"))); got < want {
			t.Fatalf("pool a has %d places that it can use, want %d: claims %v, places %v, limit %d of %d",
				got, want, m.claims, m.table.Places,
				m.pools["a"], m.table.Most)
		}
	})
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// K-53: a place with another pool's claim counts among those that the pool's limit allows, though it cannot be used.
// When it becomes free, a writer that looks then may use it, beside those that looked before. The example of ADR 0023:
// limit 3, two claims in no place.
func TestK53_APlaceWithAnotherPoolsClaimCounts(t *testing.T) {
	t.Parallel()
	held := func(taken ...int) func(int) limit.Held {
		return func(slot int) limit.Held {
			if slices.Contains(taken, slot) {
				return limit.ByAnother
			}
			return limit.Free
		}
	}
	places := []int{0, 1, 2}
	before, after := limit.UsablePlaces(places, 3, 2, held(0)), limit.UsablePlaces(places, 3, 2, held())
	if len(before) != 0 || !slices.Equal(after, []int{0}) {
		t.Fatalf("usable are %v while another pool's claim stands in place 0, and then %v: want none, and then [0]",
			before, after)
	}
}

// K-53: how the places of a pool change. It has a limit of its own and two claims in slots 0 and 1; another pool has
// the slots listed in others. There are only slots 0 to 5.
func TestK53_PlacesOfAPool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		places  []int
		limit   int64
		want    int
		others  []int
		becomes []int // nil for no change
	}{
		"it needs one more": {places: []int{0, 1}, limit: 4, want: 1,
			becomes: []int{0, 1, 2}},
		"it has what it needs": {places: []int{0, 1, 4}, limit: 4, want: 1},
		"no more than its limit allows": {places: []int{0, 1}, limit: 3, want: 3,
			becomes: []int{0, 1, 2}},
		"at its limit": {places: []int{0, 1}, limit: 2, want: 1},
		"a place is taken by another pool": {places: []int{0, 1, 2}, limit: 3, want: 1, others: []int{2},
			becomes: []int{0, 1, 3}},
		"one further behind is free": {places: []int{0, 1, 2, 3}, limit: 3, want: 1, others: []int{2},
			becomes: []int{0, 1, 3, 2}},
		"another pool has all other slots": {places: []int{0, 1, 2}, limit: 3, want: 1,
			others: []int{2, 3, 4, 5}},
		"its claims stand in no place": {limit: 3, want: 2, becomes: []int{2}},
		"one is taken, and there is room for another": {places: []int{0, 1, 2}, limit: 4, want: 1, others: []int{2},
			becomes: []int{0, 1, 2, 3}},
	} {
		held := func(slot int) limit.Held {
			switch {
			case slot < 2:
				return limit.ByPool
			case slices.Contains(c.others, slot):
				return limit.ByAnother
			}
			return limit.Free
		}
		var open []int
		for slot := range 6 {
			if held(slot) == limit.Free {
				open = append(open, slot)
			}
		}
		before := limit.Table{Most: 6, Places: map[string][]int{"a": c.places}}
		after, changed := before.WithPlaces("a", c.limit, 2, c.want, open, held)
		if want := c.becomes; changed != (want != nil) || changed && !slices.Equal(after.Places["a"], want) {
			t.Errorf("%s: places %v become %v, want %v", name, c.places, after.Places["a"], want)
		}
	}
}
