package world

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
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
	class := &storagev1.StorageClass{ObjectMeta: meta("", name, uid, version), Provisioner: provisioner,
		VolumeBindingMode: &mode}
	class.AllowedTopologies = []corev1.TopologySelectorTerm{
		{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: corev1.LabelTopologyZone, Values: []string{zone}},
		}}}
	return class
}

// testCSINode limits one driver; "" none.
func testCSINode(name, uid string, version int, driver string, limit int32) *storagev1.CSINode {
	node := &storagev1.CSINode{ObjectMeta: meta("", name, uid, version)}
	if driver != "" {
		node.Spec.Drivers = []storagev1.CSINodeDriver{
			{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}},
		}
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
	// the volume is there: its class plays no part any more
	_ = s.Apply(testClassOfVolumes("slow", "s1", 10, "a", "ebs"))
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
		a, b, c, d := room(x.Nodes[0].Allocatable), room(x.Nodes[1].Allocatable), room(x.Nodes[0].Used),
			room(x.Pools[0].Catalog.Types[0].Allocatable)
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

// P-07: a pod with more volumes than any node attaches is not planned for, even after the node launched in vain for it
// is gone; after some time it may be tried again. Nodes of other programs give no information on nodes to be launched.
func TestTooManyVolumesForAnyNode(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.SetCatalog(testClass(), testCatalog(10))
	pod := testPod("db", "u1", 1, "")
	pod.Spec.Volumes = []corev1.Volume{testMount("a"), testMount("b"), testMount("c")}
	_ = s.Apply(pod)
	for i, name := range []string{"a", "b", "c"} {
		_ = s.Apply(testVolumeClaim(name, "c"+name, 10+i, "pv-"+name, ""))
		_ = s.Apply(testVolume("pv-"+name, "v"+name, 20+i, "z", "ebs"))
	}
	sees := func(when string, blocked bool) {
		t.Helper()
		if got := s.Snapshot().Pending[0].Shape.Blocked; strings.Contains(got,
			"3 volumes of CSI driver ebs, and no node has been able to attach more than 2") != blocked {
			t.Errorf("%s: blocked by %q; want so: %t", when, got, blocked)
		}
	}
	sees("when nobody knows better", false)
	_ = s.Apply(testPool("default", 2))
	for i, name := range []string{"n1", "n2", "n3"} {
		_ = s.Apply(testNode(name, "u"+name, 40+i, "p-"+name))
		_ = s.Apply(testClaim("c-"+name, "c"+name, 50+i, "default", "p-"+name))
	}
	_ = s.Apply(testNode("control", "uc", 60, "elsewhere"))
	_ = s.Apply(testCSINode("control", "ic", 61, "ebs", 2))
	sees("with a node that nobody here has launched", false)
	_ = s.Apply(testCSINode("n1", "i1", 30, "ebs", 2))
	sees("with a node that takes two", true)
	_ = s.Apply(testCSINode("n2", "i2", 31, "ebs", 3))
	sees("with another that takes three", false)
	_ = s.Apply(testCSINode("n3", "i3", 32, "", 0))
	s.Remove(testCSINode("n2", "i2", 33, "ebs", 3))
	sees("as long as it is remembered that one took three", false)
	c.now = c.now.Add(DefaultVolumeMemory)
	sees("when that is forgotten", true)
	s.Remove(testCSINode("n1", "i1", 34, "ebs", 2))
	sees("when the node that was launched in vain is gone", true)
	stated := testCatalog(10)
	stated.Types[1].Capacity = resources.Amounts{"cpu": 8000, translate.AttachResource("ebs"): 9}
	_ = s.SetCatalog(testClass(), stated)
	sees("when the provider says what its machines take", false)
	_ = s.SetCatalog(testClass(), testCatalog(10))
	sees("when it does not any more", true)
	c.now = c.now.Add(DefaultVolumeMemory)
	sees("when all is forgotten", false)
}

// P-07, K-59: a new node attaches as many volumes as others of its type, if the provider does not say how many. This
// is remembered for some time after the last such node is gone. Nodes of other programs give no information, and other
// types are unknown.
func TestNewNodesAttachWhatOthersOfTheirTypeDo(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.SetCatalog(testClass(), testCatalog(10))
	_ = s.Apply(testPool("default", 1))
	_ = s.Apply(testNode("far", "uf", 2, "elsewhere"))
	_ = s.Apply(testCSINode("far", "if", 3, "ebs", 9))
	sees := func(when string, large, small int64) {
		t.Helper()
		got := map[string]int64{}
		x := s.Snapshot()
		for _, kind := range x.Pools[0].Catalog.Types {
			for i, name := range x.Names {
				if name == translate.AttachResource("ebs") {
					got[kind.Name] = kind.Allocatable.At(i)
				}
			}
		}
		if got["large"] != large || got["small"] != small {
			t.Errorf("%s: %v; want %d for large, %d for small", when, got, large, small)
		}
	}
	const unlimited = translate.UnlimitedVolumes
	sees("with a node of another program", unlimited, unlimited)
	for i, limit := range []int32{2, 3} {
		name := string(rune('m' + i))
		node := testNode(name, "u"+name, 10+i, "p-"+name)
		node.Labels[corev1.LabelInstanceTypeStable] = "small"
		events := []client.Object{node, testClaim("c-"+name, "c"+name, 20+i, "default", "p-"+name),
			testCSINode(name, "i"+name, 30+i, "ebs", limit)}
		if i > 0 { // in any order
			slices.Reverse(events)
		}
		for _, e := range events {
			_ = s.Apply(e)
		}
		sees("with a node of its type", unlimited, int64(limit))
	}
	way := testClaim("c-way", "cw", 34, "default", "p-way")
	way.Labels[corev1.LabelInstanceTypeStable] = "small"
	_ = s.Apply(way)
	young := testNode("young", "uy", 35, "p-young")
	launched := testClaim("c-young", "cy", 36, "default", "p-young")
	launched.Labels[corev1.LabelInstanceTypeStable] = "small"
	_ = s.Apply(launched)
	_ = s.Apply(young)
	_ = s.Apply(testCSINode("young", "iy", 37, "", 0))
	x := s.Snapshot()
	at := slices.Index(x.Names, translate.AttachResource("ebs"))
	for _, id := range []string{"young", "c-way"} {
		if i := slices.IndexFunc(x.Nodes,
			func(n *cluster.Node) bool { return n.ID() == id }); x.Nodes[i].Allocatable.At(at) != 3 {
			t.Errorf("%s, which does not say so itself, attaches %d, want 3 as the others", id,
				x.Nodes[i].Allocatable.At(at))
		}
	}
	s.Remove(testCSINode("n", "in", 40, "ebs", 3))
	sees("while a larger number is remembered", unlimited, 3)
	c.now = c.now.Add(DefaultVolumeMemory)
	sees("when that is forgotten", unlimited, 2)
	big := testNode("big", "ub", 41, "p-big")
	big.Labels[corev1.LabelInstanceTypeStable] = "large"
	_ = s.Apply(big)
	_ = s.Apply(testClaim("c-big", "cb", 42, "default", "p-big"))
	_ = s.Apply(testCSINode("big", "ib", 43, "ebs", 5))
	s.Remove(testCSINode("m", "im", 44, "ebs", 2))
	c.now = c.now.Add(DefaultVolumeMemory)
	sees("as long as no node of the type says anything else", 5, 2)
	_ = s.Apply(testCSINode("m", "im2", 45, "ebs", 1))
	sees("when one does", 5, 1)
	s.Remove(testCSINode("m", "im2", 46, "ebs", 1))
	c.now = c.now.Add((volumeMemories - 1) * DefaultVolumeMemory)
	sees("for a day", 5, 1)
	c.now = c.now.Add(DefaultVolumeMemory)
	sees("when all is forgotten of it", 5, unlimited)
	_ = s.Apply(testCSINode("m", "im3", 47, "ebs", 1))
	s.Remove(testCSINode("m", "im3", 48, "ebs", 1))
	s.Remove(testCSINode("big", "ib", 49, "ebs", 5))
	c.now = c.now.Add(DefaultVolumeMemory)
	sees("an hour after no node has the driver any more", unlimited, unlimited)
	stated := testCatalog(10)
	for i := range stated.Types {
		stated.Types[i].Capacity = resources.Amounts{"cpu": 8000, translate.AttachResource("ebs"): 7}
	}
	_ = s.SetCatalog(testClass(), stated)
	sees("when the provider says it", 7, 7)
}

func testAttachment(name, uid string, version int, node, volume, driver string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: meta("", name, uid, version)}
	a.Spec.NodeName, a.Spec.Attacher, a.Spec.Source.PersistentVolumeName = node, driver, &volume
	return a
}

