package provisioning_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// displaced returns a rig with a pod whose promised place on a node is taken. Another node would do.
func displaced(nodes ...*cluster.Node) *rig {
	index := catalog.NewIndex(catalog.Catalog{Types: []catalog.Type{{
		Name: "t", Capacity: resources.Amounts{"cpu": 4000, "pods": 10},
		Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.OnDemand, Available: true}},
	}}}, resources.NewSpace())
	pod := somePod()
	pod.Promised = "full"
	r := newRig()
	r.picture.snapshot = cluster.New(cluster.Snapshot{
		Version: 1, Names: resources.NewSpace().Names(), Pending: []*cluster.Pod{pod},
		Nodes: append(nodes, &cluster.Node{Name: "full", Claim: "full", Pool: "default", Initialized: true}),
		Pools: []*cluster.Pool{{Name: "default", Limits: limit.Unlimited(), Catalog: index}},
	})
	return r
}

// launches makes a step and returns how many nodes it launches, and when it wants to come again.
func (r *rig) launches(t *testing.T) (int, time.Duration) {
	t.Helper()
	before := len(r.applier.plans)
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || len(r.applier.plans) != before+1 {
		t.Fatalf("%d plans, error %v", len(r.applier.plans)-before, err)
	}
	return len(r.applier.plans[before].Launches), result.RequeueAfter
}

// bind lets the scheduler bind a pod that needed a node.
func (r *rig) bind(name string) {
	pod := pendingPod(name)
	r.window.Apply(pod, r.clock.Now())
	r.window.Close(0)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "full"
	r.window.Apply(bound, r.clock.Now())
}

// P-23, B-16: another node for a pod whose place was taken is launched when no pod was bound for the idle time.
func TestFurtherNodesWaitForTheSchedulersTurn(t *testing.T) {
	t.Parallel()
	r := displaced()
	r.bind("b")
	if n, again := r.launches(t); n != 0 || again != time.Second {
		t.Fatalf("%d launches, next look after %s; want none for a second", n, again)
	}
	r.clock.Advance(999 * time.Millisecond)
	if n, again := r.launches(t); n != 0 || again != time.Millisecond {
		t.Fatalf("%d launches, next look after %s; want none for a millisecond", n, again)
	}
	r.clock.Advance(time.Millisecond)
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: the scheduler has come to rest", n)
	}
}

// P-23: no stream of bindings postpones a launch for longer than the longest time of a batch.
func TestALaunchIsNotPutOffForEver(t *testing.T) {
	t.Parallel()
	r := displaced()
	for i := range 6 {
		r.bind("b")
		if n, _ := r.launches(t); n != 0 {
			t.Fatalf("launched after %d steps of half a second", i)
		}
		r.clock.Advance(500 * time.Millisecond)
	}
	r.bind("b")
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches after three seconds, want one", n)
	}
	r.bind("b")
	if n, _ := r.launches(t); n != 0 {
		t.Fatalf("%d launches: the next one has its own time", n)
	}
}

// P-23: a node on its way is waited for, unless it does not come up, or pods have no place to hope for.
func TestOnlyWhatComesSoonIsWaitedFor(t *testing.T) {
	t.Parallel()
	coming := &cluster.Node{Claim: "coming", Pool: "default"}
	r := displaced(coming)
	coming.Created = r.clock.Now().Unix()
	if n, again := r.launches(t); n != 0 || again != time.Second {
		t.Fatalf("%d launches, next look after %s: a node is on its way", n, again)
	}
	r.clock.Advance(3 * time.Second)
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches after the longest time, want one", n)
	}

	stuck := &cluster.Node{Claim: "stuck", Pool: "default"}
	r = displaced(stuck)
	stuck.Created = r.clock.Now().Add(-2 * time.Minute).Unix()
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: a claim that is stuck holds up nobody", n)
	}

	r = displaced(coming)
	coming.Created = r.clock.Now().Unix()
	r.picture.snapshot.Pending[0].Promised = ""
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: no plan has promised this pod a place", n)
	}
}

