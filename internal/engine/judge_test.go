package engine_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// chosen is a node that is marked and tainted, whose quiet time ends at 1,000 s.
func chosen(name string) *cluster.Node {
	node := ready(name)
	node.Disrupting, node.ConsolidatableAt = true, 1000
	return node
}

// trial is a cluster of one pool in which a node is judged, at 1,000 s.
type trial struct {
	pool    *cluster.Pool
	node    *cluster.Node
	others  []*cluster.Node
	pending []*cluster.Pod
	budgets []engine.Budget
	docket  engine.Docket
}

func newTrial() *trial {
	return &trial{pool: &cluster.Pool{Name: "default", Limits: limit.Unlimited()}, node: chosen("n1"),
		budgets: []engine.Budget{{Max: 1}}}
}

// judged returns what becomes of the node, and of those that go with it, when it is marked for a reason.
func (x *trial) judged(reason plan.DisruptionReason) engine.Verdict {
	s := cluster.Snapshot{Nodes: append([]*cluster.Node{x.node}, x.others...), Pools: []*cluster.Pool{x.pool},
		Pending: x.pending}
	for _, pod := range append(slices.Clone(x.node.Pods), x.pending...) {
		pod.Shape = &cluster.Shape{}
	}
	x.docket.Intents = append(x.docket.Intents, engine.Intent{Node: x.node, Reason: reason, Marked: true,
		Tainted: true})
	terms := engine.Terms{Now: 1000, Budgets: map[string][]engine.Budget{"default": x.budgets}}
	verdicts := engine.Judge(cluster.New(s), terms, x.docket)
	return verdicts[len(verdicts)-1]
}

// says checks why a verdict takes an intent back; "" for one that lets it go.
func says(t *testing.T, name string, v engine.Verdict, want string) {
	t.Helper()
	switch {
	case want == "" && v.Act != engine.Delete:
		t.Errorf("%s: %s, want it deleted", name, v)
	case want != "" && (v.Act != engine.Undo || !strings.Contains(v.Why, want)):
		t.Errorf("%s: %s, want it taken back: %s", name, v, want)
	}
}

// D-09: what takes back the removal of one node: an empty one, or a replacement that nobody needs.
func TestWhatTakesARemovalBack(t *testing.T) {
	t.Parallel()
	const empty, abandoned = plan.Empty, plan.ReplacementAbandoned
	pod, daemon := cluster.Pod{Name: "a"}, cluster.Pod{Name: "a", Fixed: true}
	for name, c := range map[string]struct {
		reason plan.DisruptionReason
		change func(*trial)
		want   string
	}{
		"empty":          {empty, func(*trial) {}, ""},
		"no reason":      {"", func(*trial) {}, "there is no reason for its removal"},
		"another reason": {"Mood", func(*trial) {}, "the reason Mood is none that this controller acts on"},
		"pool gone":      {empty, func(x *trial) { x.node.Pool = "gone" }, "its NodePool is gone"},
		"pool unlisted": {empty, func(x *trial) { x.docket.Unlisted = map[string]bool{"default": true} },
			"its NodePool is gone"},
		"not quiet": {empty, func(x *trial) { x.node.ConsolidatableAt = 1001 },
			"waits for its consolidateAfter"},
		"in use":          {empty, func(x *trial) { x.node.Pods = []*cluster.Pod{&pod} }, "it is not empty any more"},
		"daemon":          {empty, func(x *trial) { x.node.Pods = []*cluster.Pod{&daemon} }, ""},
		"not initialized": {empty, func(x *trial) { x.node.Initialized = false }, "it is not initialized"},
		"no node":         {empty, func(x *trial) { x.node.Name = "" }, "it is not initialized"},
		"static":          {empty, func(x *trial) { x.pool.Static = true }, "NodePool default keeps 0 nodes"},
		"says no": {empty, func(x *trial) { x.node.DoNotDisrupt = true },
			"karpenter.sh/do-not-disrupt is set on the node"},
		"held, and empty": {empty, func(x *trial) { x.node.Held = "by a budget" }, "by a budget"},
		"replaces":        {empty, func(x *trial) { x.node.Replaces = []string{"n1-claim"} }, "it replaces n1-claim"},
		"promised":        {empty, func(x *trial) { x.node.Name = "promised" }, "pod default/p is planned onto it"},
		"no budget": {empty, func(x *trial) { x.budgets[0].Max = 0 },
			"the budgets of NodePool default let no node be disrupted"},
		"abandoned":      {abandoned, func(*trial) {}, ""},
		"abandoned, pod": {abandoned, func(x *trial) { x.node.Pods = []*cluster.Pod{&pod} }, "pods run on it"},
		"abandoned, daemon": {abandoned, func(x *trial) {
			x.node.Pods = []*cluster.Pod{&daemon}
		}, ""},
		"abandoned, promised": {abandoned, func(x *trial) { x.node.Claim = "promised" },
			"pod default/p is planned onto it"},
		"abandoned, says no": {abandoned, func(x *trial) { x.node.DoNotDisrupt = true }, "do-not-disrupt is set"},
		"abandoned, unnamed": {abandoned, func(x *trial) { x.node.Name, x.node.Initialized = "", false }, ""},
		"abandoned, pool gone": {abandoned, func(x *trial) {
			x.node.Pool = "gone"
		}, ""},
		"paused": {abandoned, func(x *trial) { x.docket.Paused = "it is paused" }, "it is paused"},
	} {
		x := newTrial()
		x.pending = []*cluster.Pod{{Namespace: "default", Name: "p", Promised: "promised"}, {Name: "q"}}
		c.change(x)
		says(t, name, x.judged(c.reason), c.want)
	}
}

