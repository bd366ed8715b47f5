package engine_test

import (
	"fmt"
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

// K-41. Planning treats a pod that waits for devices as if it were not there: it gets nothing, and all others get what
// they would get without it.
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

// K-41. A node on which a pod runs with devices is not removed, unless it is lost anyway: it is not empty, not too
// dear, and does not drift away.
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

// claiming returns the pod as one with these claims.
func claiming(pod *cluster.Pod, claims ...string) *cluster.Pod {
	own, shape := *pod, *pod.Shape.Unblocked()
	shape.Namespace = "default"
	for _, claim := range claims {
		shape.Claims = append(shape.Claims, cluster.DeviceClaim{Name: claim, Object: claim})
	}
	own.Shape = &shape
	return &own
}

// withClaims draws devices on the nodes of a script, claims for them, and pods that have some of these.
func withClaims(t *rapid.T, script string) cluster.Snapshot {
	plain := parse(t, script)
	for _, node := range plain.Nodes {
		if n := rapid.IntRange(0, 3).Draw(t, "devices of "+node.ID()); n > 0 {
			script += fmt.Sprintf("\ndevices %s gpu=%d", node.ID(), n)
		}
	}
	names := []string{"c0", "c1", "c2", "c3", "c4", "c5"}
	for _, name := range names {
		script += fmt.Sprintf("\nresourceclaim %s gpu=%d", name, rapid.IntRange(1, 2).Draw(t, name))
		if nodes := len(plain.Nodes); nodes > 0 && rapid.IntRange(0, 4).Draw(t, "allocated") == 0 {
			script += " on=" + plain.Nodes[rapid.IntRange(0, nodes-1).Draw(t, "on")].ID()
		}
	}
	parts := *parse(t, script)
	parts.Pending = slices.Clone(parts.Pending)
	for i, pod := range parts.Pending {
		if pod.Node == "" && rapid.Bool().Draw(t, "claims") {
			parts.Pending[i] = claiming(pod, rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID).Draw(t,
				"of it")...)
		}
	}
	return parts
}

// K-42. No node is launched for a pod with claims. All those that are expected on nodes get their devices there, in
// the order of the plan. Each of those that are said to find none finds none, once the others have theirs.
func TestK42_DevicesAreGivenOnce(t *testing.T) {
	t.Parallel()
	placed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.New(withClaims(t, enginetest.Script(t)))
		p := engine.Provision(s)
		pods, nodes := map[string]*cluster.Pod{}, map[string]*cluster.Node{}
		for _, pod := range s.Pending {
			pods[pod.UID] = pod
		}
		for _, node := range s.Nodes {
			nodes[node.ID()] = node
		}
		for _, l := range p.Launches {
			for _, pod := range l.Pods {
				if len(pods[pod.UID].Shape.Claims) > 0 {
					t.Fatalf("%s\na node is launched for %s, which has claims", p, pod)
				}
			}
		}
		on := map[string]string{}
		for _, n := range p.Nominations {
			on[n.Pod.UID] = n.Node
		}
		left := s.Devices
		for _, uid := range p.Order {
			pod := pods[uid]
			if len(pod.Shape.Claims) == 0 {
				continue
			}
			placed++
			node := nodes[on[uid]]
			if !node.Initialized || node.Name == "" {
				t.Fatalf("%s\n%s is expected on %s, which is not initialized", p, pod.Ref(), node.ID())
			}
			if left, _ = left.Place(pod.Shape, node); left == nil {
				t.Fatalf("%s\n%s has no devices on %s when those before it have theirs", p, pod.Ref(), node.ID())
			}
		}
		for _, u := range p.Unplaced {
			pod := pods[u.Pod.UID]
			if len(pod.Shape.Claims) == 0 || len(u.Pools) == 0 || u.Pools[0].Last().Cause != cause.DevicesInUse {
				continue
			}
			refused++
			for _, node := range s.Nodes {
				if more, _ := left.Place(pod.Shape, node); more != nil && node.Initialized && !node.Deleting &&
					!node.Disrupting {
					t.Fatalf("%s\n%s finds no devices, and node %s has them", p, u.Pod, node.ID())
				}
			}
		}
	})
	if placed == 0 || refused == 0 {
		t.Errorf("%d pods with claims were placed, %d refused: want some of each", placed, refused)
	}
}
