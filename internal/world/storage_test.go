package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

func testDriver(name string, version int, counts, needed bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: meta("", name, "uid-"+name, version),
		Spec: storagev1.CSIDriverSpec{StorageCapacity: &counts, PreventPodSchedulingIfMissing: &needed}}
}

func testCapacity(name, class string, version int, left string) *storagev1.CSIStorageCapacity {
	quantity := resource.MustParse(left)
	return &storagev1.CSIStorageCapacity{ObjectMeta: meta("kube-system", name, "uid-"+name, version),
		StorageClassName: class, Capacity: &quantity,
		NodeTopology: &metav1.LabelSelector{}}
}

// K-58, K-59: snapshots have the drivers' remaining storage and the free volumes where they matter, and follow their
// objects.
func TestK58_StorageFollowsItsObjects(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	sees := func(when, want string) {
		t.Helper()
		x := s.Snapshot()
		got := ""
		for _, c := range x.Capacities {
			got += fmt.Sprintf("%s=%d ", c.Name, c.Capacity>>30)
		}
		for _, v := range x.FreeVolumes {
			got += v.Name + " "
		}
		for _, pod := range x.Pending {
			got += fmt.Sprintf("%s wants %d", pod.Name, len(pod.Shape.NewVolumes))
		}
		if got != want {
			t.Errorf("%s: %q; want %q", when, got, want)
		}
	}
	pod := testPod("db", "u1", 1, "")
	pod.Spec.Volumes = []corev1.Volume{testMount("data")}
	claim := testVolumeClaim("data", "c1", 2, "", "fast")
	claim.Spec.Resources.Requests = quantities("storage", "5Gi")
	_ = s.Apply(pod)
	_ = s.Apply(claim)
	_ = s.Apply(testClassOfVolumes("fast", "s1", 3, "a", "csi.fast"))
	_ = s.Apply(testCapacity("c", "fast", 4, "10Gi"))
	sees("a driver that is not known", "db wants 0")
	_ = s.Apply(testDriver("csi.fast", 5, true, false))
	sees("one that counts", "kube-system/c=10 db wants 1")
	_ = s.Apply(testCapacity("c", "fast", 6, "3Gi"))
	sees("less left", "kube-system/c=3 db wants 1")
	_ = s.Apply(testDriver("csi.fast", 7, false, false))
	sees("one that does not count", "db wants 0")
	_ = s.Apply(testClassOfVolumes("fast", "s1", 8, "a", "kubernetes.io/no-provisioner"))
	volume := testVolume("pv", "v1", 9, "a", "")
	volume.Spec.CSI, volume.Spec.StorageClassName, volume.Status.Phase = nil, "fast", corev1.VolumeAvailable
	volume.Spec.Capacity = quantities("storage", "5Gi")
	_ = s.Apply(volume)
	sees("a free volume", "pv db wants 1")
	taken := volume.DeepCopy()
	taken.ResourceVersion, taken.Spec.ClaimRef = "10", &corev1.ObjectReference{Namespace: "shop", Name: "data"}
	_ = s.Apply(taken)
	sees("it is kept for the claim", "db wants 0")
	s.Remove(taken)
	sees("it is gone", "db wants 1")
	s.Remove(testCapacity("c", "fast", 11, "3Gi"))
	s.Remove(testDriver("csi.fast", 12, false, false))
	sees("all is gone", "db wants 1")
}

// K-59: of several volumes that name one claim, the one that kube-scheduler takes decides, whatever came last: one of
// a former claim of that name is nobody's. Mutants: the last volume decides; what is kept for the claim does not
// follow the volume's UID of the claim, or its deletion.
func TestK59_AFormerVolumeOfAClaimDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		s := newClock().store()
		pod := testPod("db", "u1", 1, "")
		pod.Spec.Volumes = []corev1.Volume{testMount("data")}
		_ = s.Apply(pod)
		_ = s.Apply(testVolumeClaim("data", "c1", 2, "", "fast"))
		_ = s.Apply(testClassOfVolumes("fast", "s1", 3, "x", "csi.fast"))
		sees := func(when, want string) {
			t.Helper()
			if got := fmt.Sprint(s.Snapshot().Pending[0].Shape.Alternatives); !strings.Contains(got, "zone="+want) {
				t.Errorf("in the order %v, %s: the pod can run in %s, want zone %s", order, when, got, want)
			}
		}
		kept := func(name string, version int, uid string) *corev1.PersistentVolume {
			volume := testVolume("pv-"+name, "v-"+name, version, name, "csi.fast")
			volume.Spec.StorageClassName, volume.Status.Phase = "fast", corev1.VolumeReleased
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: types.UID(uid)}
			return volume
		}
		for i, name := range order {
			_ = s.Apply(kept(name, 4+i, map[string]string{"a": "former", "b": "c1"}[name]))
		}
		sees("one is of a former claim", "b")
		going := kept("b", 6, "c1")
		going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		_ = s.Apply(going)
		sees("the other one is being deleted", "x")
		_ = s.Apply(kept("a", 7, "")) // somebody has cleared the UID, so that the new claim gets the old volume
		sees("the first one is the claim's now", "a")
		s.Remove(kept("b", 8, "c1"))
		sees("the other one is gone", "a")
		s.Remove(kept("a", 9, ""))
		sees("both are gone", "x")
	}
}