// D-08, D-10: a replacement that nobody needs waits for the budget instead of being taken back.
func TestWhatNobodyNeedsWaitsForTheBudget(t *testing.T) {
	t.Parallel()
	x := newTrial()
	x.budgets[0].Max = 0
	if v := x.judged(plan.ReplacementAbandoned); v.Act != engine.Wait || v.Ground != engine.GroundBudget {
		t.Errorf("%s, want it to wait", v)
	}
}

// L-40, D-14: what takes back a node that goes within budgets only; other nodes go in any case.
func TestWhatTakesAGentleRemovalBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*trial)
		want   string
	}{
		"nothing": {func(*trial) {}, ""},
		"paused":  {func(x *trial) { x.docket.Paused = "it is paused" }, "it is paused"},
		"held":    {func(x *trial) { x.node.DoNotDisrupt = true }, "do-not-disrupt"},
		"pod":     {func(x *trial) { x.node.Held = "by a budget" }, "by a budget"},
		"budget": {func(x *trial) { x.budgets[0].Max = 0 },
			"the budgets of NodePool default let no node be disrupted"},
	} {
		for _, gentle := range []bool{true, false} {
			x := newTrial()
			x.pool.Gentle, x.pool.Limits.SoftNodes = gentle, 0
			x.docket.Counts = map[string]engine.Count{"default": {Pool: x.pool,
				Claims: []engine.CountedClaim{{Name: "n1-claim", Marked: true, Intent: plan.NodeLimitExceeded}}}}
			want := c.want
			if c.change(x); !gentle {
				want = ""
			}
			says(t, name, x.judged(plan.NodeLimitExceeded), want)
		}
	}
}