// P-23, B-16: if many pods have places and are not bound yet, a slow scheduler gets as long as it needs for them at
// its own pace, but at most a minute. Later pods do not extend this.
func TestASlowSchedulerHasItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waiting, later int
		want           time.Duration // until the launch
	}{
		"nobody waits":          {0, 100, 3 * time.Second},
		"a few":                 {5, 5, 3 * time.Second},
		"twenty":                {20, 20, 10 * time.Second},
		"twenty, and further":   {20, 100, 10 * time.Second},
		"more than in a minute": {1000, 1000, time.Minute},
	} {
		w := provisioning.NewWindow(time.Second, 3*time.Second, nil)
		clock := controllertest.NewClock()
		bind := func(name string) {
			pod := pendingPod(name)
			w.Apply(pod, clock.Now())
			w.Close(0)
			bound := pod.DeepCopy()
			bound.Spec.NodeName = "n"
			w.Apply(bound, clock.Now())
		}
		bind("first")
		begin, waiting := clock.Now(), c.waiting
		for w.PutOff(clock.Now(), false, waiting) > 0 {
			waiting = c.later
			clock.Advance(500 * time.Millisecond)
			bind("another")
		}
		if took := clock.Now().Sub(begin); took != c.want {
			t.Errorf("%s: put off for %s, want %s", name, took, c.want)
		}
	}
}

// leaving returns a rig with a pod that has no place and no promise. Another pod with the same requests is leaving a
// node, and still runs there.
func leaving(t *testing.T) (r *rig, node *cluster.Node) {
	t.Helper()
	node = &cluster.Node{Name: "going", Claim: "going", Pool: "default", Initialized: true, Deleting: true}
	r = displaced(node)
	pod := r.picture.snapshot.Pending[0]
	pod.Promised = ""
	alike := *pod.Shape // a pod that comes when the other is gone has another one, which says the same
	node.Pods = []*cluster.Pod{{Name: "old", Shape: &alike, Node: "going"}}
	return r, node
}

// P-23, B-11: another node for pods that leave their nodes for found places is launched when all have left and the
// scheduler has come to rest.
func TestFurtherNodesWaitForPodsThatLeave(t *testing.T) {
	t.Parallel()
	r, node := leaving(t)
	r.window.Leave(node.Pods, r.clock.Now())
	for range 2 {
		if n, again := r.launches(t); n != 0 || again != time.Second {
			t.Fatalf("%d launches, next look after %s; want none for a second", n, again)
		}
		r.clock.Advance(500 * time.Millisecond)
	}
	node.Pods[0].Terminating = true
	if n, again := r.launches(t); n != 0 || again != 500*time.Millisecond {
		t.Fatalf("%d launches, next look after %s: the pod has just left", n, again)
	}
	r.clock.Advance(500 * time.Millisecond)
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: nobody moves any more", n)
	}
}

// P-23: no launch waits for a drain that takes longer than the longest time of a batch or was not reported, or for
// more pods than leave.
func TestALaunchIsNotPutOffForADrain(t *testing.T) {
	t.Parallel()
	r, node := leaving(t)
	r.window.Leave(node.Pods, r.clock.Now())
	if n, _ := r.launches(t); n != 0 {
		t.Fatalf("%d launches at once", n)
	}
	r.clock.Advance(2999 * time.Millisecond)
	if n, _ := r.launches(t); n != 0 {
		t.Fatalf("%d launches after 2.999 s", n)
	}
	r.clock.Advance(time.Millisecond)
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches after the longest time, want one", n)
	}

	r, _ = leaving(t)
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: no place was found for pods of this node", n)
	}

	r, node = leaving(t)
	r.window.Leave(node.Pods, r.clock.Now())
	node.Deleting = false
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: that node stays, whatever leaves another one", n)
	}

	r, node = leaving(t)
	r.window.Leave(node.Pods, r.clock.Now())
	further := *r.picture.snapshot.Pending[0]
	further.Name, further.UID = "further", "further"
	parts := *r.picture.snapshot
	parts.Pending = append(parts.Pending, &further)
	r.picture.snapshot = cluster.New(parts)
	if n, _ := r.launches(t); n != 1 {
		t.Fatalf("%d launches, want one: the workload grows", n)
	}
}
