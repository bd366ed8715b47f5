package engine_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// withFloors draws for each pool how many nodes it always keeps. The pools of s are the test's own.
func withFloors(t *rapid.T, s *cluster.Snapshot) {
	for _, pool := range s.Pools {
		pool.MinNodes = int64(rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "floor"))
	}
}

// useful counts the nodes of a pool on which pods can run and which stay.
func useful(s *cluster.Snapshot, pool string) (n int64) {
	staying, _ := engine.Leaving(s, pool)
	for _, node := range staying {
		if node.Initialized && !node.NotReady {
			n++
		}
	}
	return n
}

// K-54: whatever the cluster, neither emptiness nor consolidation takes a pool below its floor, or further below.
func TestK54_NothingGoesForGoodFromTheFloor(t *testing.T) {
	t.Parallel()
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		s := shrunk(t, enginetest.PlainScript(t))
		free := engine.Consolidate(s, engine.Terms{})
		withFloors(t, s)
		for _, p := range []plan.Plan{engine.Consolidate(s, engine.Terms{}), engine.Emptiness(s, 0, nil)} {
			for _, pool := range s.Pools {
				gone := int64(0)
				for _, r := range p.Removes {
					if r.Pool == pool.Name {
						gone++
					}
				}
				for _, l := range p.Launches {
					if l.Pool == pool.Name {
						gone--
					}
				}
				if left := useful(s, pool.Name) - gone; gone > 0 && left < pool.MinNodes {
					t.Fatalf("pool %s keeps %d nodes and is left with %d by\n%s", pool.Name, pool.MinNodes, left, p)
				}
			}
			if len(p.Removes) < len(free.Removes) {
				held++
			}
		}
	})
	if held == 0 {
		t.Error("no floor ever kept a node: the law was not tried")
	}
}

// K-54: a plan launches what a pool lacks to its floor, never one too many, or a limit leaves no room for more. What
// pods get is what they get without floors.
func TestK54_APlanFillsTheFloor(t *testing.T) {
	t.Parallel()
	filled := 0
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		s := parse(t, script)
		before := engine.Provision(s)
		withFloors(t, s)
		p := engine.Provision(s)
		rest := p
		rest.Launches = slices.DeleteFunc(slices.Clone(p.Launches),
			func(l plan.Launch) bool { return slices.Contains(l.For, plan.AskFloor) })
		if rest.String() != before.String() {
			t.Fatalf("%s\n----\nwith floors\n%s\nwithout\n%s", script, p, before)
		}
		after := enginetest.Applied(s, plan.Plan{Launches: p.Launches}, 0)
		for _, pool := range s.Pools {
			own, others := int64(0), int64(0)
			for _, l := range p.Launches {
				switch {
				case l.Pool != pool.Name:
				case slices.Contains(l.For, plan.AskFloor):
					own++
				default:
					others++
				}
			}
			has := int64(0)
			for _, node := range s.Nodes {
				if node.Claim != "" && node.Pool == pool.Name && !node.Deleting {
					has++
				}
			}
			lacks := max(0, pool.MinNodes-has-others)
			filled += int(own)
			if pool.Static || pool.Blocked != "" {
				lacks = 0
			}
			if own > lacks {
				t.Fatalf("%s\n----\npool %s lacks %d nodes, and %d are launched:\n%s", script, pool.Name, lacks, own,
					p)
			}
			now := after.Pool(pool.Name)
			if own < lacks && !full(after, now) && offersNodes(after, now) {
				t.Fatalf("%s\n----\npool %s lacks %d nodes, %d are launched, and it is at no limit:\n%s", script,
					pool.Name, lacks, own, p)
			}
			if now.Limits.Above(now.Used) && !s.Pool(pool.Name).Limits.Above(s.Pool(pool.Name).Used) {
				t.Fatalf("%s\n----\npool %s is above its limits after\n%s", script, pool.Name, p)
			}
		}
	})
	if filled == 0 {
		t.Error("no floor was ever filled: the law was not tried")
	}
}

// full reports whether some limit may keep a pool from a further node.
func full(s *cluster.Snapshot, pool *cluster.Pool) bool {
	_, nodes := pool.Limits.CheckNodes(pool.Used.Nodes)
	return !nodes || pool.Limits.HasResources() || s.Ceiling().Left() == 0 || pool.FreeSlots != nil
}

// offersNodes reports whether a pool admits a further node beside all that are there, apart from limits: what a
// reservation covers may be taken.
func offersNodes(s *cluster.Snapshot, pool *cluster.Pool) bool {
	own := *pool
	own.MinNodes, own.Limits, own.FreeSlots = 1000, limit.Unlimited(), nil
	return len(engine.Provision(cluster.New(cluster.Snapshot{Names: s.Names, Pools: []*cluster.Pool{&own},
		Nodes: s.Nodes, Daemons: s.Daemons})).Launches) > 0
}