// D-09: what takes back a removal that was decided. Each reason holds only as long as its cause.
func TestWhatTakesAMoveBack(t *testing.T) {
	t.Parallel()
	const underutilized, drifted, expired = plan.Underutilized, plan.Drifted, plan.Expired
	held := func(x *trial) { x.node.Drifted, x.node.Held = true, "a budget" }
	heldAndEnds := func(x *trial) { held(x); x.node.DrainEnds = true } // D-06, K-51
	for name, c := range map[string]struct {
		reason plan.DisruptionReason
		change func(*trial)
		want   string
	}{
		"nothing": {underutilized, func(*trial) {}, ""},
		"dormant": {underutilized, func(x *trial) { x.pool.Dormant = true },
			"the feature gate StaticCapacity is off"},
		"do-not-disrupt":            {underutilized, func(x *trial) { x.node.DoNotDisrupt = true }, "do-not-disrupt"},
		"held":                      {drifted, held, "a budget"},
		"held, and its drain ends":  {drifted, heldAndEnds, ""},
		"to save money, held, ends": {underutilized, heldAndEnds, "a budget"},
		"not drifted":               {drifted, func(*trial) {}, "it is not drifted any more"},
		"drifted":                   {drifted, func(x *trial) { x.node.Drifted = true }, ""},
		"not expired": {expired, func(x *trial) { x.pool.ExpiresGracefully = true },
			"not to be replaced for its age"},
		"expired, pool does not": {expired, func(x *trial) { x.node.Expired = true },
			"not to be replaced for its age"},
		"expired": {expired, func(x *trial) { x.pool.ExpiresGracefully, x.node.Expired = true, true },
			""},
		"when empty": {underutilized, func(x *trial) { x.pool.Consolidates = cluster.WhenEmpty },
			"removes empty nodes only"},
		"when empty, drifted": {drifted, func(x *trial) {
			x.pool.Consolidates, x.node.Drifted = cluster.WhenEmpty,
				true
		},
			""},
		"static": {underutilized, func(x *trial) { x.pool.Static = true },
			"NodePool default keeps 0 nodes"},
		"not quiet any more": {underutilized, func(x *trial) { x.node.ConsolidatableAt = 1001 }, ""},
		"of another pool":    {underutilized, func(x *trial) { x.node.Pool = "gone" }, "its NodePool is gone"},
		"of a pool that is unlisted": {underutilized,
			func(x *trial) { x.docket.Unlisted = map[string]bool{"default": true} }, "its NodePool is gone"},
		"promised": {underutilized, func(x *trial) { x.node.Name = "promised" },
			"pod default/p is planned onto it"},
		"promised, by a claim": {underutilized, func(x *trial) { x.node.Claim = "promised" },
			"pod default/p is planned onto it"},
	} {
		x := newTrial()
		x.pending = []*cluster.Pod{{Namespace: "default", Name: "p", Promised: "promised"}}
		x.others = []*cluster.Node{{Name: "elsewhere"}}
		c.change(x)
		says(t, name, x.judged(c.reason), c.want)
	}
}

// D-08, D-10: a command holds as long as the budgets have room for all its nodes, beside the nodes that use them up.
// All of its replacements must be there, and none of them joined and unfit for more than 10 minutes.
func TestWhatTakesACommandBack(t *testing.T) {
	t.Parallel()
	of := func(together int) *cluster.Node {
		return &cluster.Node{Claim: "new-claim", Together: together, Initialized: true}
	}
	joined := func(seconds int64) *cluster.Node {
		return &cluster.Node{Name: "new", Claim: "new-claim", Registered: true, RegisteredAt: seconds}
	}
	initialized := joined(1)
	initialized.Initialized = true
	notReady := of(1)
	notReady.NotReady = true
	for name, c := range map[string]struct {
		max, used    int
		replacements []*cluster.Node
		act          engine.Act
		want         string
	}{
		"holds": {2, 0, []*cluster.Node{of(1)}, engine.Delete, ""},
		"budget used up": {2, 1, []*cluster.Node{of(1)}, engine.Undo,
			"allow 2 at a time for the reason Drifted, and 2 are going"},
		"budget too small": {1, 0, []*cluster.Node{of(1)}, engine.Undo,
			"allow 1 at a time for the reason Drifted, and 1 are going"},
		"one lost":    {2, 0, []*cluster.Node{of(3), of(3)}, engine.Undo, "1 of 3 replacements failed"},
		"joined, 10m": {2, 0, []*cluster.Node{joined(400)}, engine.Wait, ""},
		"joined, longer": {2, 0, []*cluster.Node{joined(399)}, engine.Undo,
			"its replacement new joined and is not ready after 10m0s"},
		"not joined":        {2, 0, []*cluster.Node{{Name: "new", RegisteredAt: 1}}, engine.Wait, ""},
		"nobody knows when": {2, 0, []*cluster.Node{joined(0)}, engine.Wait, ""},
		"initialized":       {2, 0, []*cluster.Node{initialized}, engine.Delete, ""},
		"not ready":         {2, 0, []*cluster.Node{of(2), notReady}, engine.Wait, ""},
	} {
		x := newTrial()
		x.budgets[0].Max = c.max
		second := chosen("n2")
		x.node.Drifted, second.Drifted = true, true
		x.docket.Intents = []engine.Intent{{Node: second, Reason: plan.Drifted, Marked: true, Tainted: true}}
		x.others = append(c.replacements, second, &cluster.Node{Name: "elsewhere"})
		for _, n := range c.replacements {
			n.Replaces = []string{"n1-claim", "n2-claim"}
		}
		for range c.used {
			x.others = append(x.others, &cluster.Node{Name: "x", Claim: "x", Pool: "default", Initialized: true,
				NotReady: true})
		}
		v := x.judged(plan.Drifted)
		if v.Act != c.act || c.want != "" && !strings.Contains(v.Why, c.want) || len(v.Intents) != 2 {
			t.Errorf("%s: %s, want %s: %s", name, v, c.act, c.want)
		}
		failed := strings.Contains(c.want, "replacement")
		if v.Failed != failed {
			t.Errorf("%s: a replacement failed: %t", name, v.Failed)
		}
	}
}

