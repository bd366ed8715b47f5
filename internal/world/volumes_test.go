package world

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

func testMount(claim string) corev1.Volume {
	return corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

func testVolumeClaim(name, uid string, version int, volume, class string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("shop", name, uid, version)}
	claim.Spec.StorageClassName = &class
	if volume != "" {
		claim.Spec.VolumeName = volume
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return claim
}

func testVolume(name, uid string, version int, zone, driver string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: meta("", name, uid, version)}
	volume.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver}
	return volume
}

func testClassOfVolumes(name, uid string, version int, zone, provisioner string) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: meta("", name, uid, version), Provisioner: provisioner, VolumeBindingMode: &mode}
	class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: []string{zone}},
	}}}
	return class
}

// testCSINode limits one driver; "" none.
func testCSINode(name, uid string, version int, driver string, limit int32) *storagev1.CSINode {
	node := &storagev1.CSINode{ObjectMeta: meta("", name, uid, version)}
	if driver != "" {
		node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}
	}
	return node
}

func TestAPodFollowsItsVolume(t *testing.T) { // P-07
	t.Parallel()
	s := newClock().store()
	pod := testPod("db", "u1", 1, "")
	pod.Spec.Volumes = []corev1.Volume{testMount("data")}
	_ = s.Apply(pod)
	_ = s.Apply(testPod("web", "u2", 2, ""))
	web := s.Snapshot().Pending[1]
	sees := func(want string) {
		t.Helper()
		snapshot := s.Snapshot()
		shape := snapshot.Pending[0].Shape
		got := shape.Blocked
		for _, way := range shape.Alternatives {
			if got == "" {
				got = way.Labels.String()
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("the pod is %q; want %q", got, want)
		}
		if snapshot.Pending[1] != web {
			t.Error("a pod without volumes was made anew")
		}
	}
	sees("does not exist")
	_ = s.Apply(testVolumeClaim("data", "c1", 3, "", "slow"))
	sees("its StorageClass slow does not exist")
	_ = s.Apply(testClassOfVolumes("slow", "s1", 4, "a", "ebs"))
	sees("zone=a")
	_ = s.Apply(testClassOfVolumes("slow", "s1", 5, "b", "ebs"))
	sees("zone=b")
	_ = s.Apply(testVolumeClaim("data", "c1", 6, "pv", "slow"))
	sees("PersistentVolume pv, which does not exist")
	_ = s.Apply(testVolume("pv", "v1", 7, "c", "ebs"))
	sees("zone=c")
	before := s.Version()
	_ = s.Apply(testVolume("pv", "v1", 8, "c", "ebs"))
	_ = s.Apply(testVolume("other", "v2", 9, "c", "ebs"))
	_ = s.Apply(testClassOfVolumes("slow", "s1", 10, "a", "ebs")) // the volume is there: its class plays no part any more
	if s.Version() != before {
		t.Error("events that change nothing for any pod change the picture")
	}
	s.Remove(testVolumeClaim("data", "c1", 11, "pv", "slow"))
	sees("does not exist")
}

func TestLimitsOfVolumesHoldOnceAnyNodeStatesThem(t *testing.T) { // P-07
	t.Parallel()
	s := newClock().store()
	_ = s.SetCatalog(testClass(), testCatalog(10))
	_ = s.Apply(testPool("default", 1))
	_ = s.Apply(testNode("n1", "nu1", 2, "p1"))
	_ = s.Apply(testNode("n2", "nu2", 3, "p2"))
	pod := testPod("db", "u1", 4, "n1")
	pod.Spec.Volumes = []corev1.Volume{testMount("data")}
	_ = s.Apply(pod)
	_ = s.Apply(testVolumeClaim("data", "c1", 5, "pv", ""))
	_ = s.Apply(testVolume("pv", "v1", 6, "a", "ebs"))
	room := func(v resources.Vector) int64 {
		for i, name := range s.Snapshot().Names {
			if name == translate.AttachResource("ebs") {
				return v.At(i)
			}
		}
		return -1
	}
	sees := func(n1, n2, used, planned int64) {
		t.Helper()
		x := s.Snapshot()
		a, b, c, d := room(x.Nodes[0].Allocatable), room(x.Nodes[1].Allocatable), room(x.Nodes[0].Used), room(x.Pools[0].Catalog.Types[0].Allocatable)
		if a != n1 || b != n2 || c != used || d != planned {
			t.Errorf("n1 %d, n2 %d, used %d, planned %d; want %d, %d, %d, %d", a, b, c, d, n1, n2, used, planned)
		}
	}
	const unlimited = translate.UnlimitedVolumes
	sees(-1, -1, -1, -1)
	_ = s.Apply(testCSINode("n1", "i1", 7, "ebs", 5))
	sees(5, unlimited, 1, unlimited)
	if x := s.Snapshot().Pools[0].Catalog; x.Room.AtLeast(len(s.Snapshot().Names)-1, 1000) == nil {
		t.Error("the thresholds of the catalogue do not know of the room for volumes")
	}
	_ = s.Apply(testCSINode("n2", "i2", 8, "ebs", 3))
	s.Remove(testCSINode("n1", "i1", 9, "ebs", 5))
	sees(unlimited, 3, 1, unlimited)
	s.Remove(testCSINode("n2", "i2", 10, "ebs", 3))
	sees(0, 0, 0, 0)
	stated := testCatalog(10)
	stated.Types[1].Capacity = resources.Amounts{"cpu": 8000, translate.AttachResource("ebs"): 9}
	_ = s.SetCatalog(testClass(), stated) // types are listed by name: large comes first
	sees(unlimited, unlimited, 1, 9)
	_ = s.SetCatalog(testClass(), catalog.Catalog{})
	if len(s.volumes.limiting) != 0 {
		t.Errorf("limits %v are left of a catalogue that is gone", s.volumes.limiting)
	}
}
