package engine_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// ready is a node of the pool default that nothing keeps from being disrupted.
func ready(name string) *cluster.Node {
	return &cluster.Node{
		Name: name, Claim: name + "-claim", ClaimUID: "uid-of-" + name, Pool: "default", Launched: true,
		Registered: true, Initialized: true,
	}
}

func snapshotOf(nodes ...*cluster.Node) *cluster.Snapshot {
	return cluster.New(cluster.Snapshot{Version: 7, Nodes: nodes, Pools: []*cluster.Pool{{Name: "default",
		Limits: limit.Unlimited()}}})
}

// D-02, D-10: each of these alone keeps a node from being chosen, for whatever reason.
func TestWhatMayBeDisrupted(t *testing.T) {
	t.Parallel()
	pod := func(p cluster.Pod) *cluster.Pod { p.Shape = &cluster.Shape{}; return &p }
	for name, c := range map[string]struct {
		change func(*cluster.Node)
		may    bool
	}{
		"nothing":             {func(*cluster.Node) {}, true},
		"a pod":               {func(n *cluster.Node) { n.Pods = []*cluster.Pod{pod(cluster.Pod{})} }, true},
		"no claim":            {func(n *cluster.Node) { n.Claim = "" }, false},
		"no node":             {func(n *cluster.Node) { n.Name = "" }, false},
		"not initialized":     {func(n *cluster.Node) { n.Initialized = false }, false},
		"is deleted":          {func(n *cluster.Node) { n.Deleting = true }, false},
		"is marked":           {func(n *cluster.Node) { n.Disrupting = true }, false},
		"is not ready":        {func(n *cluster.Node) { n.NotReady = true }, false},
		"pool is gone":        {func(n *cluster.Node) { n.Pool = "gone" }, false},
		"says do-not-disrupt": {func(n *cluster.Node) { n.DoNotDisrupt = true }, false},
		"pod says do-not-disrupt": {
			func(n *cluster.Node) { n.Pods = []*cluster.Pod{pod(cluster.Pod{DoNotDisrupt: true})} }, false,
		},
		"is held":                    {func(n *cluster.Node) { n.Held = "by a budget" }, false},
		"replaces what is there":     {func(n *cluster.Node) { n.Replaces = []string{"gone", "old-claim"} }, false},
		"replaced what is gone":      {func(n *cluster.Node) { n.Replaces = []string{"gone"} }, true},
		"replaces nothing by a typo": {func(n *cluster.Node) { n.Replaces = []string{"gone", ""} }, true},
	} {
		node, unmanaged := ready("n1"), &cluster.Node{Name: "by-hand"}
		c.change(node)
		if may := engine.Disruptable(snapshotOf(node, ready("old"), unmanaged), node); may != c.may {
			t.Errorf("%s: may be disrupted %t, want %t", name, may, c.may)
		}
	}
}

// V-07, D-08: percentages of budgets refer to initialized nodes. A budget is used up by nodes that go, and by those
// that are not ready after they once were. Nodes without a NodeClaim do not count, nor do nodes without a pool.
func TestWhatBudgetsCount(t *testing.T) {
	t.Parallel()
	node := func(name string, change func(*cluster.Node)) *cluster.Node {
		n := ready(name)
		change(n)
		return n
	}
	s := snapshotOf(ready("a"), node("b", func(n *cluster.Node) { n.Pool = "other" }),
		node("c", func(n *cluster.Node) { n.Deleting = true }),
		node("d", func(n *cluster.Node) { n.Disrupting = true }),
		node("e", func(n *cluster.Node) { n.NotReady = true }),
		node("f", func(n *cluster.Node) { n.Initialized, n.NotReady = false, true }),
		node("g", func(n *cluster.Node) { n.Claim, n.NotReady = "", true }),
		node("h", func(n *cluster.Node) { n.Pool, n.Deleting, n.Initialized = "", true, false }))
	if got, want := engine.Sizes(s), map[string]int{"default": 4, "other": 1}; !maps.Equal(got, want) {
		t.Errorf("sizes %v, want %v", got, want)
	}
	if got, want := engine.Taken(s), map[string]int{"default": 3}; !maps.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
}

