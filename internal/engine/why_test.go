package engine_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// U-04. What Why says of a node is what the methods do: it goes exactly if one of them removes it, for that reason.
// Otherwise a known cause keeps it.
func TestWhyAgreesWithThePlans(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		terms := engine.Terms{Budgets: map[string][]engine.Budget{}, SpotToSpot: rapid.Bool().Draw(t, "spot"),
			MinSavingPercent: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "percent")}
		for _, pool := range s.Pools {
			terms.Budgets[pool.Name] = []engine.Budget{{Max: rapid.IntRange(0, 4).Draw(t, "budget")}}
		}
		plans := []plan.Plan{engine.Emptiness(s, terms.Now, terms.Budgets), engine.Expire(s, terms),
			engine.Drift(s, terms), engine.Consolidate(s, terms)}
		for _, node := range s.Nodes {
			if node.Claim == "" {
				continue
			}
			want := goes(plans, node)
			w := engine.Why(s, terms, node)
			switch {
			case w.Goes != want:
				t.Fatalf("%s\n----\n%s goes for %q; it is said to go for %q, or to stay for %s: %s", script, node.ID(),
					want, w.Goes, w.Cause, w.Text)
			case w.Goes == "" && !slices.Contains(cause.StayingCodes(), w.Cause), w.Text == "":
				t.Fatalf("%s\n----\n%s stays for %q: %s", script, node.ID(), w.Cause, w.Text)
			}
			all := engine.WhyAll(s, terms, node)
			if len(all) == 0 || !reflect.DeepEqual(all[0], w) || w.Goes != "" && len(all) > 1 {
				t.Fatalf("%s\n----\n%s: of all that is said, the first has to be %+v: %+v", script, node.ID(), w, all)
			}
		}
	})
}

// TestU15_EventsOfNodesAgreeWithWhy: events say of a node that is forbidden to go, or that is no bargain, what Why
// says of it.
func TestU15_EventsOfNodesAgreeWithWhy(t *testing.T) {
	t.Parallel()
	forbidden, notCheaper := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		for _, node := range s.Nodes {
			switch rapid.IntRange(0, 7).Draw(t, "held") {
			case 0:
				node.DoNotDisrupt = true
			case 1:
				node.Held = "a budget"
			}
		}
		terms := engine.Terms{Budgets: map[string][]engine.Budget{}, SpotToSpot: rapid.Bool().Draw(t, "spot"),
			MinSavingPercent: 5}
		for _, pool := range s.Pools {
			terms.Budgets[pool.Name] = []engine.Budget{{Max: rapid.IntRange(0, 4).Draw(t, "budget")}}
		}
		drift := engine.Drift(s, terms)
		plans := []plan.Plan{engine.Emptiness(s, terms.Now, terms.Budgets), engine.Expire(s, terms), drift,
			engine.Consolidate(s, terms)}
		var nodes []*cluster.Node
		for _, node := range s.Nodes {
			if found, so := engine.WhyBlocked(s, terms.Now, node); so {
				forbidden++
				w := engine.Why(s, terms, node)
				if w.Wanted = found.Wanted; !reflect.DeepEqual(w, found) { // events do not ask what it would go for
					t.Fatalf("%s\n----\n%s: %+v, and Why says %+v", script, node.ID(), found, w)
				}
			}
			pool := s.Pool(node.Pool)
			if goes(plans, node) == "" && node.Consolidatable(pool, terms.Now) && engine.Disruptable(s, node) &&
				!node.Drifted && !node.Expired {
				nodes = append(nodes, node)
			}
		}
		for i, found := range engine.WhyNotCheaper(s, terms, nodes) {
			notCheaper++
			if w := engine.Why(s, terms, nodes[i]); !reflect.DeepEqual(w, found) {
				t.Fatalf("%s\n----\n%s: %+v, and Why says %+v", script, nodes[i].ID(), found, w)
			}
		}
		for _, stay := range drift.Stays {
			for _, node := range s.Nodes {
				if node.Claim != stay.Claim || goes(plans, node) != "" {
					continue
				}
				if w := engine.Why(s, terms, node); !reflect.DeepEqual(w, engine.WhyStay(stay, plan.Drifted)) {
					t.Fatalf("%s\n----\n%s: %+v, and Why says %+v", script, node.ID(), stay, w)
				}
			}
		}
	})
	if forbidden == 0 || notCheaper == 0 { // due ones are rare here; TestU15_ANodeHasManyFaces has one
		t.Errorf("%d nodes were forbidden to go, %d no bargain: want some of each", forbidden, notCheaper)
	}
}

// TestU16_EachCauseOfNodesHasAScript: a cause that no script shows is one that nobody has seen.
func TestU16_EachCauseOfNodesHasAScript(t *testing.T) {
	t.Parallel()
	var data []byte
	for _, name := range []string{"01_stays", "04_buffers", "05_min_nodes"} {
		more, err := os.ReadFile("testdata/why/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, more...)
	}
	elsewhere := map[cause.Code]string{
		cause.Paused:     "a ConfigMap says so; a script of package whatif has it",
		cause.PoolHeld:   "an annotation of the pool says so; a script of package whatif has it",
		cause.BackingOff: "an annotation of the pool says so; a script of package whatif has it",
	}
	for _, code := range cause.StayingCodes() {
		if has := strings.Contains(string(data), " "+string(code)+": "); has == (elsewhere[code] != "") {
			t.Errorf("%s: in a script: %t; said to be elsewhere: %q", code, has, elsewhere[code])
		}
	}
}

// goes returns the reason for which the first of the plans removes a node, and "" when none does.
func goes(plans []plan.Plan, node *cluster.Node) plan.DisruptionReason {
	for _, p := range plans {
		for _, r := range p.Removes {
			if r.Claim == node.Claim {
				return r.Reason
			}
		}
	}
	return ""
}

// U-04. What WhyPool says of a pool is what the plan does: it launches exactly if the plan has launches for it.
// Otherwise a cause is told.
func TestU04_WhyPoolAgreesWithThePlan(t *testing.T) {
	t.Parallel()
	shared := []cause.Code{cause.NoCapacity, cause.ReservationsUsedUp, cause.LaunchesInVain}
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		p := engine.Launches(s)
		for _, pool := range s.Pools {
			want, pods := 0, 0
			for _, l := range p.Launches {
				if l.Pool == pool.Name {
					want++
					pods += len(l.Pods)
				}
			}
			w := engine.WhyPool(s, pool)
			for _, demand := range w.Demand {
				pods += demand.Pods
			}
			switch {
			case len(w.Launches) != want || want == 0 && len(w.Causes) == 0:
				t.Fatalf("%s\n----\n%s: %d launches, want %d, causes %v", script, pool.Name, len(w.Launches), want,
					w.Causes)
			case pods != len(s.Pending):
				t.Fatalf("%s\n----\n%s: told what becomes of %d pods of %d", script, pool.Name, pods, len(s.Pending))
			}
			for _, step := range w.Causes {
				if step.Detail == "" || !slices.Contains(cause.PoolCodes(), step.Cause) &&
					!slices.Contains(shared, step.Cause) {
					t.Fatalf("%s\n----\n%s: %+v", script, pool.Name, step)
				}
			}
		}
	})
}
