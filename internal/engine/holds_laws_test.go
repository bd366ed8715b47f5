package engine_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// decided is a cluster in which nodes are marked, and all their replacements are there.
type decided struct {
	s       *cluster.Snapshot
	intents []engine.Intent
}

// decide carries out a disruption plan up to the point where the judge is asked again. Each claim becomes the cheapest
// of its types: a more expensive one may have less room.
func decide(s *cluster.Snapshot, p plan.Plan) decided {
	parts := *enginetest.Applied(s, plan.Plan{Launches: p.Launches}, 0)
	reasons := map[string]plan.DisruptionReason{}
	for _, r := range p.Removes {
		reasons[r.Claim] = r.Reason
	}
	var marked []*cluster.Node
	for _, node := range parts.Nodes { // Applied has made all of them
		switch {
		case s.Node(node) == nil:
			l := p.Launches[launchOf(node)]
			node.Replaces, node.Together = l.Replaces, l.Together
		case reasons[node.Claim] != "":
			node.Disrupting = true
			marked = append(marked, node)
		}
	}
	d := decided{s: cluster.New(parts)}
	for _, node := range marked {
		d.intents = append(d.intents, engine.Intent{Node: d.s.Node(node), Reason: reasons[node.Claim], Marked: true,
			Tainted: true})
	}
	return d
}

// onTheWay returns what was decided, before the launches are of use: they have not joined, or are not initialized.
func (d decided) onTheWay(joined bool) decided {
	parts := *d.s
	parts.Nodes = slices.Clone(d.s.Nodes)
	for i, node := range parts.Nodes {
		if len(node.Replaces) > 0 {
			early := *node
			early.Initialized = false
			if !joined {
				early.Name, early.Registered = "", false
			}
			parts.Nodes[i] = &early
		}
	}
	early := decided{s: cluster.New(parts)}
	for _, i := range d.intents {
		i.Node = early.s.Node(i.Node)
		early.intents = append(early.intents, i)
	}
	return early
}

// disruptable draws a cluster that has become too large, and the terms of a round.
func disruptable(t *rapid.T) (script string, s *cluster.Snapshot, terms engine.Terms) {
	draw, types := enginetest.PlainScript, []string{"t0|t1", "t2"}
	if rapid.Bool().Draw(t, "few types") {
		draw, types = enginetest.Script, []string{"small", "medium|large"}
	}
	script = draw(t)
	if rapid.Bool().Draw(t, "committed") {
		script = withCommitments(t, script, types...)
	}
	if rapid.Bool().Draw(t, "mixed") {
		script = withSpotRatios(t, script)
	}
	s = shrunk(t, script)
	if slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool { return n.Disrupting }) {
		// commands under way are taken for carried out, and the judge would have to know them
		return "", nil, engine.Terms{}
	}
	withFloors(t, s)
	terms = engine.Terms{Budgets: map[string][]engine.Budget{}, SpotToSpot: rapid.Bool().Draw(t, "spot"),
		MinSavingPercent: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "percent")}
	most := rapid.IntRange(1, 4).Draw(t, "budget")
	for _, pool := range s.Pools {
		pool.NodeOverheadPrice = rapid.SampledFrom([]resources.Money{0, 0, 5_000, 50_000}).Draw(t, "overhead")
		terms.Budgets[pool.Name] = []engine.Budget{{Max: most}}
	}
	return script, s, terms
}

// D-09, D-15, K-54. What a method chooses goes once all its replacements are there and nothing else has changed;
// before that it waits. Otherwise it would be chosen, launched for and taken back again and again.
func TestWhatIsChosenGoes(t *testing.T) {
	t.Parallel()
	var gone, replaced, waits atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script, s, terms := disruptable(t)
		if s == nil {
			return
		}
		for _, method := range engine.Methods() {
			p := method.Plan(s, terms)
			d := decide(s, p)
			judge := func(when string, d decided) (going bool) {
				for _, v := range engine.Judge(d.s, terms, engine.Docket{Intents: d.intents}) {
					if v.Act == engine.Undo || v.Act == engine.Narrow {
						t.Fatalf("%s\n----\n%s: %s, it was chosen by\n%s", script, v, when, p)
					}
					going = going || v.Act == engine.Delete
				}
				return going
			}
			if len(p.Launches) > 0 {
				judge("before anything has joined", d.onTheWay(false))
				judge("before anything is initialized", d.onTheWay(true))
				waits.Add(1)
			}
			if len(d.intents) > 0 && !judge("with all there", d) {
				t.Fatalf("%s\n----\nnothing goes of what was chosen by\n%s", script, p)
			}
			gone.Add(int64(len(p.Removes)))
			replaced.Add(int64(len(p.Launches)))
		}
	})
	if gone.Load() == 0 || replaced.Load() == 0 || waits.Load() == 0 {
		t.Error("nothing was chosen: the law says nothing")
	}
}
