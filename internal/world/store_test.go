package world

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func TestWhatPlanningDoesNotSeeChangesNoVersion(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testPool("default", 1))
	_ = s.Apply(testNode("n1", "nu1", 2, "p1"))
	_ = s.Apply(testClaim("c1", "cu1", 3, "default", "p1", "Launched", "Registered", "Initialized"))
	_ = s.Apply(testPod("web", "u1", 4, "n1"))
	before := s.Snapshot()
	node := testNode("n1", "nu1", 5, "p1")
	node.Status.Conditions[0].LastHeartbeatTime.Time = time.Unix(99, 0)
	_ = s.Apply(node)
	pod := testPod("web", "u1", 6, "n1")
	pod.Status.Phase = corev1.PodRunning
	_ = s.Apply(pod)
	pool := testPool("default", 7)
	pool.Status.Nodes = new(int64(1))
	_ = s.Apply(pool)
	_ = s.Apply(testNode("n1", "nu1", 2, "p-old")) // out of date
	if after := s.Snapshot(); after != before || s.Version() != before.Version {
		t.Errorf("version %d became %d", before.Version, s.Version())
	}
	_ = s.Apply(testPod("db", "u2", 8, "n1"))
	after := s.Snapshot()
	if after == before || after.Version != s.Version() || len(before.Nodes[0].Pods) != 1 ||
		len(after.Nodes[0].Pods) != 2 {
		t.Errorf("after one more pod:\n%s", picture(after))
	}
	if after.Pools[0] != before.Pools[0] || after.Nodes[0].Pods[1] != before.Nodes[0].Pods[0] {
		t.Error("what has not changed is not shared")
	}
}

func TestNodeAndClaimAreOneMachine(t *testing.T) { // P-23
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testPool("default", 1))
	_ = s.Apply(testClaim("c1", "cu1", 2, "default", "p1", "Launched"))
	n := s.Snapshot().Nodes[0]
	if n.Name != "" || n.Claim != "c1" || n.ID() != "c1" || n.Allocatable.At(resources.Memory) != 15<<30 {
		t.Errorf("on its way: %+v", n)
	}
	_ = s.Apply(testNode("n1", "nu1", 3, "p1"))
	snapshot := s.Snapshot()
	if got := names(snapshot); got != "n1/c1" || snapshot.Nodes[0].Initialized {
		t.Errorf("nodes %s", got)
	}
	_ = s.Apply(testClaim("c1", "cu1", 4, "default", "p1", "Launched", "Registered", "Initialized"))
	if s.Snapshot().Nodes[0].Initialized {
		t.Error("the claim is ahead of the node's watch: its taints of a new node must go on counting as passing")
	}
	joined := testNode("n1", "nu1", 5, "p1")
	joined.Labels[karpenterv1.NodeInitializedLabelKey] = "true"
	_ = s.Apply(joined)
	if n := s.Snapshot().Nodes[0]; !n.Initialized || n.Pool != "default" || n.ConsolidatableAt != 5030 {
		t.Errorf("initialized: %+v", n)
	}
	pool := testPool("default", 5)
	pool.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{Duration: new(time.Minute)}
	_ = s.Apply(pool)
	if n := s.Snapshot().Nodes[0]; n.ConsolidatableAt != 5060 {
		t.Errorf("after the pool changed: consolidatable at %d", n.ConsolidatableAt)
	}
	if s.Usage("default").Nodes != 1 {
		t.Errorf("usage %+v", s.Usage("default"))
	}
}

func TestSuccessorOfTheSameNameIsAnotherObject(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testPod("web-0", "old", 1, "n1"))
	_ = s.Apply(testPod("web-0", "new", 5, ""))
	s.Remove(testPod("web-0", "old", 4, "n1"))
	_ = s.Apply(testPod("web-0", "old", 3, "n1"))
	snapshot := s.Snapshot()
	if len(snapshot.Pending) != 1 || snapshot.Pending[0].UID != "new" || len(s.loads) != 0 {
		t.Errorf("picture\n%s", picture(snapshot))
	}
	s.Remove(testPod("web-0", "third", 9, "")) // a later one that was never seen: "new" must have gone before it
	if got := picture(s.Snapshot()); got != "" {
		t.Errorf("after a later pod of the name has gone:\n%s", got)
	}
}

func TestGravesAreForgotten(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := c.store()
	for i := range 30 {
		s.Remove(testPod("web", fmt.Sprintf("u%d", i), i, ""))
		c.now = c.now.Add(5 * time.Minute)
	}
	if kept := len(s.graves.recent) + len(s.graves.older); kept > 6 {
		t.Errorf("%d graves are kept", kept)
	}
	if !s.graves.holds("u29") || s.graves.holds("u0") {
		t.Error("the wrong graves are kept")
	}
}

