package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// shrunk draws a cluster whose workload has fallen: the launches of a plan for it are there, and some of the pods are
// gone.
func shrunk(t *rapid.T, script string) *cluster.Snapshot {
	t.Helper()
	before := parse(t, script)
	running := enginetest.Applied(before, engine.Provision(before), rapid.IntRange(0, 2).Draw(t, "choice"))
	parts := *running
	parts.Pending, parts.Repelling, parts.Nodes = nil, nil, nil
	for _, node := range running.Nodes {
		if node.Deleting {
			continue
		}
		own := *renamed(node, "old-")
		own.Pods, own.Ports, own.Used = nil, nil, nil
		own.Drifted = rapid.Bool().Draw(t, "drifted")
		for _, pod := range node.Pods {
			if !pod.Fixed && rapid.Bool().Draw(t, "gone") {
				continue
			}
			own.Pods, own.Used, own.Ports = append(own.Pods, pod), own.Used.Plus(pod.Shape.Requests),
				append(own.Ports, pod.Shape.HostPorts...)
			if len(pod.Shape.AntiAffinity) > 0 {
				parts.Repelling = append(parts.Repelling, pod)
			}
		}
		parts.Nodes = append(parts.Nodes, &own)
	}
	return cluster.New(parts)
}

// renamed returns the node under another name, so that later launches find theirs free.
func renamed(node *cluster.Node, prefix string) *cluster.Node {
	own := *node
	own.Labels = maps.Clone(node.Labels)
	if own.Name != "" {
		own.Name = prefix + own.Name
		own.Labels[cluster.LabelHostname] = own.Name
	}
	if own.Claim != "" {
		own.Claim = prefix + own.Claim
	}
	return &own
}

// failer is a test, with drawn values or without.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// carriedOut returns the cluster after a disruption plan: its launches are there, the removed nodes are gone, and
// their pods run elsewhere. It fails when some find no place or, if strict, when they need a further launch. New nodes
// get names after all others, in the order of the launches: first-fit depends on names.
func carriedOut(t failer, s *cluster.Snapshot, p plan.Plan, round int, strict bool) *cluster.Snapshot {
	t.Helper()
	grown := enginetest.Applied(s, plan.Plan{Launches: p.Launches}, 0)
	parts := *grown
	parts.Nodes = slices.Clone(grown.Nodes)
	var gone []*cluster.Node
	for i, node := range parts.Nodes {
		switch {
		case slices.ContainsFunc(p.Removes, func(r plan.Remove) bool { return r.Claim == node.Claim }):
			gone = append(gone, node)
		case !slices.ContainsFunc(s.Nodes, func(old *cluster.Node) bool { return old.ID() == node.ID() }):
			parts.Nodes[i] = renamed(node, fmt.Sprintf("z%03d-%03d-", round, launchOf(node)))
		}
	}
	without := cluster.New(parts).Without(gone...)
	moved := engine.Provision(without)
	if len(moved.Unplaced) > 0 || strict && len(moved.Launches) > 0 {
		t.Fatalf("after\n%s\npods that had to move need more:\n%s", p, moved)
	}
	return enginetest.Applied(without, moved, 0)
}

// launchOf returns the number of the launch that has become this node, as enginetest.Applied names it.
func launchOf(node *cluster.Node) int {
	letters := node.ID()[len(node.ID())-2:]
	return int(letters[0]-'a') + 26*int(letters[1]-'a')
}

// price is what the nodes of the cluster cost in all.
func price(s *cluster.Snapshot) resources.Money {
	sum := resources.Money(0)
	for _, node := range s.Nodes {
		if node.Claim != "" && node.Price != resources.Unpriced {
			sum += s.Cost(node)
		}
	}
	return sum
}

// D-04, D-08, D-15, B-20. Consolidation takes no pool over its budget, leaves every pod a place, and saves with each
// launch as much as it has to. It comes to an end, and then the whole cluster is cheaper, by what nodes cost with
// their overhead.
func TestConsolidationIsCheaperSafeAndEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		s := shrunk(t, script)
		for _, pool := range s.Pools { // none of them is anybody else's
			pool.NodeOverheadPrice = rapid.SampledFrom([]resources.Money{0, 0, 5_000, 50_000}).Draw(t, "overhead")
		}
		most := rapid.IntRange(1, 4).Draw(t, "budget")
		terms := engine.Terms{Budgets: map[string][]engine.Budget{}, SpotToSpot: rapid.Bool().Draw(t, "spot"),
			MinSavingPercent: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "percent")}
		for _, pool := range s.Pools {
			terms.Budgets[pool.Name] = []engine.Budget{{Max: most}}
		}
		before := price(s)
		for round := 0; ; round++ {
			p := engine.Consolidate(s, terms)
			if p.Empty() {
				if after := price(s); after > before || round > 0 && after == before {
					t.Fatalf("%s\n----\n%s/h before, %s/h after %d rounds", script, before, after, round)
				}
				return
			}
			count := map[string]int{}
			for _, r := range p.Removes {
				if count[r.Pool]++; count[r.Pool] > most {
					t.Fatalf("%s\n----\n%s\nbudget %d", script, p, most)
				}
			}
			checkSavings(t, script, s, p, terms)
			if s = carriedOut(t, s, p, round, true); round > 200 {
				t.Fatalf("no end in sight after %d rounds:\n%s", round, p)
			}
		}
	})
}

// checkSavings fails when a command with launches saves less than the terms ask for.
func checkSavings(t *rapid.T, script string, s *cluster.Snapshot, p plan.Plan, terms engine.Terms) {
	t.Helper()
	before, after := map[string]resources.Money{}, map[string]resources.Money{}
	for _, l := range p.Launches {
		key := strings.Join(l.Replaces, ",")
		after[key] += l.Cheapest.Price + s.Overhead(l.Pool)
		before[key] = 0
		for _, r := range p.Removes {
			if slices.Contains(l.Replaces, r.Claim) {
				before[key] += r.Price + s.Overhead(r.Pool)
			}
		}
	}
	for key := range after {
		least := terms.MinSavingPercent
		if least == engine.DefaultMinSavingPercent && !terms.SpotToSpot && strings.Contains(key, ",") {
			// for a group of nodes, as long as the pool costs more than 1.02 times what a fresh plan does (B-17)
			least = 2
		}
		if saved := before[key] - after[key]; saved <= 0 || saved < before[key]*resources.Money(least)/100 {
			t.Fatalf("%s\n----\n%s\nthe replacement of %s saves %s/h of %s/h; want %d %%", script, p, key, saved,
				before[key], least)
		}
	}
}

// D-06, D-08. Drifted nodes go within the budget, and their pods all have a place.
func TestDriftIsSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := shrunk(t, enginetest.PlainScript(t))
		most := rapid.IntRange(0, 4).Draw(t, "budget")
		terms := engine.Terms{Budgets: map[string][]engine.Budget{}}
		for _, pool := range s.Pools {
			terms.Budgets[pool.Name] = []engine.Budget{{Max: most}}
		}
		p := engine.Drift(s, terms)
		count := map[string]int{}
		for _, r := range p.Removes {
			if count[r.Pool]++; count[r.Pool] > most {
				t.Fatalf("%s\nbudget %d", p, most)
			}
		}
		carriedOut(t, s, p, 0, false)
	})
}
