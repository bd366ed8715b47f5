package engine_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

func parse(t *rapid.T, script string) *cluster.Snapshot {
	t.Helper()
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		t.Fatalf("%v in\n%s", err, script)
	}
	return snapshot
}

// P-21, by a naive reading of the rules (the oracle with kube-scheduler's own code stands elsewhere): no plan breaks a
// constraint, whichever of its instance types each claim becomes.
func TestPlansAreValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		snapshot := parse(t, script)
		result := engine.Provision(snapshot)
		for choice := range 3 {
			if broken := enginetest.Check(snapshot, result, choice); broken != nil {
				t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, result, strings.Join(broken, "\n"))
			}
		}
	})
}

// Planning changes nothing it was given.
func TestPlanningLeavesTheSnapshotAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		snapshot := parse(t, enginetest.Script(t))
		first, second := engine.Provision(snapshot).String(), engine.Provision(snapshot).String()
		if first != second {
			t.Fatalf("first\n%s\nthen\n%s", first, second)
		}
	})
}

// Once a plan is carried out there is nothing left to launch: the pods that stayed unplaced stay so. There are two
// exceptions: spread pods, and pods that follow others. A planned node is counted even if it could still become one
// that a constraint does not count. So a spread pod may wait for the round in which the node is known.
func TestPlanningAfterApplyingLaunchesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		snapshot := parse(t, script)
		first := engine.Provision(snapshot)
		second := engine.Provision(enginetest.Applied(snapshot, first, 0))
		pods := map[string]*cluster.Pod{}
		for _, pod := range snapshot.Pending {
			pods[pod.UID] = pod
		}
		settled := func(ref plan.PodRef) bool {
			return len(pods[ref.UID].Shape.Spread)+len(pods[ref.UID].Shape.Affinity) == 0
		}
		if slices.ContainsFunc(second.Launches,
			func(l plan.Launch) bool { return slices.ContainsFunc(l.Pods, settled) }) {
			t.Fatalf("%s\n----\n%s\nand then\n%s", script, first, second)
		}
	})
}

// L-42: exactly the excess is chosen, of nodes that are not leaving; once those are marked nothing more is.
func TestTrimChoosesTheExcess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		snapshot := parse(t, script)
		p := engine.Trim(snapshot, nil)
		chosen := map[string]bool{}
		for _, remove := range p.Removes {
			chosen[remove.Claim] = true
		}
		marked := *snapshot
		marked.Nodes = nil
		excess := map[string]int64{}
		for _, pool := range snapshot.Pools {
			staying, leaving := engine.Leaving(snapshot, pool.Name)
			most, _ := pool.Limits.Nodes()
			if most >= 0 {
				excess[pool.Name] = min(int64(len(staying)),
					max(0, int64(len(staying)+len(leaving))-most-int64(len(leaving))))
			}
		}
		for _, node := range snapshot.Nodes {
			own := *node
			if chosen[node.Claim] {
				if excess[node.Pool]--; node.Deleting || node.Disrupting {
					t.Fatalf("%s\n----\n%s\n%s is leaving already", script, p, node.Claim)
				}
				own.Disrupting = true
			}
			marked.Nodes = append(marked.Nodes, &own)
		}
		for pool, left := range excess {
			if left != 0 {
				t.Fatalf("%s\n----\n%s\npool %s: %d too few (or too many) are chosen", script, p, pool, left)
			}
		}
		if again := engine.Trim(cluster.New(marked), nil); len(again.Removes) != 0 || len(chosen) != len(p.Removes) {
			t.Fatalf("%s\n----\n%s\nand again\n%s", script, p, again)
		}
	})
}
