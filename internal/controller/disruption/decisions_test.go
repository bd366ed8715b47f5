package disruption

import (
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
)

func at(seconds int64) time.Time { return time.Unix(seconds, 0) }

// one is a round over one node of one pool, at 1,000 s.
func one(pool *cluster.Pool, node *cluster.Node, pending ...*cluster.Pod) round {
	for _, pod := range append(pending, node.Pods...) {
		pod.Shape = &cluster.Shape{}
	}
	s := cluster.Snapshot{Nodes: []*cluster.Node{node}, Pending: pending}
	r := round{now: at(1000), pools: map[string]*karpenterv1.NodePool{}, budgets: map[string][]engine.Budget{}}
	if pool != nil {
		s.Pools, r.pools[pool.Name] = []*cluster.Pool{pool}, &karpenterv1.NodePool{}
	}
	r.snapshot = cluster.New(s)
	return r
}

func someNode() *cluster.Node {
	return &cluster.Node{
		Name: "n1", Claim: "c1", ClaimUID: "u1", Pool: "default", Launched: true, Registered: true, Initialized: true,
		ConsolidatableAt: 1000,
	}
}

func somePool() *cluster.Pool { return &cluster.Pool{Name: "default", Limits: limit.Unlimited()} }

// D-02, V-15: a node that would go but may not reports why; others report nothing.
func TestWhatANodeSaysThatStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*cluster.Pool, *cluster.Node)
		pods   []*cluster.Pod
		want   string
	}{
		"nothing holds it": {func(*cluster.Pool, *cluster.Node) {}, nil, ""},
		"empty": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt = true }, nil,
			"DoNotDisruptNode"},
		"with a daemon": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt = true },
			[]*cluster.Pod{{Fixed: true}}, "DoNotDisruptNode"},
		"the daemon's word": {func(*cluster.Pool, *cluster.Node) {}, []*cluster.Pod{{Fixed: true}, {Namespace: "a",
			Name: "b", Fixed: true, DoNotDisrupt: true}}, "DoNotDisruptPod"},
		"in use": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt = true }, []*cluster.Pod{{}},
			"DoNotDisruptNode"},
		"no claim": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Claim = true, "" },
			[]*cluster.Pod{{}}, ""},
		"no node": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Name = true, "" },
			[]*cluster.Pod{{}}, ""},
		"not initialized": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Initialized = true, false },
			[]*cluster.Pod{{}}, ""},
		"empty, no claim": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Claim = true, "" }, nil, ""},
		"empty, no node":  {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Name = true, "" }, nil, ""},
		"empty, new": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Initialized = true, false }, nil,
			""},
		"pool gone": {func(_ *cluster.Pool, n *cluster.Node) { n.Pool = "gone" }, []*cluster.Pod{{}},
			"PoolGone"},
		"pool gone, new": {func(_ *cluster.Pool, n *cluster.Node) { n.Pool, n.Initialized = "gone", false },
			[]*cluster.Pod{{}}, ""},
		"no pool": {func(_ *cluster.Pool, n *cluster.Node) { n.Pool = "" }, []*cluster.Pod{{}}, ""},
		"pool gone, bare": {func(_ *cluster.Pool, n *cluster.Node) { n.Pool, n.Claim = "gone", "" },
			[]*cluster.Pod{{}}, ""},
		"not ready": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.NotReady = true, true },
			[]*cluster.Pod{{}}, ""},
		"goes": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Deleting = true, true },
			[]*cluster.Pod{{}}, ""},
		"chosen": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.Disrupting = true, true },
			[]*cluster.Pod{{}}, ""},
		"held": {func(_ *cluster.Pool, n *cluster.Node) { n.Held = "a budget" }, []*cluster.Pod{{}},
			"PodDisruptionBudget"},
		"held, empty": {func(_ *cluster.Pool, n *cluster.Node) { n.Held, n.ConsolidatableAt = "a budget", 1001 }, nil,
			""},
		"static": {func(p *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, p.Static = true, true },
			[]*cluster.Pod{{}}, ""},
		"not quiet yet": {func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt, n.ConsolidatableAt = true, 1001 },
			[]*cluster.Pod{{}}, ""},
		"when empty": {func(p *cluster.Pool, n *cluster.Node) {
			n.DoNotDisrupt, p.Consolidates = true,
				cluster.WhenEmpty
		}, []*cluster.Pod{{}}, ""},
		"drifted": {func(p *cluster.Pool, n *cluster.Node) {
			n.DoNotDisrupt, n.Drifted, p.Consolidates = true, true, cluster.WhenEmpty
		}, []*cluster.Pod{{}}, "DoNotDisruptNode Drifted"},
		"expired": {func(p *cluster.Pool, n *cluster.Node) {
			n.DoNotDisrupt, n.Expired, p.ExpiresGracefully, p.Consolidates = true, true, true, cluster.WhenEmpty
		}, []*cluster.Pod{{}}, "DoNotDisruptNode Expired"},
		"expired at once": {func(p *cluster.Pool, n *cluster.Node) {
			n.DoNotDisrupt, n.Expired, p.Consolidates = true, true, cluster.WhenEmpty
		}, []*cluster.Pod{{}}, ""},
		"graceful, not expired": {func(p *cluster.Pool, n *cluster.Node) {
			n.DoNotDisrupt, p.ExpiresGracefully, p.Consolidates = true, true, cluster.WhenEmpty
		}, []*cluster.Pod{{}}, ""},
	} {
		pool, node := somePool(), someNode()
		node.Pods = c.pods
		c.change(pool, node)
		got := ""
		if standing, so := engine.WhyBlocked(one(pool, node).snapshot, 1000, node); so {
			got = strings.TrimSpace(string(standing.Cause) + " " + string(standing.Wanted))
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// D-06: a pool pauses after a failure, each time twice as long up to 16 minutes, and starts again after a success. A
// second failure during the pause is of the same command. An earlier process's pause counts if it lasts longer.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	m, now := newMemory(), at(1000)
	for _, want := range []time.Duration{10 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute,
		8 * time.Minute, 16 * time.Minute, 16 * time.Minute} {
		first := time.Minute
		if want < first {
			first = want
		}
		p, begins := m.failed("a", first, now)
		if !begins || p.length != want || !p.until.Equal(now.Add(want)) || !m.pauseEnds(now).Equal(p.until) {
			t.Errorf("pause %+v, begins %t, ends %s; want %s", p, begins, m.pauseEnds(now), want)
		}
		if again, begins := m.failed("a", first, p.until.Add(-1)); begins || again != p ||
			!m.paused("a", p.until.Add(-1)) {
			t.Errorf("while it pauses: %+v, begins %t", again, begins)
		}
		if now = p.until; m.paused("a", now) || !m.pauseEnds(now).IsZero() {
			t.Error("the pause does not end")
		}
	}
	m.settled("a")
	if p, _ := m.failed("a", time.Minute, now); p.length != time.Minute {
		t.Errorf("after a success the pause is %s", p.length)
	}
	m.recall("a", pause{length: time.Second, until: now})
	m.recall("b", pause{length: time.Second, until: now.Add(time.Second)})
	m.recall("c", pause{length: time.Second, until: now.Add(time.Hour)})
	if !m.paused("a", now.Add(59*time.Second)) || !m.pauseEnds(now).Equal(now.Add(time.Second)) {
		t.Errorf("a is paused: %t; the first pause ends at %s", m.paused("a", now.Add(59*time.Second)),
			m.pauseEnds(now))
	}
}

// D-04, B-22: a search that found nothing is done again after 10 s, the same one after a minute; the first at once.
// The same one need not be complete, for ten minutes.
func TestAFruitlessSearchIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	ask := func(version uint64, most int) engine.Question {
		return engine.Terms{Budgets: map[string][]engine.Budget{"a": {{Max: most}}}}.Question(
			&cluster.Snapshot{Version: version, Pools: []*cluster.Pool{{Name: "a"}}})
	}
	m, q := newMemory(), ask(1, 1)
	if rest, again := m.rest(q, at(1000)); rest != 0 || again {
		t.Errorf("the first search waits for %s, again %t", rest, again)
	}
	m.fruitless(q, false, at(1000))
	for _, c := range []struct {
		q     engine.Question
		after int64
		want  time.Duration
		again bool
	}{
		{q, 0, time.Minute, true}, {q, 59, time.Second, true}, {q, 61, 0, true}, {q, 600, 0, false},
		{ask(2, 1), 0, 10 * time.Second, false}, {ask(2, 1), 9, time.Second, false}, {ask(1, 2), 11, 0, false},
	} {
		if rest, again := m.rest(c.q, at(1000+c.after)); rest != c.want || again != c.again {
			t.Errorf("%+v after %d s waits for %s, again %t; want %s, %t", c.q, c.after, rest, again, c.want, c.again)
		}
	}
	m.fruitless(q, true, at(1500))
	if _, again := m.rest(q, at(1600)); again {
		t.Error("no search was complete for ten minutes, and the next one is not")
	}
	m.fruitless(q, false, at(1600))
	if _, again := m.rest(q, at(1700)); !again {
		t.Error("a complete search is repeated as a whole")
	}
}

// D-06: an earlier process's record on the pool is read with care: a pause of more than 16 minutes is cut, and an
// invalid record costs one try.
func TestANotedPauseIsReadBack(t *testing.T) {
	t.Parallel()
	until := at(2000).UTC().Format(time.RFC3339)
	for text, want := range map[string]time.Duration{
		until + " 1m0s": 2 * time.Minute, until + " 9h0m0s": 16 * time.Minute, until + " -5m0s": 10 * time.Second,
		until + " long": 0, "soon 1m0s": 0, until: 0, "": 0,
	} {
		c := New(Config{})
		pool := &karpenterv1.NodePool{}
		if pool.Name = "a"; text != "" {
			pool.Annotations = map[string]string{karpenterv1.DisruptionBackoffAnnotationKey: text}
		}
		c.recall(pool)
		if paused := c.memory.paused("a", at(1999)); paused != (want > 0) {
			t.Errorf("%q: paused %t", text, paused)
		}
		if p, _ := c.memory.failed("a", 10*time.Second, at(2000)); want > 0 && p.length != want {
			t.Errorf("%q: the next pause is %s, want %s", text, p.length, want)
		}
	}
}