// P-07: a volume counts once on a node, however many of its pods use it, and as long as it is attached.
func TestAttachedVolumesCountOnce(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.Apply(testNode("n1", "nu1", 1, "p1"))
	_ = s.Apply(testCSINode("n1", "i1", 2, "ebs", 5))
	for i, name := range []string{"pv-a", "pv-b"} {
		_ = s.Apply(testVolume(name, "v"+name, 10+i, "z", "ebs"))
		_ = s.Apply(testVolumeClaim(strings.TrimPrefix(name, "pv-"), "c"+name, 20+i, name, ""))
	}
	sees := func(when string, want int64) {
		t.Helper()
		x := s.Snapshot()
		for i, name := range x.Names {
			if name == translate.AttachResource("ebs") && x.Nodes[0].Used.At(i) != want {
				t.Errorf("%s: %d volumes; want %d", when, x.Nodes[0].Used.At(i), want)
			}
		}
	}
	pod := func(name string, version int, claims ...string) *corev1.Pod {
		p := testPod(name, "u"+name, version, "n1")
		for _, claim := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, testMount(claim))
		}
		return p
	}
	_ = s.Apply(pod("one", 30, "a"))
	_ = s.Apply(pod("two", 31, "a", "b"))
	sees("two pods that share a volume", 2)
	_ = s.Apply(testAttachment("att-a", "at1", 32, "n1", "pv-a", "ebs"))
	_ = s.Apply(testAttachment("att-x", "at2", 33, "n1", "pv-x", "ebs"))
	sees("with one attached that no pod uses", 3)
	s.Remove(pod("one", 34))
	s.Remove(pod("two", 35))
	sees("when the pods are gone", 2)
	s.Remove(testAttachment("att-a", "at1", 36, "n1", "pv-a", "ebs"))
	s.Remove(testAttachment("att-x", "at2", 37, "n1", "pv-x", "ebs"))
	sees("when all is detached", 0)
}

