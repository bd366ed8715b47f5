package pack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// spyRule is a constraint that nobody knows: pods with the label "shy" come to no node where a pod was placed
// before them. It is added to the list and to nothing else.
type spyRule struct{ asked map[string]int }

func shy(c *cluster.Shape) bool { return c.Labels["shy"] != "" }

func (r spyRule) verdict(what string, b *bin, a *attempt) topology.Verdict {
	r.asked[what]++
	if shy(a.info.Shape) && len(b.pods)+len(a.pods) > 1 {
		return topology.Never
	}
	return topology.Yes
}

func (r spyRule) reads() []string { return []string{"Labels"} }
func (r spyRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	return r.verdict("refuses", &n.bin, a)
}
func (r spyRule) placedOn(*solver, *existing, *attempt) { r.asked["placedOn"]++ }
func (r spyRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	return r.verdict("narrows", &n.bin, a)
}
func (r spyRule) placedIn(*solver, *planned, *attempt) { r.asked["placedIn"]++ }
func (r spyRule) opens(_ *solver, p *pool, info *shape, ways []way) []way {
	r.asked["opens"]++
	if shy(info.Shape) && p.Name == "crowded" {
		return nil
	}
	return ways
}
func (r spyRule) ties(info *shape) bool { return shy(info.Shape) }
func (r spyRule) alike(text []byte, info *shape) []byte {
	r.asked["alike"]++
	return append(text, info.Labels["kind"]...)
}
func (r spyRule) explains(_ *solver, e *explainer) bool {
	r.asked["explains"]++
	if shy(e.shape) && e.pool.Name == "crowded" {
		return e.stop(plan.ByPod, cause.PodMalformed, "", "too shy")
	}
	return true
}

// spied plans with the rule beside all others.
func spied(t *testing.T, text string) (*solver, spyRule) {
	t.Helper()
	snapshot, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	spy := spyRule{asked: map[string]int{}}
	s := newSolver(snapshot, snapshot.Pending, nil)
	s.packing = mix.Solve
	s.rules = listed(append(slices.Clone(rules.all), spy)...)
	s.run(snapshot.Pending)
	s.grantWishes()
	return s, spy
}

// A new constraint is one rule in the list: pods one by one, in groups, with promises and wishes, and explanations
// find it there.
func TestWhateverPlacesGoesThroughTheRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, script, want string }{
		{"one by one, on nodes that are there",
			"node n1 type=x zone=a pool=p\nnode n2 type=x zone=a pool=p\npod shy-0..2 cpu=100m labels=shy=yes",
			"n1: shy-0; n2: shy-1; p: shy-2"},
		{"beside others", "node n1 type=x zone=a pool=p\npod big cpu=1\npod shy-0 cpu=100m labels=shy=yes",
			"n1: big,shy-0"},
		{"with a promise", "node n1 type=x zone=a pool=p\npod shy-0..1 cpu=100m labels=shy=yes promised=n1",
			"n1: shy-0; p: shy-1"},
		{"with a wish",
			"node n1 type=x zone=a pool=p\nnode n2 type=x zone=a pool=p\npod w cpu=1 node=n1\n" +
				"pod shy-0..1 cpu=100m labels=shy=yes wish=10:host=n2",
			"n1: shy-0; n2: shy-1"},
		{"in groups", "pod big-0..1 cpu=1", "p: big-0,big-1"},
	} {
		s, spy := spied(t, types+"pool p\n"+test.script)
		if got := places(s); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if spy.asked["refuses"]+spy.asked["narrows"] == 0 || spy.asked["placedOn"]+spy.asked["placedIn"] == 0 {
			t.Errorf("%s: the rule was asked %v", test.name, spy.asked)
		}
	}
}

func TestExplanationsGoThroughTheRules(t *testing.T) {
	t.Parallel()
	s, _ := spied(t, types+"pool crowded\npod shy cpu=100m labels=shy=yes")
	p := s.plan()
	if len(p.Launches) > 0 || len(p.Unplaced) != 1 || !strings.Contains(p.String(), "too shy") {
		t.Errorf("the plan is\n%s", p)
	}
}

// Groups are what all rules find alike.
func TestGroupsGoThroughTheRules(t *testing.T) {
	t.Parallel()
	s, _ := spied(t, types+"pool p\npod a-0..1 cpu=1 labels=kind=a\n"+
		"pod b-0..1 cpu=1 labels=kind=b\npod c cpu=1 labels=kind=b,more=yes")
	var sizes []int
	for _, g := range s.groups(s.snapshot.Pending) {
		sizes = append(sizes, len(g.pods))
	}
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int{2, 3}) {
		t.Errorf("the groups have %v pods", sizes)
	}
}

// places says which pods were placed where.
func places(s *solver) string {
	var list []string
	for i := range s.bins() {
		name := "p"
		if i < len(s.existing) {
			name = s.existing[i].node.Name
		}
		var pods []string
		for _, pod := range s.bin(i).pods {
			pods = append(pods, pod.Name)
		}
		slices.Sort(pods)
		if len(pods) > 0 {
			list = append(list, fmt.Sprintf("%s: %s", name, strings.Join(pods, ",")))
		}
	}
	return strings.Join(list, "; ")
}
