package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// L-30: a hard limit blocks a pool if it leaves no room while budgets leave some. Nodes being deleted or not ready use
// up the budgets.
func TestWhenAHardLimitHoldsAPoolUp(t *testing.T) {
	t.Parallel()
	ready, broken := func(*cluster.Node) {}, func(n *cluster.Node) { n.NotReady = true }
	for name, c := range map[string]struct {
		hard, used int64
		budgets    []engine.Budget
		change     func(*cluster.Node)
		want       bool
	}{
		"no limit":                {limit.None, 1, nil, ready, false},
		"no room":                 {1, 1, nil, ready, true},
		"above":                   {1, 2, nil, ready, true},
		"no room, budget of one":  {1, 1, []engine.Budget{{Max: 1}}, ready, true},
		"no room, budget of none": {1, 1, []engine.Budget{{Max: 0}}, ready, false},
		"no room, other reasons": {1, 1, []engine.Budget{{Max: 0, Reasons: []plan.DisruptionReason{plan.Empty}}},
			ready, true},
		"no room, budget used up": {1, 1, []engine.Budget{{Max: 1}}, broken, false},
		"room":                    {2, 1, []engine.Budget{{Max: 9}}, ready, false},
		"room, budget of none":    {2, 1, []engine.Budget{{Max: 0}}, ready, false},
	} {
		pool, node := somePool(), someNode()
		pool.Limits.HardNodes, pool.Used.Nodes = c.hard, c.used
		c.change(node)
		terms := engine.Terms{Budgets: map[string][]engine.Budget{"default": c.budgets}}
		if got := full(one(pool, node), terms, pool, plan.Drifted); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// due is a pool with one node, made due by change for some reasons.
type due struct {
	room             int64 // what the hard limit leaves; limit.None when there is no such limit
	change           func(*cluster.Pool, *cluster.Node)
	drifted, expired bool // whether the pool is to be told that its limit holds up the node
}

func drifts(_ *cluster.Pool, n *cluster.Node) { n.Drifted = true }

func expires(p *cluster.Pool, n *cluster.Node) { p.ExpiresGracefully, n.Expired = true, true }

func both(p *cluster.Pool, n *cluster.Node) { drifts(p, n); expires(p, n) }

// dues are pools of all kinds, all in one round.
func dues() map[string]due {
	return map[string]due{
		"full, drifted":         {0, drifts, true, false},
		"full, expired":         {0, expires, false, true},
		"full, both":            {0, both, true, true},
		"full, stuck":           {0, both, true, true},
		"full, neither":         {0, func(*cluster.Pool, *cluster.Node) {}, false, false},
		"full, expires at once": {0, func(_ *cluster.Pool, n *cluster.Node) { n.Expired = true }, false, false},
		"full, young": {0, func(p *cluster.Pool, _ *cluster.Node) { p.ExpiresGracefully = true }, false,
			false},
		"full, protected": {0, func(p *cluster.Pool, n *cluster.Node) {
			both(p, n)
			n.DoNotDisrupt = true
		}, false, false},
		"full, static": {0, func(p *cluster.Pool, n *cluster.Node) {
			both(p, n)
			p.Static = true
		}, false, false},
		"full, not listed":            {0, both, false, false},
		"full, goes":                  {0, both, false, false},
		"no limit":                    {limit.None, both, false, false},
		"too little room":             {1, both, true, true},
		"too little room, stuck":      {1, both, false, false},
		"too little room, neither":    {1, func(*cluster.Pool, *cluster.Node) {}, false, false},
		"zero room, after all others": {0, both, true, true},
	}
}

// removeUnlimited returns a plan that removes a node of each pool without a hard limit, unless it is stuck for another
// cause.
func removeUnlimited(s *cluster.Snapshot, _ engine.Terms) plan.Plan {
	var p plan.Plan
	for _, pool := range s.Pools {
		if pool.Limits.HardNodes == limit.None && !strings.HasSuffix(pool.Name, "stuck") {
			p.Removes = append(p.Removes, plan.Remove{Pool: pool.Name})
		}
	}
	return p
}

// L-34: a pool is told, once, if its hard limit keeps a drifted or expired node: it leaves no room, or so little that
// the node would go without the limit. Others are not told: pools whose node goes, stays for another cause or is not
// due, static pools, and pools missing on the API server.
func TestWhichPoolsAreToldOfTheirHardLimit(t *testing.T) {
	t.Parallel()
	for _, reason := range []plan.DisruptionReason{plan.Drifted, plan.Expired} {
		r := round{now: at(1000), pools: map[string]*karpenterv1.NodePool{}}
		parts := cluster.Snapshot{}
		var want []string
		for name, c := range dues() {
			pool, node := somePool(), someNode()
			pool.Name, pool.Used.Nodes = name, 1
			if c.room != limit.None {
				pool.Limits.HardNodes = c.room + pool.Used.Nodes
			}
			node.Name, node.Claim, node.Pool = name, name, name
			c.change(pool, node)
			parts.Pools, parts.Nodes = append(parts.Pools, pool), append(parts.Nodes, node)
			if name != "full, not listed" {
				r.pools[name] = &karpenterv1.NodePool{}
				r.pools[name].Name = name
			}
			if reason == plan.Drifted && c.drifted || reason == plan.Expired && c.expired {
				const text = "%s DisruptionBlocked: No allowed disruptions for disruption reason %s due to node hard limit"
				want = append(want, fmt.Sprintf(text, name, reason))
			}
		}
		r.snapshot = cluster.New(parts)
		tape := &controllertest.Tape{}
		c := New(Config{Events: tape, Metrics: metrics.New(prometheus.NewRegistry())})
		first := plan.Plan{Removes: []plan.Remove{{Pool: "full, goes"}}}
		c.reportDueBlocked(r, engine.Terms{Now: 1000}, first, reason, removeUnlimited)
		said := tape.Said()
		slices.Sort(said)
		if slices.Sort(want); !slices.Equal(said, want) {
			t.Errorf("%s: said %q, want %q", reason, said, want)
		}
	}
}

// L-34: a pool whose limit leaves no room is told without another plan, which would take time.
func TestNoPlanIsMadeAgainForAPoolWithoutRoom(t *testing.T) {
	t.Parallel()
	pool, node := somePool(), someNode()
	pool.Limits.HardNodes, pool.Used.Nodes, node.Drifted = 1, 1, true
	tape := &controllertest.Tape{}
	c := New(Config{Events: tape, Metrics: metrics.New(prometheus.NewRegistry())})
	c.reportDueBlocked(one(pool, node), engine.Terms{Now: 1000}, plan.Plan{}, plan.Drifted,
		func(*cluster.Snapshot, engine.Terms) plan.Plan {
			t.Error("the plan was made again")
			return plan.Plan{}
		})
	if len(tape.Said()) != 1 {
		t.Errorf("said %q, want one event", tape.Said())
	}
}

// L-14, L-30: asking what a pool would do without its hard limit changes neither the snapshot, on which nodes are
// launched, nor other pools.
func TestAQuestionWithoutLimitsChangesNothing(t *testing.T) {
	t.Parallel()
	parts := cluster.Snapshot{}
	for _, name := range []string{"a", "b"} {
		pool := somePool()
		pool.Name, pool.Limits.HardNodes, pool.FreeSlots = name, 3, []int{2}
		parts.Pools = append(parts.Pools, pool)
	}
	s := cluster.New(parts)
	free := unlimited(s, map[string]bool{"a": true})
	for name, c := range map[string]struct {
		pool *cluster.Pool
		hard int64
	}{
		"a, asked about": {free.Pool("a"), limit.None}, "b, asked about": {free.Pool("b"), 3},
		"a": {s.Pool("a"), 3}, "b": {s.Pool("b"), 3},
	} {
		if c.pool.Limits.HardNodes != c.hard || (c.pool.FreeSlots == nil) != (c.hard == limit.None) {
			t.Errorf("%s: limit %d, free slots %v; want %d", name, c.pool.Limits.HardNodes, c.pool.FreeSlots, c.hard)
		}
	}
}
