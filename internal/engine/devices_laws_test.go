package engine_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// withDevices returns the pod as one that asks for devices.
func withDevices(pod *cluster.Pod) *cluster.Pod {
	own, shape := *pod, *pod.Shape.WithoutWishes()
	shape.Wishes, shape.SoftSpread, shape.Tolerations = pod.Shape.Wishes, pod.Shape.SoftSpread, pod.Shape.Tolerations
	shape.Blocked, shape.BlockedBy = "it asks for devices", cause.DevicesUnknown
	shape.Narrow([]cluster.Alternative{{Labels: requirement.NewSet(requirement.Nothing(cluster.LabelHostname))}})
	own.Shape = &shape
	return &own
}

// K-41. A pod that waits for devices is planned for as if it were not there: it gets nothing, and all others get what they
// would get without it.
func TestK41_WhoWaitsForDevicesIsNotPlannedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		s := parse(t, script)
		with, without, asking := *s, *s, map[string]bool{}
		with.Pending, without.Pending = nil, nil
		for _, pod := range s.Pending {
			if rapid.Bool().Draw(t, "devices") {
				asking[pod.UID] = true
				with.Pending = append(with.Pending, withDevices(pod))
				continue
			}
			with.Pending, without.Pending = append(with.Pending, pod), append(without.Pending, pod)
		}
		p := engine.Provision(cluster.New(with))
		p.Unplaced = slices.DeleteFunc(p.Unplaced, func(u plan.Unplaced) bool {
			asked := asking[u.Pod.UID]
			delete(asking, u.Pod.UID)
			return asked
		})
		if len(asking) > 0 {
			t.Fatalf("%s\n----\n%s\nof those that ask for devices %v are not unplaced", script, p, asking)
		}
		want := engine.Provision(cluster.New(without))
		if len(p.Unplaced) != len(want.Unplaced) {
			t.Fatalf("%s\n----\n%s\nwithout the pods that ask for devices:\n%s", script, p, want)
		}
		p.Unplaced, want.Unplaced = nil, nil // what keeps the others may name a rule of those that ask for devices
		if p.String() != want.String() {
			t.Fatalf("%s\n----\n%s\nwithout the pods that ask for devices:\n%s", script, p, want)
		}
	})
}

// K-41. Where a pod runs with devices, nothing is removed that is not lost anyway: the node is not empty, not too dear, and
// does not drift away.
func TestK41_WhoHasDevicesKeepsItsNode(t *testing.T) {
	t.Parallel()
	held, went := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		parts := *shrunk(t, script)
		pinned := map[string]bool{}
		for i, node := range parts.Nodes {
			own := *node
			own.Pods = slices.Clone(node.Pods)
			for j, pod := range own.Pods {
				if rapid.IntRange(0, 5).Draw(t, "devices") == 5 {
					own.Pods[j] = withDevices(pod)
					pinned[node.Claim] = pinned[node.Claim] || !pod.Fixed
				}
			}
			parts.Nodes[i] = &own
		}
		s := cluster.New(parts)
		for _, p := range []plan.Plan{engine.Emptiness(s, 0, nil), engine.Drift(s, engine.Terms{}),
			engine.Consolidate(s, engine.Terms{SpotToSpot: true})} {
			for _, r := range p.Removes {
				went++
				if pinned[r.Claim] {
					t.Fatalf("%s\n----\n%s goes, where a pod has devices:\n%s", script, r.Claim, p)
				}
			}
			held += strings.Count(p.String(), "it asks for devices")
		}
	})
	if held == 0 || went == 0 {
		t.Errorf("%d nodes were held, %d went: want some of each", held, went)
	}
}
