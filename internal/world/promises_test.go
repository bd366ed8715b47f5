package world

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func ref(name, uid string) []plan.PodRef {
	return []plan.PodRef{{Namespace: "shop", Name: name, UID: uid}}
}

// promisedOf returns where the only pending pod is expected.
func promisedOf(t *testing.T, s *Store) string {
	t.Helper()
	pending := s.Snapshot().Pending
	if len(pending) != 1 {
		t.Fatalf("%d pods are pending; want 1", len(pending))
	}
	return pending[0].Promised
}

func TestPromiseCountsUntilTheClaimIsSeenAndAfter(t *testing.T) { // P-23, L-13
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.Apply(testPod("web", "u1", 1, ""))
	s.Promise(testClaim("c1", "cu1", 5, "default", ""), resources.Vector{8000}, ref("web", "u1"))
	if got := names(s.Snapshot()); got != "+c1" {
		t.Errorf("nodes %s; want the promised claim", got)
	}
	if u := s.Usage("default"); u.Nodes != 1 || u.Capacity.At(resources.CPU) != 8000 {
		t.Errorf("usage %+v; want 1 node with the reserve", u)
	}
	if got := promisedOf(t, s); got != "c1" {
		t.Errorf("the pod is expected on %q", got)
	}
	_ = s.Apply(testClaim("c1", "cu1", 5, "default", ""))
	c.now = c.now.Add(time.Hour)
	if u := s.Usage("default"); u.Nodes != 1 || u.Capacity.At(resources.CPU) != 8000 || names(s.Snapshot()) != "+c1" {
		t.Errorf("once seen, the claim is gone after the TTL: usage %+v, nodes %s", u, names(s.Snapshot()))
	}
	_ = s.Apply(testClaim("c1", "cu1", 6, "default", "p1"))
	if u := s.Usage("default"); u.Capacity.At(resources.CPU) != 4000 {
		t.Errorf("once launched, usage is %+v; want what the instance has", u)
	}
}

func TestPromiseNobodyKeepsEnds(t *testing.T) { // P-23
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.Apply(testPod("web", "u1", 1, ""))
	s.Promise(testClaim("c1", "cu1", 5, "default", ""), resources.Vector{8000}, ref("web", "u1"))
	before := s.Snapshot()
	c.now = c.now.Add(time.Minute - time.Nanosecond)
	if s.Snapshot() != before {
		t.Error("the picture changed before the TTL")
	}
	c.now = c.now.Add(time.Nanosecond)
	if u := s.Usage("default"); u.Nodes != 0 || names(s.Snapshot()) != "" || promisedOf(t, s) != "" {
		t.Errorf("after the TTL: usage %+v, nodes %q, pod expected on %q", u, names(s.Snapshot()), promisedOf(t, s))
	}
	_ = s.Apply(testClaim("c1", "cu1", 5, "default", ""))
	if got := names(s.Snapshot()); got != "+c1" {
		t.Errorf("a claim that shows up late is %q", got)
	}
}

func TestPromiseAndWatchMayCrossEachOther(t *testing.T) { // P-23, L-14
	t.Parallel()
	claim := testClaim("c1", "cu1", 5, "default", "")
	for name, run := range map[string]func(*Store) string{
		"seen first": func(s *Store) string {
			_ = s.Apply(claim)
			s.Promise(claim, resources.Vector{8000}, nil)
			return "+c1"
		},
		"seen with a later state first": func(s *Store) string {
			_ = s.Apply(testClaim("c1", "cu1", 9, "default", "p1"))
			s.Promise(claim, resources.Vector{8000}, nil)
			return "+c1"
		},
		"seen and deleted first": func(s *Store) string {
			_ = s.Apply(claim)
			s.Remove(claim)
			s.Promise(claim, resources.Vector{8000}, nil)
			return ""
		},
		"deletion seen only": func(s *Store) string {
			s.Promise(claim, resources.Vector{8000}, nil)
			s.Remove(testClaim("c1", "cu1", 7, "default", ""))
			return ""
		},
		"the former holder of the name is not seen to go": func(s *Store) string {
			_ = s.Apply(testClaim("c1", "former", 2, "default", ""))
			s.Promise(claim, resources.Vector{8000}, nil)
			return "+c1"
		},
		"the former holder is seen to go afterwards": func(s *Store) string {
			_ = s.Apply(testClaim("c1", "former", 2, "default", ""))
			s.Promise(claim, resources.Vector{8000}, nil)
			s.Remove(testClaim("c1", "former", 4, "default", ""))
			return "+c1"
		},
		"without a UID": func(s *Store) string {
			s.Promise(testClaim("c1", "", 0, "default", ""), resources.Vector{8000}, nil)
			_ = s.Apply(claim)
			return "+c1"
		},
		"without a UID, gone": func(s *Store) string {
			s.Promise(testClaim("c1", "", 0, "default", ""), resources.Vector{8000}, nil)
			s.Remove(claim)
			return ""
		},
	} {
		s := newClock().store()
		want := run(s)
		if got := names(s.Snapshot()); got != want {
			t.Errorf("%s: nodes %q; want %q", name, got, want)
		}
		if used := s.Usage("default").Nodes; used != int64(len(s.claims)) || (want == "") != (used == 0) {
			t.Errorf("%s: usage counts %d nodes", name, used)
		}
	}
}

