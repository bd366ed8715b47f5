package world

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
)

// withDevices is a store that looks at devices, with a node that has published one and a pod that asks for it.
func withDevices(t *testing.T, watched bool) (s *Store, pod *corev1.Pod, claim *resourcev1.ResourceClaim) {
	t.Helper()
	s = New(Config{Now: newClock().Now, PromiseTTL: time.Minute, Devices: watched})
	node, driver := "n1", "dra.example.com"
	name := "gpus"
	pod = testPod("train", "u1", 1, "")
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	claim = &resourcev1.ResourceClaim{ObjectMeta: meta("shop", name, "u2", 2)}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: meta("", "slice", "u3", 3),
		Spec: resourcev1.ResourceSliceSpec{Driver: driver,
			NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "g0"}}}}
	for _, o := range []client.Object{testNode(node, "u4", 4, ""), pod,
		&resourcev1.DeviceClass{ObjectMeta: meta("", "gpu", "u5", 5)}, slice, claim} {
		if err := s.Apply(o); err != nil {
			t.Fatal(err)
		}
	}
	return s, pod, claim
}

// said is what a plan says of the one pod that waits: the node on which it is expected, or why not.
func said(s *Store) string {
	snapshot := s.Snapshot()
	p := engine.Provision(snapshot)
	if len(p.Nominations) > 0 {
		return "on " + p.Nominations[0].Node
	}
	if len(snapshot.Pending) == 0 {
		return "nothing waits"
	}
	pod := snapshot.Pending[0]
	if pod.Shape.Blocked != "" {
		return string(pod.Shape.BlockedBy)
	}
	if snapshot.Devices == nil {
		return "unknown"
	}
	code, _ := snapshot.Devices.Problem(pod.Shape)
	return string(code)
}

// K-42. A pod follows what is told of claims, classes and slices; nothing of it counts where devices are not looked
// at.
func TestK42_ThePictureHasDevices(t *testing.T) {
	t.Parallel()
	s, pod, claim := withDevices(t, true)
	sees := func(want string) {
		t.Helper()
		if got := said(s); got != want {
			t.Errorf("the plan says %q, want %q", got, want)
		}
	}
	sees("on n1")
	if kinds := s.DeviceKinds(); len(kinds) != 3 {
		t.Errorf("%d kinds are asked for, want 3", len(kinds))
	}
	used := claim.DeepCopy()
	used.ResourceVersion = "10"
	used.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "other"}}
	before := s.Version()
	_ = s.Apply(used)
	if s.Version() != before {
		t.Error("who uses a claim is news, and decides on nothing")
	}
	old := claim.DeepCopy()
	old.ResourceVersion, old.Status.Allocation = "9", &resourcev1.AllocationResult{}
	_ = s.Apply(old)
	sees("on n1") // an older state is none
	s.Remove(&resourcev1.DeviceClass{ObjectMeta: meta("", "gpu", "u5", 11)})
	sees(string(cause.DeviceClassMissing))
	_ = s.Apply(&resourcev1.DeviceClass{ObjectMeta: meta("", "gpu", "u6", 12)})
	sees("on n1")
	going := used.DeepCopy()
	going.ResourceVersion, going.DeletionTimestamp = "13", &metav1.Time{Time: time.Unix(1, 0)}
	_ = s.Apply(going)
	sees(string(cause.DeviceClaimMissing))
	s.Remove(going)
	sees(string(cause.DeviceClaimMissing))
	running := pod.DeepCopy()
	running.ResourceVersion, running.Spec.NodeName = "14", "n1"
	_ = s.Apply(running)
	sees("nothing waits")
	if held := s.Snapshot().Nodes[0].Pods[0].Shape; held.BlockedBy != cause.DevicesUnknown || len(held.Claims) != 0 {
		t.Errorf("a pod that runs may be moved: %+v", held)
	}

	s, _, _ = withDevices(t, false)
	sees(string(cause.DevicesUnknown))
	if len(s.DeviceKinds()) > 0 || s.Snapshot().Devices != nil {
		t.Error("devices are looked at")
	}
}