// K-59: a volume that several pods use, or that some node has attached, counts once; that changes as they come and go.
func TestK59_WhatIsSharedFollowsPodsAndAttachments(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testNode("n1", "nu1", 1, "p1"))
	_ = s.Apply(testCSINode("n1", "i1", 2, "ebs", 5))
	_ = s.Apply(testVolume("pv", "v1", 3, "a", "ebs"))
	_ = s.Apply(testVolumeClaim("data", "c1", 4, "pv", ""))
	pod := func(name string, version int, node string) *corev1.Pod {
		p := testPod(name, "u"+name, version, node)
		p.Spec.Volumes = []corev1.Volume{testMount("data")}
		return p
	}
	sees := func(when string, want ...string) {
		t.Helper()
		x := s.Snapshot()
		at := 0
		for i, name := range x.Names {
			if name == translate.AttachResource("ebs") {
				at = i
			}
		}
		var got []string
		for _, p := range x.Pending {
			got = append(got, fmt.Sprintf("%s:%d+%d", p.Name, p.Shape.Requests.At(at), len(p.Shape.Volumes)))
		}
		got = append(got, fmt.Sprint(x.Nodes[0].Attached))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v; want %v", when, got, want)
		}
	}
	_ = s.Apply(pod("one", 5, ""))
	sees("alone", "one:1+0", "[]")
	_ = s.Apply(pod("two", 6, ""))
	sees("shared", "one:0+1", "two:0+1", "[]")
	s.Remove(pod("one", 7, ""))
	sees("alone again", "two:1+0", "[]")
	_ = s.Apply(testAttachment("att", "at1", 8, "n1", "pv", "ebs"))
	sees("attached to a node", "two:0+1", "[ebs/pv]")
	_ = s.Apply(pod("two", 9, "n1"))
	sees("it runs there", "[ebs/pv]")
	if shape := s.Snapshot().Nodes[0].Pods[0].Shape; len(shape.Volumes) != 0 {
		t.Errorf("a pod where its volume is has %v: pods that are alike should stay so", shape.Volumes)
	}
	s.Remove(testAttachment("att", "at1", 10, "n1", "pv", "ebs"))
	s.Remove(pod("two", 11, "n1"))
	sees("all gone", "[]")
}

// K-58: nodes say which of the needed drivers they have, and for a minute after their initialization that more storage
// may come.
func TestK58_NodesSayWhatTheyHave(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := clock.store()
	node := testNode("n1", "nu1", 1, "p1")
	node.Labels[karpenterv1.NodeInitializedLabelKey] = "true"
	claim := testClaim("c1", "cu1", 2, "default", "p1", "Registered", "Initialized")
	claim.Status.Conditions[1].LastTransitionTime = metav1.NewTime(clock.Now())
	_ = s.Apply(claim)
	_ = s.Apply(node)
	_ = s.Apply(testCSINode("n1", "i1", 3, "csi.fast", 5))
	sees := func(when, want string) {
		t.Helper()
		if n := s.Snapshot().Nodes[0]; fmt.Sprint(n.Drivers, n.Fresh) != want {
			t.Errorf("%s: %v %t; want %s", when, n.Drivers, n.Fresh, want)
		}
	}
	sees("no driver matters", "[] false")
	_ = s.Apply(testDriver("csi.fast", 4, true, true))
	_ = s.Apply(testDriver("csi.slow", 5, false, true))
	sees("one driver is there", "[csi.fast] true")
	clock.now = clock.now.Add(translate.StorageFresh - time.Second)
	sees("before the minute is over", "[csi.fast] true")
	clock.now = clock.now.Add(time.Second)
	sees("then", "[csi.fast] false")
	s.Remove(testDriver("csi.fast", 6, true, true))
	sees("not needed any more", "[] false")
}