func TestNominationFollowsTheClaimToItsNode(t *testing.T) { // P-23
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testPod("web", "u1", 1, ""))
	_ = s.Apply(testClaim("c1", "cu1", 2, "default", "p1", "Launched"))
	s.Nominate(ref("web", "u1"), "c1")
	if got := promisedOf(t, s); got != "c1" {
		t.Fatalf("expected on %q", got)
	}
	_ = s.Apply(testNode("n1", "nu1", 3, "p1"))
	if got := promisedOf(t, s); got != "n1" {
		t.Errorf("after the claim has its node, expected on %q", got)
	}
	s.Remove(testNode("n1", "nu1", 4, "p1"))
	if got := promisedOf(t, s); got != "c1" {
		t.Errorf("after the node has gone, expected on %q", got)
	}
	s.Remove(testClaim("c1", "cu1", 5, "default", "p1"))
	if got := promisedOf(t, s); got != "" {
		t.Errorf("after the claim has gone, expected on %q", got)
	}
}

func TestNominationEnds(t *testing.T) { // P-23
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.Apply(testNode("n1", "nu1", 1, ""))
	_ = s.Apply(testPod("web", "u1", 2, ""))
	s.Nominate(ref("web", "u1"), "n1")
	s.Nominate(ref("web", "another"), "n1") // of a pod that is not this one
	if got := promisedOf(t, s); got != "n1" {
		t.Fatalf("expected on %q", got)
	}
	c.now = c.now.Add(time.Minute)
	if got := promisedOf(t, s); got != "" || len(s.nominations.byPod) != 0 {
		t.Errorf("after the TTL expected on %q", got)
	}
	s.Nominate(ref("web", "u1"), "n1")
	_ = s.Apply(testPod("web", "u1", 3, "n1"))
	if snapshot := s.Snapshot(); len(snapshot.Pending) != 0 || snapshot.Nodes[0].Pods[0].Promised != "" ||
		len(s.nominations.byPod) != 0 {
		t.Errorf("after the pod was bound: %s", picture(snapshot))
	}
}

// K-60: each pod that was expected somewhere counts once, when kube-scheduler binds it: there, or elsewhere.
func TestK60_BindingsAreCounted(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	got := map[bool]int{}
	s.OnBinding(func(expected bool) { got[expected]++ })
	for i, name := range []string{"n1", "n2"} {
		_ = s.Apply(testNode(name, name+"u", i+1, ""))
	}
	_ = s.Apply(testClaim("c1", "cu1", 3, "default", "p1", "Launched"))
	version := 10
	bind := func(uid, expected, node string) {
		name := "pod-" + uid
		_ = s.Apply(testPod(name, uid, version, ""))
		if expected != "" {
			s.Nominate(ref(name, uid), expected)
		}
		_ = s.Apply(testPod(name, uid, version+1, node))
		_ = s.Apply(testPod(name, uid, version+2, node)) // heard of again
		version += 3
	}
	bind("u1", "n1", "n1")
	bind("u2", "n1", "n2")
	bind("u3", "", "n2") // no plan had a place for it
	_ = s.Apply(testNode("n3", "n3u", 4, "p1"))
	bind("u4", "c1", "n3") // the node of the claim
	if got[true] != 2 || got[false] != 1 {
		t.Errorf("%d pods were bound where they were expected, and %d elsewhere; want 2 and 1", got[true], got[false])
	}
}

