package view_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

func scripted(t testing.TB, script string) *cluster.Snapshot {
	t.Helper()
	s, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const somePools = `
type m cpu=4 mem=16Gi zones=a,b od=0.2 spot=0.1
pool default nodes=2
pool hard    hard.nodes=1 limit.cpu=100 need=zone=a taint=only=hard:NoSchedule
node n1  type=m zone=a pool=default capacity=on-demand
node n2  type=m zone=b pool=default capacity=spot not-ready
node n3  cpu=4 mem=16Gi
claim c1 type=m zone=a pool=hard
pod web-0..3 cpu=3
pod huge     cpu=64
pod picky    cpu=3 tolerate=only=hard
`

// U-10: pods are counted by their stated cause, and without a cause if no plan has seen them. A limit shows whether it
// holds back a pod. Nodes are counted by state.
func TestU10_NumbersOfACluster(t *testing.T) {
	t.Parallel()
	s := scripted(t, somePools)
	n := view.NumbersOf(s, engine.Provision(s))
	total := 0
	for _, pods := range n.Waiting {
		total += pods
	}
	if want := (map[view.CauseOfPool]int{{Cause: "NodeFits", Pool: "default"}: 2, {Cause: "NodeFits"}: 1,
		{Cause: "NodeOnTheWay", Pool: "hard"}: 1, {Cause: "SoftLimitNodes", Pool: "default"}: 1,
		{Cause: "PodTooLarge", Pool: "default"}: 1}); !maps.Equal(n.Waiting, want) || total != len(s.Pending) {
		t.Errorf("waiting %v, want %v", n.Waiting, want)
	}
	if want := (map[view.PoolLimit]bool{{Pool: "default", Limit: "soft_nodes"}: true,
		{Pool: "hard", Limit: "hard_nodes"}: false, {Pool: "hard", Limit: "cpu"}: false}); !maps.Equal(n.Limited,
		want) {
		t.Errorf("limited %v, want %v", n.Limited, want)
	}
	if want := (map[string]view.HardLimit{"hard": {Most: 1, Used: 1}}); !maps.Equal(n.Hard, want) {
		t.Errorf("hard limits %v, want %v", n.Hard, want)
	}
	if want := (map[string]view.Offers{"default": {All: 4}, "hard": {All: 2}}); !maps.Equal(n.Offers, want) {
		t.Errorf("offers %v, want %v", n.Offers, want)
	}
	for which, want := range map[view.PoolState]int{{Pool: "default", State: view.NodeReady}: 1,
		{Pool: "default", State: view.NodeNotReady}: 1, {State: view.NodeUnmanaged}: 1,
		{Pool: "hard", State: view.NodeJoining}: 1, {Pool: "hard", State: view.NodeReady}: 0} {
		if got, shown := n.Nodes[which]; got != want || !shown {
			t.Errorf("%d nodes of %v, shown %t: want %d", got, which, shown, want)
		}
	}
	if none := view.NumbersOf(s, plan.Plan{}).Waiting; len(none) != 1 || none[view.CauseOfPool{}] != len(s.Pending) {
		t.Errorf("before any plan %v wait, want all without a cause", none)
	}
}

// U-10: nodes that should go, but stay, are counted with what is remembered of their pool. The pause takes precedence
// over a closed budget.
func TestU10_NodesThatStay(t *testing.T) {
	t.Parallel()
	s := scripted(t,
		"type m cpu=4 mem=16Gi zones=a od=0.2\npool default\nnode n1..3 type=m zone=a pool=default drifted\n"+
			"node n4 type=m zone=a pool=default drifted do-not-disrupt\n")
	terms := engine.Terms{Now: 1 << 40, Budgets: map[string][]engine.Budget{"default": {{Max: 0}}}}
	for paused, want := range map[string]map[view.CauseOfPool]int{
		"": {{Cause: "BudgetClosed", Pool: "default"}: 3,
			{Cause: "DoNotDisruptNode", Pool: "default"}: 1},
		"release of 1.12": {{Cause: "Paused", Pool: "default"}: 3, {Cause: "DoNotDisruptNode", Pool: "default"}: 1},
	} {
		n := view.NumbersOf(s, plan.Plan{})
		n.Stay(s, terms, func(string) view.Memory { return view.Memory{Paused: paused} })
		if !maps.Equal(n.Staying, want) {
			t.Errorf("paused by %q: %v stay, want %v", paused, n.Staying, want)
		}
	}
}

// huge has 5,000 nodes and 100,000 pods, 5,000 of which wait, in 20 pools.
func huge(b *testing.B) *cluster.Snapshot {
	var script strings.Builder
	script.WriteString("type m cpu=16 mem=64Gi zones=a,b,c od=0.8 spot=0.3\n")
	for i := range 20 {
		fmt.Fprintf(&script, "pool p%d nodes=250\n", i)
	}
	for i := range 5000 {
		fmt.Fprintf(&script,
			"node n%d type=m zone=%c pool=p%d\npod w%d-0..18 cpu=800m mem=3Gi node=n%d\npod x%d cpu=%dm\n",
			i, 'a'+i%3, i%20, i, i, i, 8000+i%50)
	}
	return scripted(b, script.String())
}

// BenchmarkNumbers is what a look at the cluster costs, without the nodes that stay (see BenchmarkKept of the engine).
func BenchmarkNumbers(b *testing.B) {
	s := huge(b)
	p := engine.Provision(s)
	for b.Loop() {
		view.NumbersOf(s, p)
	}
}

// K-49: a node that reboots is not ready, and was not chosen to go.
func TestK49_ARebootingNodeIsNotReady(t *testing.T) {
	t.Parallel()
	s := scripted(t, `
type m cpu=4 mem=16Gi zones=a od=0.2
pool default
node n1  type=m zone=a pool=default rebooting
node n2  type=m zone=a pool=default disrupting
`)
	for i, want := range []view.NodeState{view.NodeNotReady, view.NodeChosen} {
		if got := view.StateOf(s.Nodes[i]); got != want || s.Nodes[i].Leaves() != (want == view.NodeChosen) {
			t.Errorf("node %s is %s, leaves %t; want %s", s.Nodes[i].Name, got, s.Nodes[i].Leaves(), want)
		}
	}
}