// P-07: of several pods with one ReadWriteOncePod claim, one is planned for, and none while another pod has the claim.
func TestExclusiveClaimsAreForOnePod(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	claim := testVolumeClaim("data", "c1", 1, "pv", "")
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	_ = s.Apply(claim)
	_ = s.Apply(testVolume("pv", "v1", 2, "z", "ebs"))
	pod := func(name string, version int, node string) *corev1.Pod {
		p := testPod(name, "u"+name, version, node)
		p.Spec.Volumes = []corev1.Volume{testMount("data")}
		return p
	}
	sees := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range s.Snapshot().Pending {
			got = append(got, p.Name+": "+p.Shape.Blocked)
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s: %q; want %q", when, got, want)
		}
	}
	const rival = "PersistentVolumeClaim shop/data is ReadWriteOncePod, and pod shop/"
	_ = s.Apply(pod("b", 3, ""))
	sees("alone", "b: ")
	_ = s.Apply(pod("a", 4, ""))
	sees("both wait", "a: ", "b: "+rival+"a uses it")
	_ = s.Apply(pod("b", 5, "n1"))
	sees("the other one runs", "a: "+rival+"b uses it")
	s.Remove(pod("b", 6, "n1"))
	sees("it is gone", "a: ")
	_ = s.Apply(pod("c", 7, ""))
	sees("another one waits", "a: ", "c: "+rival+"a uses it")
	_ = s.Apply(testPod("a", "ua", 8, ""))
	sees("the first one wants it no more", "a: ", "c: ")
}
