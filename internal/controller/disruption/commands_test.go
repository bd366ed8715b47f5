package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// D-10: what goes together is what has a replacement in common, however many stand between; replacements that go
// themselves are as good as none, and one of a claim that is not marked is nobody's.
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
		s := &cluster.Snapshot{}
		var intents []intent
		for _, name := range c.marked {
			intents = append(intents, intent{node: &cluster.Node{Claim: name}})
		}
		for i := range c.nodes {
			s.Nodes = append(s.Nodes, &c.nodes[i])
		}
		var got []string
		for _, cmd := range commandsOf(s, intents) {
			var left, right []string
			for _, n := range cmd.nodes() {
				left = append(left, n.Claim)
			}
			for _, n := range cmd.replacements {
				right = append(right, n.Claim)
			}
			got = append(got, strings.TrimSpace(strings.Join(left, " ")+" < "+strings.Join(right, " ")))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// V-07, D-03, D-06: the next round comes when the first quiet time, pause or budget ends, and after a minute at the
// latest. What has ended already, or never ends, does not count.
func TestWhenSomethingChangesByTimeAlone(t *testing.T) {
	t.Parallel()
	const never = cluster.Never
	for name, c := range map[string]struct {
		quiet []int64 // when the quiet times of nodes end; it is 1000 now
		pause []int64 // when the pauses of pools end
		want  time.Duration
	}{
		"nothing":           {nil, nil, time.Minute},
		"never":             {[]int64{never}, nil, time.Minute},
		"ended":             {[]int64{10, 999}, nil, time.Minute},
		"now":               {[]int64{1000}, nil, time.Minute},
		"soon":              {[]int64{never, 1030, 1020, 1040}, nil, 20 * time.Second},
		"late":              {[]int64{1061}, nil, time.Minute},
		"a pause":           {nil, []int64{1030}, 30 * time.Second},
		"a late pause":      {nil, []int64{1100}, time.Minute},
		"the first of both": {[]int64{1050}, []int64{900, 1045, 1035, 1040}, 35 * time.Second},
		"quiet first":       {[]int64{1005}, []int64{1045}, 5 * time.Second},
	} {
		m := New(Config{})
		for i, until := range c.pause {
			m.memory.recall(fmt.Sprint(i), pause{until: at(until)})
		}
		s := cluster.Snapshot{}
		for _, end := range c.quiet {
			s.Nodes = append(s.Nodes, &cluster.Node{ConsolidatableAt: end})
		}
		r := round{now: at(1000), snapshot: cluster.New(s), pools: map[string]*karpenterv1.NodePool{}}
		if got := m.untilNext(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// L-31, L-40, D-12: why the pods of a command have no place any more. At a limit a drifted node goes all the same
// when what replaces it has brought a pool above; one that only costs too much does not. A static pool replaces one
// for one, and with no room it removes first, as long as it lacks no more nodes than the budget allows.
func TestWhyACommandDoesNotFit(t *testing.T) {
	t.Parallel()
	const gone, never = "its pods have no place elsewhere any more",
		"its pods have no place elsewhere, and nothing was launched that replaces it"
	above := limit.Unlimited()
	above.HardNodes = 1
	for name, c := range map[string]struct {
		reason      plan.DisruptionReason
		limits      limit.Limits
		replacement *cluster.Node
		want        string
	}{
		"nothing launched":          {plan.Drifted, limit.Unlimited(), nil, never},
		"no room":                   {plan.Drifted, limit.Unlimited(), &cluster.Node{Pool: "default"}, gone},
		"above the limit":           {plan.Drifted, above, &cluster.Node{Pool: "default"}, ""},
		"above the limit, expired":  {plan.Expired, above, &cluster.Node{Pool: "default"}, ""},
		"above the limit, too dear": {plan.Underutilized, above, &cluster.Node{Pool: "default"}, gone},
		"pool gone":                 {plan.Drifted, above, &cluster.Node{Pool: "gone"}, gone},
	} {
		pool, node := somePool(), someNode()
		pool.Limits, pool.Used.Nodes = c.limits, 2
		node.Pods = []*cluster.Pod{{Name: "p", Node: node.Name}}
		cmd := &command{intents: []intent{{node: node, remove: plan.Remove{Reason: c.reason}}}}
		if c.replacement != nil {
			cmd.replacements = []*cluster.Node{c.replacement}
		}
		if got := New(Config{}).misfit(one(pool, node), cmd); got.why != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		hard, replicas int64
		max            int
		replaced       bool
		want           string
	}{
		"replaced":           {9, 2, 1, true, ""},
		"not replaced":       {9, 2, 1, false, "nothing was launched that replaces it"},
		"no room":            {1, 1, 1, false, ""},
		"no room, lacks one": {2, 2, 1, false, ""},
		"no room, lacks two": {3, 3, 1, false, "its NodePool lacks other nodes, and the disruption budget allows no more"},
	} {
		pool, node := somePool(), someNode()
		pool.Static, pool.Replicas, pool.Limits.HardNodes = true, c.replicas, c.hard
		pool.Used.Nodes = 1
		r := one(pool, node)
		r.budgets["default"] = []engine.Budget{{Max: c.max}}
		cmd := &command{intents: []intent{{node: node, remove: plan.Remove{Reason: plan.Drifted}}}}
		if c.replaced {
			cmd.replacements = []*cluster.Node{{}}
		}
		if got := New(Config{}).misfit(r, cmd); got.why != c.want {
			t.Errorf("static, %s: %q, want %q", name, got, c.want)
		}
	}
}