// Holding leaves a reason no budget in some pools, and everything else as it was.
func TestHoldingAReason(t *testing.T) {
	t.Parallel()
	given := map[string][]engine.Budget{"a": {{Max: 5}}}
	for _, budgets := range []map[string][]engine.Budget{given, nil} {
		terms := engine.Terms{Now: 9, Budgets: budgets}.Holding(map[string]bool{"a": true, "b": true, "c": false},
			plan.Drifted)
		rest := 5
		if budgets == nil {
			rest = engine.Allowed(nil, plan.Empty)
		}
		for _, c := range []struct {
			pool   string
			reason plan.DisruptionReason
			want   int
		}{
			{"a", plan.Drifted, 0}, {"a", plan.Empty, rest}, {"b", plan.Drifted, 0},
			{"b", plan.Empty, engine.Allowed(nil, plan.Empty)}, {"c", plan.Drifted, engine.Allowed(nil, plan.Drifted)},
		} {
			if got := engine.Allowed(terms.Budgets[c.pool], c.reason); got != c.want {
				t.Errorf("budgets %v: pool %s may have %d disrupted for %s, want %d", budgets, c.pool, got, c.reason,
					c.want)
			}
		}
		if terms.Now != 9 {
			t.Errorf("the time is %d", terms.Now)
		}
	}
	if want := (map[string][]engine.Budget{"a": {{Max: 5}}}); !reflect.DeepEqual(given, want) {
		t.Errorf("the terms that were given are %v now", given)
	}
}

// A plan says which snapshot it is based on. A removal names its claim and node, with the UID of the claim: names are
// used again.
func TestPlansSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	script := "type m5.large cpu=2 mem=8Gi zones=a od=0.096\npool default nodes=1\n" +
		"node n1 type=m5.large zone=a pool=default drifted\nnode n2 type=m5.large zone=a pool=default\npod web cpu=1 node=n2"
	for name, of := range map[string]func(*cluster.Snapshot) plan.Plan{
		"trim":        func(s *cluster.Snapshot) plan.Plan { return engine.Trim(s, nil) },
		"empty":       func(s *cluster.Snapshot) plan.Plan { return engine.Emptiness(s, 0, nil) },
		"consolidate": func(s *cluster.Snapshot) plan.Plan { return engine.Consolidate(s, engine.Terms{}) },
		"drift":       func(s *cluster.Snapshot) plan.Plan { return engine.Drift(s, engine.Terms{}) },
	} {
		s, err := enginetest.Parse(script)
		if err != nil {
			t.Fatal(err)
		}
		s.Version = 12
		p := of(s)
		if p.BasedOn != 12 || !slices.Equal(p.Names, s.Names) {
			t.Errorf("%s: based on %d with the resources %v, want 12 and %v", name, p.BasedOn, p.Names, s.Names)
		}
		if len(p.Removes) != 1 || p.Removes[0].Claim != "n1-claim" || p.Removes[0].ClaimUID != "uid-of-n1" ||
			p.Removes[0].Node != "n1" {
			t.Errorf("%s: removes %+v, want n1 by its claim, its UID and its node", name, p.Removes)
		}
	}
}

// E-26, D-09: a node was chosen to save money, and nobody knows its price any more. It goes only if nothing is
// launched for it.
func TestNothingIsLaunchedToSaveAnUnknownPrice(t *testing.T) {
	t.Parallel()
	const script = `
type small     cpu=2 mem=8Gi zones=a od=0.096
type large     cpu=8 mem=32Gi zones=a od=PRICE
pool default
node n1        type=large zone=a pool=default
node n2        type=large zone=a pool=default
pod a          cpu=1 node=n1
pod b          cpu=FULL node=n2`
	for name, c := range map[string]struct {
		price, full string
		reason      plan.DisruptionReason
		want        bool
	}{
		"it has a price, and a small node will do": {"0.400", "7800m", plan.Underutilized, true},
		"it has none": {"1000000", "7800m", plan.Underutilized, false},
		"it has none, and its pod fits elsewhere": {"1000000", "1", plan.Underutilized, true},
		"it has none, and is drifted":             {"1000000", "7800m", plan.Drifted, true},
	} {
		s, err := enginetest.Parse(strings.NewReplacer("PRICE", c.price, "FULL", c.full).Replace(script))
		if err != nil {
			t.Fatal(err)
		}
		if got := engine.Holds(s, c.reason, s.Nodes[0]); got != c.want {
			t.Errorf("%s: %s may go: %t, want %t", name, s.Nodes[0].Name, got, c.want)
		}
	}
}
