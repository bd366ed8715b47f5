package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// withBuffers draws buffers beside what a script has.
func withBuffers(t *rapid.T, script string) string {
	lines := []string{script}
	for i := range rapid.IntRange(1, 3).Draw(t, "buffers") {
		lines = append(lines, fmt.Sprintf("buffer room%d-0..%d cpu=%s %s", i, rapid.IntRange(0, 5).Draw(t, "chunks"),
			rapid.SampledFrom([]string{"100m", "700m", "1500m", "3", "9"}).Draw(t, "size"),
			rapid.SampledFrom([]string{"", "", "need=zone=a", "tolerate=dedicated", "labels=app=a apart=host",
				"labels=app=b spread=zone:1"}).
				Draw(t, "constraint")))
	}
	return strings.Join(lines, "\n")
}

// withoutBuffers is the part of a plan that is about pods.
func withoutBuffers(p plan.Plan) string {
	p.Buffers = plan.Buffers{}
	p.Launches = slices.DeleteFunc(slices.Clone(p.Launches), func(l plan.Launch) bool { return len(l.Pods) == 0 })
	for i := range p.Launches {
		p.Launches[i].Buffers = nil
	}
	return p.String()
}

// K-37, K-40: what pods get does not depend on buffers, whatever these ask for, and whatever limits there are. Each
// buffer pod has one place, or one reason for having none.
func TestK37_BuffersTakeNothingFromPods(t *testing.T) {
	t.Parallel()
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		full := withBuffers(t, script)
		s := parse(t, full)
		p := engine.Provision(s)
		if got, want := withoutBuffers(p), engine.Provision(parse(t, script)).String(); got != want {
			t.Fatalf("%s\n----\nwith buffers\n%s\nwithout\n%s", full, got, want)
		}
		count := map[string]int{}
		for _, place := range p.Buffers.Places {
			count[place.Pod.UID]++
		}
		for _, l := range p.Launches {
			for _, pod := range l.Buffers {
				count[pod.UID]++
			}
		}
		kept += len(count)
		for _, u := range p.Buffers.Unplaced {
			count[u.Pod.UID]++
			if u.String() == "" {
				t.Fatalf("%s has no room, and no reason", u.Pod)
			}
		}
		for _, pod := range s.Buffers {
			if count[pod.UID] != 1 {
				t.Fatalf("%s\n----\n%s\n%s is in the plan %d times", full, p, pod.Ref(), count[pod.UID])
			}
		}
	})
	if kept == 0 {
		t.Error("no buffer ever had room: the law was not tried")
	}
}

// K-40: while a limit keeps a pod waiting, nothing is launched for buffers in the pools that it is about.
func TestK40_NothingIsLaunchedForBuffersWhereAPodWaitsForALimit(t *testing.T) {
	t.Parallel()
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		script := withBuffers(t, enginetest.Script(t))
		p := engine.Provision(parse(t, script))
		for _, u := range p.Unplaced {
			for _, refusal := range u.Pools {
				if refusal.Last().Demand != plan.ByLimit {
					continue
				}
				tried++
				for _, l := range p.Launches {
					if l.Pool == refusal.Pool && len(l.Pods) == 0 {
						t.Fatalf("%s\n----\n%s\na node is launched for buffers, and %s waits", script, p, u.Pod)
					}
				}
			}
		}
	})
	if tried == 0 {
		t.Error("no limit ever kept a pod waiting: the law was not tried")
	}
}

// asPods is a snapshot whose buffer pods are pods, and the plan for them.
func asPods(s *cluster.Snapshot, p plan.Plan) (*cluster.Snapshot, plan.Plan) {
	parts := *s
	parts.Pending, parts.Buffers = slices.Concat(s.Pending, s.Buffers), nil
	p.Launches = slices.Clone(p.Launches)
	for i, l := range p.Launches {
		p.Launches[i].Pods = slices.Concat(l.Pods, l.Buffers)
		for _, pod := range l.Buffers {
			p.Order = append(slices.Clip(p.Order), pod.UID)
		}
	}
	p.Nominations = slices.Concat(p.Nominations, p.Buffers.Places)
	for _, place := range p.Buffers.Places {
		p.Order = append(slices.Clip(p.Order), place.Pod.UID)
	}
	slices.SortStableFunc(p.Nominations, func(a, b plan.Nominate) int { return strings.Compare(a.Node, b.Node) })
	p.Unplaced = slices.Concat(p.Unplaced, p.Buffers.Unplaced)
	return cluster.New(parts), p
}

// K-37: the room is there. If the buffer pods were pods, they would run where they have their places, beside all
// others, and within all limits.
func TestK37_BuffersHaveTheRoomThatTheyAreSaidToHave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := withBuffers(t, enginetest.PlainScript(t))
		s := parse(t, script)
		result := engine.Provision(s)
		all, p := asPods(s, result)
		if broken := enginetest.Check(all, p, 0); broken != nil {
			t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, result, strings.Join(broken, "\n"))
		}
	})
}

// bufferedScript draws nodes that pods use in part, or not at all, and buffers that mostly have room there.
func bufferedScript(t *rapid.T) string {
	pick := picker(t)
	lines := twoSizes()
	for i := range rapid.IntRange(2, 6).Draw(t, "nodes") {
		lines = append(lines, fmt.Sprintf("node n%d type=%s zone=%s pool=default", i, pick("small", "large"),
			pick("a", "b")))
		if pods := pick("", "0", "1", "2"); pods != "" {
			lines = append(lines, fmt.Sprintf("pod web%d-0..%s cpu=%s labels=app=web node=n%d %s", i, pods,
				pick("100m", "600m"), i, pick("", "", "spread=zone:1")))
		}
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "buffers") {
		lines = append(lines, fmt.Sprintf("buffer room%d-0..%s cpu=%s labels=app=web %s", i, pick("0", "2"),
			pick("200m", "900m", "1500m"), pick("", "", "need=zone=a", "apart=host", "spread=zone:1")))
	}
	return strings.Join(lines, "\n")
}

// K-39: no node goes whose room would be launched again. After empty nodes have gone, or nodes to save money without a
// replacement, nothing is launched for buffers that was not launched before.
func TestK39_RoomThatGoesIsNotLaunchedAgain(t *testing.T) {
	t.Parallel()
	removals := 0
	rapid.Check(t, func(t *rapid.T) {
		script := bufferedScript(t)
		s := parse(t, script)
		before := engine.Provision(s)
		if len(before.Launches)+len(before.Unplaced) > 0 {
			return
		}
		for verb, p := range map[string]plan.Plan{
			"empty": engine.Emptiness(s, 0, nil), "consolidate": engine.Consolidate(s, engine.Terms{}),
		} {
			if len(p.Launches) > 0 || len(p.Removes) == 0 {
				continue
			}
			removals++
			parts := *s
			parts.Nodes = nil
			var moved []*cluster.Pod
			for _, node := range s.Nodes {
				if slices.ContainsFunc(p.Removes, func(r plan.Remove) bool { return r.Claim == node.Claim }) {
					for _, pod := range node.Pods {
						if own := *pod; !own.Fixed {
							own.Node = ""
							moved = append(moved, &own)
						}
					}
					continue
				}
				parts.Nodes = append(parts.Nodes, node)
			}
			parts.Pending = slices.Concat(s.Pending, moved)
			if after := engine.Provision(cluster.New(parts)); len(after.Launches) > 0 {
				t.Fatalf("%s\n----\n%s\n%s\nand then\n%s", script, verb, p, after)
			}
		}
	})
	if removals == 0 {
		t.Error("nothing was ever removed: the law was not tried")
	}
}