// D-10: nodes go together if they have a replacement in common, through any number of others. A replacement that goes
// itself is as good as none, and one of a claim that is not marked is nobody's.
func TestWhatGoesTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marked []string
		nodes  []cluster.Node // replacements
		want   []string       // "marked < replacements"
	}{
		"alone": {[]string{"a", "b"}, nil, []string{"a <", "b <"}},
		"one for one": {[]string{"a", "b"}, []cluster.Node{{Claim: "x", Replaces: []string{"a"}}, {Claim: "y",
			Replaces: []string{"b"}}}, []string{"a < x", "b < y"}},
		"one for two": {[]string{"a", "b", "c"}, []cluster.Node{{Claim: "x", Replaces: []string{"a", "b"}}},
			[]string{"a b < x", "c <"}},
		"two for one": {[]string{"a"}, []cluster.Node{{Claim: "x", Replaces: []string{"a"}}, {Claim: "y",
			Replaces: []string{"a"}}}, []string{"a < x y"}},
		"two for two": {[]string{"a", "b"}, []cluster.Node{{Claim: "x", Replaces: []string{"a", "b"}}, {Claim: "y",
			Replaces: []string{"a", "b"}}}, []string{"a b < x y"}},
		"through third": {[]string{"a", "b", "c", "d"}, []cluster.Node{{Claim: "x", Replaces: []string{"a", "b"}},
			{Claim: "y", Replaces: []string{"c", "d"}}, {Claim: "z", Replaces: []string{"b", "d"}}},
			[]string{"a b c d < x z y"}},
		"chain": {[]string{"a", "b", "c"}, []cluster.Node{{Claim: "x", Replaces: []string{"a", "b"}}, {Claim: "y",
			Replaces: []string{"b", "c"}}}, []string{"a b c < x y"}},
		"goes": {[]string{"a"}, []cluster.Node{{Claim: "x", Replaces: []string{"a"}, Deleting: true},
			{Claim: "y", Replaces: []string{"a"}}}, []string{"a < y"}},
		"is marked": {[]string{"a"}, []cluster.Node{{Claim: "x", Replaces: []string{"a"}, Disrupting: true},
			{Claim: "y", Replaces: []string{"a"}}}, []string{"a < y"}},
		"nobody's": {[]string{"a"}, []cluster.Node{{Claim: "x", Replaces: []string{"gone"}}}, []string{"a <"}},
		"partly gone, last": {[]string{"a"}, []cluster.Node{{Claim: "x", Replaces: []string{"a", "gone"}}},
			[]string{"a < x"}},
		"partly gone": {[]string{"a"}, []cluster.Node{{Claim: "x", Replaces: []string{"gone", "a"}}},
			[]string{"a < x"}},
	} {
		s := cluster.Snapshot{}
		var docket engine.Docket
		for i := range c.nodes {
			s.Nodes = append(s.Nodes, &c.nodes[i])
		}
		for _, name := range c.marked {
			node := &cluster.Node{Name: name, Claim: name, Disrupting: true}
			s.Nodes = append(s.Nodes, node)
			docket.Intents = append(docket.Intents, engine.Intent{Node: node, Reason: plan.Drifted, Marked: true})
		}
		var got []string
		for _, v := range engine.Judge(cluster.New(s), engine.Terms{}, docket) {
			var left, right []string
			for _, i := range v.Intents {
				left = append(left, i.Node.Claim)
			}
			for _, n := range v.Replacements {
				right = append(right, n.Claim)
			}
			got = append(got, strings.TrimSpace(strings.Join(left, " ")+" < "+strings.Join(right, " ")))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// L-31, L-40, D-12: why the pods of a command have no place any more. At a limit a drifted node goes all the same when
// its replacement has brought a pool above; one that only costs too much does not. A static pool replaces one for one.
// With no room it removes first, as long as it lacks no more nodes than the budget allows.
func TestWhyACommandDoesNotFit(t *testing.T) {
	t.Parallel()
	const gone, never = "its pods have no place elsewhere any more",
		"its pods have no place elsewhere, and nothing was launched that replaces it"
	above := limit.Unlimited()
	above.HardNodes = 1
	for name, c := range map[string]struct {
		reason plan.DisruptionReason
		limits limit.Limits
		pool   string // of the replacement
		want   string
	}{
		"nothing launched":          {plan.Drifted, limit.Unlimited(), "", never},
		"no room":                   {plan.Drifted, limit.Unlimited(), "default", gone},
		"above the limit":           {plan.Drifted, above, "default", ""},
		"above the limit, expired":  {plan.Expired, above, "default", ""},
		"above the limit, too dear": {plan.Underutilized, above, "default", gone},
		"pool gone":                 {plan.Drifted, above, "gone", gone},
	} {
		x := newTrial()
		x.pool.Limits, x.pool.Used.Nodes, x.pool.ExpiresGracefully = c.limits, 2, true
		x.node.Drifted, x.node.Expired = true, true
		x.node.Pods = []*cluster.Pod{{Name: "p", Node: x.node.Name}}
		if c.pool != "" {
			x.others = []*cluster.Node{{Claim: "new", Pool: c.pool, Initialized: true, Together: 1,
				Replaces: []string{"n1-claim"}, Taints: []cluster.Taint{{Key: "full", Effect: "NoSchedule"}}}}
		}
		says(t, name, x.judged(c.reason), c.want)
	}
	onSale, soldOut := offering(t, ""), offering(t, "unavailable=a")
	for name, c := range map[string]struct {
		hard, replicas int64
		max            int
		replaced       bool
		want           string
		change         func(*cluster.Pool)
	}{
		"replaced":     {9, 2, 1, true, "", nil},
		"not replaced": {9, 2, 1, false, "nothing was launched that replaces it", nil},
		"no room":      {1, 1, 1, false, "", nil},
		"no room, lacks two": {2, 2, 1, false,
			"its NodePool lacks other nodes, and the disruption budget allows no more", nil},
		"no room, gate off": {1, 1, 1, false, "nothing was launched that replaces it",
			func(p *cluster.Pool) { p.NoneFirst = true }},
		"no room, sold out": {1, 1, 1, false, "nothing was launched that replaces it",
			func(p *cluster.Pool) { p.Catalog = soldOut.Pools[0].Catalog }},
	} {
		x := newTrial()
		x.pool.Static, x.pool.Replicas, x.pool.Limits.HardNodes, x.pool.Used.Nodes = true, c.replicas, c.hard, 1
		x.node.Drifted, x.budgets[0].Max = true, c.max
		x.pool.Catalog = onSale.Pools[0].Catalog
		if c.change != nil {
			c.change(x.pool)
		}
		if c.replaced {
			x.others = []*cluster.Node{{Claim: "new", Initialized: true, Together: 1, Replaces: []string{"n1-claim"}}}
		}
		says(t, "static, "+name, x.judged(plan.Drifted), c.want)
	}
}

// offering is a cluster with one pool, whose node class offers one type.
func offering(t *testing.T, how string) *cluster.Snapshot {
	t.Helper()
	s, err := script.Parse("type m cpu=2 mem=8Gi zones=a od=0.1 " + how + "\npool default")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// K-16: the judge decides on the ground of a rejected move, whatever the words of its text. A PodDisruptionBudget that
// is called budget is no budget of a NodePool.
func TestK16_TheJudgeSaysTheCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*trial)
		want   engine.Ground
	}{
		"tight": {func(x *trial) { x.budgets[0].Max = 0 }, engine.GroundBudget},
		"held": {func(x *trial) { x.node.Held = "PodDisruptionBudget shop/budget allows no disruption" },
			engine.GroundChurn},
		"full": {func(x *trial) { x.node.Pods = []*cluster.Pod{{Name: "p", Node: "n1"}} }, engine.GroundScheduling},
		"goes": {func(*trial) {}, ""},
		"lost": {func(x *trial) {
			x.others = []*cluster.Node{{Claim: "new", Together: 2, Initialized: true, Launched: true,
				Replaces: []string{"n1-claim"}}}
		}, engine.GroundChurn},
	} {
		x := newTrial()
		c.change(x)
		if v := x.judged(plan.Underutilized); v.Ground != c.want || (v.Act == engine.Delete) != (c.want == "") {
			t.Errorf("%s: %s, want the ground %q", name, v, c.want)
		}
	}
}