// K-58, K-59: what types state counts, and a DaemonSet's volumes with its pods.
func TestK59_StatedStorageAndVolumesOfDaemons(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testPool("default", 1))
	set := testDaemon("logs", 2)
	set.Spec.Template.Spec.Volumes = []corev1.Volume{testMount("data")}
	_ = s.Apply(set)
	claim := testVolumeClaim("data", "c1", 3, "pv", "")
	claim.Namespace = "kube-system"
	_ = s.Apply(claim)
	stated := testCatalog(10)
	stated.Types[1].Capacity = resources.Amounts{"cpu": 8000, translate.AttachResource("ebs"): 9,
		translate.CapacityResource("csi.fast"): 7}
	_ = s.SetCatalog(testClass(), stated)
	sees := func(resource string, daemon, small, large int64) {
		t.Helper()
		x := s.Snapshot()
		for i, name := range x.Names {
			if name == resource {
				types := x.Pools[0].Catalog.Types
				got := []int64{x.Daemons[0].Shape.Requests.At(i), types[1].Allocatable.At(i),
					types[0].Allocatable.At(i)}
				if fmt.Sprint(got) != fmt.Sprint([]int64{daemon, small, large}) {
					t.Errorf("%s: %v; want %d, %d, %d", resource, got, daemon, small, large)
				}
				return
			}
		}
		t.Errorf("no resource %s", resource)
	}
	sees(translate.AttachResource("ebs"), 0, translate.UnlimitedVolumes, 9)
	sees(translate.CapacityResource("csi.fast"), 0, translate.UnlimitedStorage, 7)
	_ = s.Apply(testVolume("pv", "v1", 4, "a", "ebs"))
	sees(translate.AttachResource("ebs"), 1, translate.UnlimitedVolumes, 9)
}

// K-58, K-59, P-20: whatever becomes of drivers, classes, capacities and volumes, snapshots list the storage that a
// store lists that was told only their last states.
func TestK58_StorageIsThatOfAFreshStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, alive := newClock().store(), map[string]client.Object{}
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		for version := range rapid.IntRange(1, 60).Draw(t, "steps") {
			number := pick("number", "0", "1", "2", "3")
			var object client.Object
			switch pick("kind", "driver", "class", "capacity", "capacity", "capacity", "volume", "volume") {
			case "driver":
				counts := pick("counts", "no", "yes", "yes") == "yes"
				object = testDriver("csi."+pick("driver", "0", "1"), version, counts, false)
			case "class":
				object = testClassOfVolumes("class-"+pick("class", "0", "1"), "", version, "a",
					pick("provisioner", "csi.0", "csi.1", "kubernetes.io/no-provisioner"))
			case "capacity":
				object = testCapacity(number, "class-"+pick("of class", "0", "1"), version, pick("left", "1Gi", "2Gi"))
			default:
				volume := testVolume(number, "", version, pick("zone", "a", "b"), "csi.0")
				volume.Spec.StorageClassName = "class-" + pick("of class", "0", "1")
				volume.Status.Phase = corev1.PersistentVolumePhase(pick("phase", "Available", "Available", "Bound"))
				object = volume
			}
			key := fmt.Sprintf("%T %s", object, objectKey(object))
			old := alive[key]
			if old != nil && rapid.IntRange(0, 3).Draw(t, "end") == 0 {
				s.Remove(old)
				delete(alive, key)
			} else {
				if object.SetUID(types.UID(fmt.Sprint(version))); old != nil {
					object.SetUID(old.GetUID())
				}
				_ = s.Apply(object)
				alive[key] = object
			}
			if rapid.IntRange(0, 2).Draw(t, "look") > 0 {
				continue
			}
			fresh := newClock().store()
			for _, key := range slices.Sorted(maps.Keys(alive)) {
				_ = fresh.Apply(alive[key])
			}
			got, want := s.Snapshot(), fresh.Snapshot()
			if a, b := fmt.Sprintf("%+v\n%+v", got.Capacities, got.FreeVolumes), fmt.Sprintf("%+v\n%+v",
				want.Capacities, want.FreeVolumes); a != b {
				t.Fatalf("step by step\n%s\nfrom scratch\n%s", a, b)
			}
		}
	})
}