// P-01: the pods of a node that is being removed wait beside their old node, and keep their nomination there.
func TestPodsOfADeletingNodeAreNominated(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	node := testNode("n1", "nu1", 2, "p1")
	_ = s.Apply(testPod("web", "u1", 1, "n1"))
	_ = s.Apply(node)
	if got := len(s.Snapshot().Pending); got != 0 {
		t.Fatalf("%d pods are pending", got)
	}
	node = node.DeepCopy()
	node.ResourceVersion, node.DeletionTimestamp = "3", &metav1.Time{Time: time.Unix(1, 0)}
	_ = s.Apply(node)
	_ = s.Apply(testClaim("c2", "cu2", 4, "default", ""))
	s.Nominate(ref("web", "u1"), "c2")
	if got := promisedOf(t, s); got != "c2" {
		t.Errorf("expected on %q", got)
	}
	_ = s.Apply(testPod("web", "u1", 5, "n1"))
	if got := promisedOf(t, s); got != "c2" {
		t.Errorf("after an event of the pod expected on %q", got)
	}
	if s.Snapshot().Nodes[0].Pods[0] != s.Snapshot().Pending[0] {
		t.Error("the node and the pending list hold different values of the pod")
	}
}

// D-03: a pod that nobody ends keeps its node for a minute after its grace period, then no longer. One of a
// StatefulSet does as long as it is there, since its successor waits for it.
func TestAPodThatNobodyEndsKeepsNoNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		owner string
		keeps bool // for ever
	}{{"ReplicaSet", false}, {"StatefulSet", true}} {
		clock := newClock()
		s := clock.store()
		pod := testPod("web", "u1", 1, "n1")
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: c.owner, Name: "web"}}
		pod.DeletionTimestamp = &metav1.Time{Time: clock.now.Add(30 * time.Second)} // its grace period is included
		_ = s.Apply(pod)
		_ = s.Apply(testNode("n1", "nu1", 2, ""))
		fixed := func() bool { return s.Snapshot().Nodes[0].Pods[0].Fixed }
		clock.now = clock.now.Add(89 * time.Second)
		if fixed() {
			t.Errorf("%s: the pod counts as stuck within a minute of its grace period", c.owner)
		}
		version := s.Snapshot().Version
		clock.now = clock.now.Add(time.Second)
		if fixed() == c.keeps {
			t.Errorf("%s: a minute after its grace period the pod is stuck: %t", c.owner, fixed())
		}
		if changed := s.Snapshot().Version != version; changed == c.keeps {
			t.Errorf("%s: the snapshot has a new version: %t", c.owner, changed)
		}
	}
}

func TestProtectionOfAPodEndsByItself(t *testing.T) { // V-15
	t.Parallel()
	c := newClock()
	s := c.store()
	pod := testPod("web", "u1", 1, "n1")
	pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "10m"}
	pod.Status.StartTime = &metav1.Time{Time: c.now}
	node := testNode("n1", "nu1", 2, "")
	node.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	_ = s.Apply(pod)
	_ = s.Apply(node)
	before := s.Snapshot()
	if !before.Nodes[0].Pods[0].DoNotDisrupt || len(before.Pending) != 0 {
		t.Fatalf("the pod is not protected:\n%s", picture(before))
	}
	c.now = c.now.Add(10 * time.Minute)
	after := s.Snapshot()
	if after.Nodes[0].Pods[0].DoNotDisrupt || len(after.Pending) != 1 || after.Version == before.Version {
		t.Errorf("after its time the pod is still protected:\n%s", picture(after))
	}
	if !before.Nodes[0].Pods[0].DoNotDisrupt {
		t.Error("the snapshot from before has changed")
	}
	for i, value := range []string{"30m", "true"} {
		pod = pod.DeepCopy()
		pod.ResourceVersion, pod.Annotations["karpenter.sh/do-not-disrupt"] = fmt.Sprint(5+i), value
		_ = s.Apply(pod)
	}
	c.now = c.now.Add(1000 * time.Hour)
	if !s.Snapshot().Nodes[0].Pods[0].DoNotDisrupt {
		t.Error("a protection without end has ended")
	}
}

func TestTerminatingPodsWaitOnlyWhenTheirControllerDoes(t *testing.T) { // P-01
	t.Parallel()
	s := newClock().store()
	node := testNode("n1", "nu1", 1, "")
	node.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	_ = s.Apply(node)
	for i, kind := range []string{"ReplicaSet", "StatefulSet", "DaemonSet"} {
		pod := testPod(kind, kind, 2+i, "n1")
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "o"}}
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		_ = s.Apply(pod)
	}
	snapshot := s.Snapshot()
	if len(snapshot.Pending) != 1 || snapshot.Pending[0].Name != "StatefulSet" {
		t.Errorf("pending:\n%s", picture(snapshot))
	}
	finished := testPod("ReplicaSet", "ReplicaSet", 9, "n1")
	finished.Status.Phase = corev1.PodFailed
	_ = s.Apply(finished)
	if got := len(s.Snapshot().Nodes[0].Pods); got != 2 {
		t.Errorf("%d pods are on the node; the finished one does not count", got)
	}
}