// D-09: each reason has a script in which it goes and one in which it is taken back, and each verdict has one.
func TestEachReasonAndEachVerdictHasAScript(t *testing.T) {
	t.Parallel()
	said := map[string]bool{} // "verdict reason"
	for _, name := range []string{"15_judge_empty", "16_judge_moves", "17_judge_others"} {
		data, err := os.ReadFile("testdata/disrupt/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if words := strings.Fields(strings.Replace(line, ":", " ", 1)); len(words) > 2 {
				said[words[0]], said[words[0]+" "+words[2]] = true, true
			}
		}
	}
	for _, reason := range engine.Reasons() {
		for _, act := range []engine.Act{engine.Delete, engine.Undo} {
			if !said[string(act)+" "+string(reason)] {
				t.Errorf("no script has the verdict %s for the reason %s", act, reason)
			}
		}
	}
	for _, act := range []engine.Act{engine.Keep, engine.Mark, engine.Wait, engine.Narrow, engine.Delete,
		engine.Undo} {
		if !said[string(act)] {
			t.Errorf("no script has the verdict %s", act)
		}
	}
	if said["delete Mood"] {
		t.Error("a reason that nobody knows is acted upon")
	}
}

// The table and the methods agree: what a method chooses goes by a row of its own, and the row's name is known.
func TestEachMethodHasARow(t *testing.T) {
	t.Parallel()
	for _, method := range engine.Methods() {
		if !slices.Contains(engine.Reasons(), method.Reason) {
			t.Errorf("%s chooses for the reason %s, which has no row", method.Name, method.Reason)
		}
	}
	for _, c := range []struct {
		reason                        plan.DisruptionReason
		money, renews, moves, tooMany bool
	}{
		{plan.Empty, false, false, false, false}, {plan.Underutilized, true, false, true, false},
		{plan.Drifted, false, true, true, false}, {plan.Expired, false, true, true, false},
		{plan.NodeLimitExceeded, false, false, false, true}, {plan.ReplicasExceeded, false, false, false, true},
		{plan.ReplacementAbandoned, false, false, false, false}, {plan.Unhealthy, false, true, true, false},
		{"", false, false, false, false}, {"Mood", false, false, false, false},
	} {
		if engine.ForMoney(c.reason) != c.money || engine.Renews(c.reason) != c.renews ||
			engine.Moves(c.reason) != c.moves || engine.TooMany(c.reason) != c.tooMany {
			t.Errorf("%s: the table says otherwise than %+v", c.reason, c)
		}
	}
}