func TestPoolShowsCatalogueUsageAndSlots(t *testing.T) { // V-12, L-13, L-14, V-13
	t.Parallel()
	s := newClock().store()
	pool := testPool("default", 1)
	pool.Spec.HardLimits = karpenterv1.Limits(quantities("nodes", "3"))
	_ = s.Apply(pool)
	p := s.Snapshot().Pools[0]
	if p.Blocked != "node class KWOKNodeClass/default has no catalogue" || p.Catalog != nil ||
		!slices.Equal(p.FreeSlots, []int{0, 1, 2}) {
		t.Errorf("pool %+v", p)
	}
	if err := s.SetCatalog(testClass(), testCatalog(10)); err != nil {
		t.Fatal(err)
	}
	_ = s.Apply(testClaim(limit.SlotName("default", "uid-of-default", 1), "cu1", 2, "other", ""))
	_ = s.Apply(testClaim("by-hand", "cu2", 3, "default", ""))
	p = s.Snapshot().Pools[0]
	if p.Blocked != "" || p.Catalog == nil || !slices.Equal(p.FreeSlots, []int{0, 2}) {
		t.Errorf("with a catalogue and a slot taken: %+v", p)
	}
	if p.Used.Nodes != 1 || p.Used.Capacity.At(resources.CPU) != 8000 { // the largest type, until it is known which
		t.Errorf("usage %+v", p.Used)
	}
	s.Remove(testClaim("by-hand", "cu2", 4, "default", ""))
	if p = s.Snapshot().Pools[0]; p.Used.Nodes != 0 {
		t.Errorf("usage after the claim has gone %+v", p.Used)
	}
	s.Remove(testClaim(limit.SlotName("default", "uid-of-default", 1), "cu1", 5, "other", ""))
	if p = s.Snapshot().Pools[0]; !slices.Equal(p.FreeSlots, []int{0, 1, 2}) {
		t.Errorf("after the slot was given up: %v", p.FreeSlots)
	}
	pool = pool.DeepCopy()
	pool.UID, pool.ResourceVersion = "uid-of-its-successor", "6"
	_ = s.Apply(testClaim(limit.SlotName("default", string(pool.UID), 0), "cu3", 7, "default", ""))
	_ = s.Apply(pool)
	if p = s.Snapshot().Pools[0]; !slices.Equal(p.FreeSlots, []int{1, 2}) {
		t.Errorf("slots of a pool made anew: %v", p.FreeSlots)
	}
	pool = pool.DeepCopy()
	pool.ResourceVersion, pool.Spec.HardLimits = "9", karpenterv1.Limits(quantities("nodes", "1000000000"))
	_ = s.Apply(pool)
	if got := len(s.Snapshot().Pools[0].FreeSlots); got != maxFreeSlots {
		t.Errorf("%d slots are listed", got)
	}
}

func TestCataloguesAreCompiledOnce(t *testing.T) { // P-11, V-12
	t.Parallel()
	s := newClock().store()
	other := ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "other"}
	_ = s.Apply(testPool("default", 1))
	pool := testPool("second", 2)
	pool.Spec.Template.Spec.NodeClassRef.Name = "other"
	_ = s.Apply(pool)
	same := testCatalog(10)
	for _, err := range []error{s.SetCatalog(testClass(), same), s.SetCatalog(other, testCatalog(10))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := s.Snapshot()
	if before.Pools[0].Catalog != before.Pools[1].Catalog {
		t.Error("equal catalogues of two classes are two")
	}
	_ = s.SetCatalog(testClass(), same)
	_ = s.SetCatalog(testClass(), testCatalog(10))
	if s.Snapshot() != before {
		t.Error("an equal catalogue changes the picture")
	}
	_ = s.SetCatalog(testClass(), testCatalog(20))
	if after := s.Snapshot(); after.Pools[0].Catalog == before.Pools[0].Catalog || after.Pools[1] != before.Pools[1] {
		t.Error("another catalogue does not reach its pool, or reaches the other one")
	}
	err := s.SetCatalog(testClass(), catalog.Catalog{Types: []catalog.Type{{Name: "x"}}})
	if err == nil || !strings.Contains(err.Error(), "KWOKNodeClass/default") || s.Snapshot().Pools[0].Blocked == "" {
		t.Errorf("an invalid catalogue: %v, pool %+v", err, s.Snapshot().Pools[0])
	}
	_ = s.SetCatalog(other, catalog.Catalog{})
	if s.Snapshot().Pools[1].Blocked == "" {
		t.Error("a pool whose catalogue was taken away is not blocked")
	}
}

func TestNewPricesReachTheNodes(t *testing.T) { // P-11
	t.Parallel()
	s := newClock().store()
	claim := testClaim("c1", "cu1", 1, "default", "p1", "Launched", "Registered", "Initialized")
	claim.Labels["node.kubernetes.io/instance-type"], claim.Labels["topology.kubernetes.io/zone"],
		claim.Labels["karpenter.sh/capacity-type"] = "large", "a", "spot"
	_ = s.Apply(claim)
	_ = s.Apply(testNode("n1", "nu1", 2, "p1"))
	// the last for the highest price (E-26)
	for i, want := range []resources.Money{resources.Unpriced, 40, 80, resources.Unpriced} {
		if i > 0 {
			_ = s.SetCatalog(testClass(), testCatalog(min(want, resources.MaxPrice)/4))
		}
		if got := s.Snapshot().Nodes[0].Price; got != want {
			t.Errorf("price %s; want %s", got, want)
		}
	}
}

func TestUnlaunchedClaimPromisesTheLeastItMayGet(t *testing.T) { // P-23
	t.Parallel()
	s := newClock().store()
	_ = s.SetCatalog(testClass(), testCatalog(10))
	claim := testClaim("c1", "cu1", 1, "default", "")
	_ = s.Apply(claim)
	if got := s.Snapshot().Nodes[0].Allocatable.At(resources.CPU); got != 1900 {
		t.Errorf("cpu %d; want that of the smallest type", got)
	}
	claim = claim.DeepCopy()
	claim.ResourceVersion = "2"
	claim.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"none"}},
	}
	_ = s.Apply(claim)
	if got := s.Snapshot().Nodes[0].Allocatable.At(resources.CPU); got != 1000 {
		t.Errorf("cpu %d; want what the claim asks for when no type fits", got)
	}
}

func TestWhatCannotBeReadIsReportedAndHeld(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	pod := testPod("web", "u1", 1, "")
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{TopologyKey: "zone", WhenUnsatisfiable: "Sometimes"},
	}
	if err := s.Apply(pod); err == nil || !strings.Contains(err.Error(), "shop/web") {
		t.Errorf("error %v", err)
	}
	if len(s.Snapshot().Pending) != 1 {
		t.Error("the pod is not among the pending ones")
	}
	pool := testPool("default", 2)
	pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		{Key: "x", Operator: "Like"},
	}
	if err := s.Apply(pool); err == nil || s.Snapshot().Pools[0].Blocked == "" {
		t.Errorf("error %v, pool %+v", err, s.Snapshot().Pools[0])
	}
	claim := testClaim("c1", "cu1", 3, "default", "")
	claim.Spec.Requirements = pool.Spec.Template.Spec.Requirements
	if err := s.Apply(claim); err == nil || names(s.Snapshot()) != "+c1" {
		t.Errorf("error %v, nodes %s", err, names(s.Snapshot()))
	}
}

// Readers and writers at once: for the race detector, and each reader's versions only grow.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("w%d-%d", worker, i%20)
				pod := testPod(name, name, worker*1000+i, fmt.Sprintf("n%d", i%3))
				pod.Spec.Containers[0].Resources.Requests = quantities(fmt.Sprintf("example.com/%d", i%7), "1")
				_ = s.Apply(pod)
				_ = s.Apply(testNode(fmt.Sprintf("n%d", i%3), "nu", worker*1000+i, ""))
				s.Promise(testClaim(name, name, i, "default", ""), nil, nil)
			}
		})
		all.Go(func() {
			var last uint64
			for range 200 {
				snapshot := s.Snapshot()
				if snapshot.Version < last {
					t.Errorf("version %d after %d", snapshot.Version, last)
				}
				last = snapshot.Version
				_ = picture(snapshot)
				_ = s.Usage("default")
			}
		})
	}
	all.Wait()
}

// The list equals the sorted list of the items added and not removed, whatever was read in between.
func TestOrderedListLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOrdered(func(a, b *int) int { return *a - *b })
		in := map[int]*int{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			number := rapid.IntRange(0, 15).Draw(t, "number")
			var fresh *int
			if rapid.Bool().Draw(t, "in") {
				fresh = &number
			}
			o.replace(in[number], fresh)
			if in[number] = fresh; fresh == nil {
				delete(in, number)
			}
			if !rapid.Bool().Draw(t, "read") {
				continue
			}
			var want []*int
			for number := range 16 {
				if member := in[number]; member != nil {
					want = append(want, member)
				}
			}
			if got := o.list(); !slices.Equal(got, want) {
				t.Fatalf("list has %d members; want %d in order", len(got), len(want))
			}
		}
	})
}
