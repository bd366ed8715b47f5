package translate

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// csiDriver says how much it has left, and that pods need it on their nodes.
func csiDriver(name string, counts, needed bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSIDriverSpec{StorageCapacity: &counts, PreventPodSchedulingIfMissing: &needed}}
}

// sized is volumeClaim with a size.
func sized(name, class, size string) *corev1.PersistentVolumeClaim {
	claim := volumeClaim(name, "", class)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return claim
}

// K-58, K-59: what a claim without a volume requires of its node: nothing if its class provisions volumes and no
// remaining storage is published.
func TestK58_WhatClaimsWithoutAVolumeWant(t *testing.T) {
	t.Parallel()
	block := corev1.PersistentVolumeBlock
	s := storageOf(storageClass("fast", "csi.fast", waits), storageClass("plain", "csi.plain", waits),
		storageClass("local", noProvisioner, waits),
		sized("small", "fast", "1Gi"), sized("large", "fast", "5Gi"), sized("plain", "plain", "1Gi"),
		sized("disk", "local", "3Gi"),
		sized("chosen", "fast", "1Gi"), sized("odd", "local", "1Gi"), volumeClaim("sizeless", "", "fast"))
	s.Claims["shop/disk"].Spec.VolumeMode = &block
	s.Claims["shop/disk"].Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"media": "ssd"}}
	s.Claims["shop/odd"].Spec.Selector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "media", Operator: "Like"}}}
	s.Claims["shop/chosen"].Annotations[annotationSelectedNode] = "n1"
	s.Drivers = map[string]*storagev1.CSIDriver{"csi.fast": csiDriver("csi.fast", true, true),
		"csi.plain": csiDriver("csi.plain", false, false)}
	for claims, want := range map[string]string{
		"large small": "fast 1073741824 made;fast 5368709120 made drivers [csi.fast]",
		"plain":       " drivers []",
		"sizeless":    " drivers [csi.fast]",
		"chosen":      " drivers [csi.fast]",
		"disk":        "local 3221225472 block media=ssd drivers []",
		"odd":         "local 1073741824 kubernetes.io/hostname in nothing drivers []",
	} {
		shape, _, _, err := withVolumes(usingClaims(strings.Fields(claims)...), s)
		var list []string
		for _, v := range shape.NewVolumes {
			text := fmt.Sprint(v.Class, " ", v.Size, map[bool]string{true: " made"}[v.Made],
				map[bool]string{true: " block"}[v.Block])
			if v.Labels.Enabled {
				text += " " + v.Labels.String()
				if len(v.Labels.Labels.EmptyKeys()) > 0 {
					text = strings.TrimSuffix(text, v.Labels.String()) + "kubernetes.io/hostname in nothing"
				}
			}
			list = append(list, text)
		}
		got := fmt.Sprint(strings.Join(list, ";"), " drivers ", shape.Drivers)
		if got != want || shape.Blocked != "" || (err != nil) != (claims == "odd") {
			t.Errorf("claims %s: %q, blocked %q, error %v; want %q", claims, got, shape.Blocked, err, want)
		}
	}
	s.Stated = []string{"csi.fast"}
	space := resources.NewSpace()
	pod, _ := Pod(space, usingClaims("small"), metav1.Now().Time)
	if err := AddVolumes(space, pod, usingClaims("small"), s); err != nil {
		t.Fatal(err)
	}
	if got := space.Names().Format(pod.Shape.NewVolumes[0].Stated); got != CapacityResource("csi.fast")+"=1073741824" {
		t.Errorf("in what types state it asks for %s", got)
	}
}

// K-59: a volume that is kept for a claim says where the pod can run, as if it were bound. Of several, the first by
// name counts that kube-scheduler would take.
func TestK59_AVolumeThatIsKeptForAClaim(t *testing.T) {
	t.Parallel()
	block, odd := corev1.PersistentVolumeBlock, "odd"
	for what, c := range map[string]struct {
		spoil func(*corev1.PersistentVolume)
		taken bool
	}{
		"that names no UID":  {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, true},
		"that names its UID": {func(*corev1.PersistentVolume) {}, true},
		"of a former claim":  {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "former" }, false},
		"on its way out":     {func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} }, false},
		"of another class":   {func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "other" }, false},
		"of another mode":    {func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = &block }, false},
		"of other attributes": {func(v *corev1.PersistentVolume) {
			v.Spec.VolumeAttributesClassName = &odd
		}, false},
		"that is too small": {func(v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}, false},
	} {
		claim := sized("disk", "local", "3Gi")
		claim.UID = "c1"
		first, second := keptVolume("pv-1", "b"), keptVolume("pv-2", "c")
		c.spoil(first)
		s := storageOf(storageClass("local", noProvisioner, waits), claim, first)
		s.Reserved = map[string][]string{"shop/disk": {"gone", "pv-1", "pv-2"}}
		shape, ways, _, err := withVolumes(usingClaims("disk"), s)
		if taken := ways == "["+zone+"=b]"; taken != c.taken || len(shape.NewVolumes) == 0 != c.taken || err != nil {
			t.Errorf("a volume %s: ways %s, %v, error %v; taken should be %t", what, ways, shape.NewVolumes, err,
				c.taken)
		}
		s.Volumes["pv-2"] = second
		want := map[bool]string{true: "[" + zone + "=b]", false: "[" + zone + "=c]"}[c.taken]
		if _, ways, _, _ := withVolumes(usingClaims("disk"), s); ways != want {
			t.Errorf("a volume %s beside another one: ways %s, want %s", what, ways, want)
		}
	}
}

// keptVolume is a volume in a zone, for the claim of the name disk with the UID c1.
func keptVolume(name, in string) *corev1.PersistentVolume {
	v := volumeIn(name, zone+"="+in)
	v.Spec.StorageClassName = "local"
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "disk", UID: "c1"}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	return v
}

// K-59: a volume that other pods use too, or that another node has, counts once per node; other volumes are requests.
func TestK59_VolumesThatCountOnce(t *testing.T) {
	t.Parallel()
	s := storageOf(volumeClaim("own", "pv-1", ""), volumeIn("pv-1"), volumeClaim("shared", "pv-2", ""),
		volumeIn("pv-2"), volumeClaim("attached", "pv-3", ""), volumeIn("pv-3"))
	s.Others = func(_ *corev1.Pod, claim string) bool { return claim == "shop/shared" }
	s.Elsewhere = func(_ *corev1.Pod, volume AttachedVolume) bool { return volume.Volume == "pv-3" }
	pod := usingClaims("own", "shared", "attached")
	if shape, _, requests, _ := withVolumes(pod, s); requests != "pods=1" || len(shape.Volumes) != 0 {
		t.Errorf("without limits: %s and %v", requests, shape.Volumes)
	}
	s.Limited = []string{ebs}
	shape, _, requests, _ := withVolumes(pod, s)
	var names []string
	for _, v := range shape.Volumes {
		names = append(names, v.Name)
	}
	if got, want := strings.Join(names, " "), ebs+"/pv-3 "+ebs+"/pv-2"; got != want ||
		requests != "pods=1 "+AttachResource(ebs)+"=1" {
		t.Errorf("%s and %s; want %s, and one in the requests", got, requests, want)
	}
	s.Most = map[string]int64{ebs: 2}
	if shape, _, _, _ := withVolumes(pod, s); !strings.Contains(shape.Blocked, "it has 3 volumes") {
		t.Errorf("blocked %q: all three count for what a node can attach", shape.Blocked)
	}
}

// K-59: which PersistentVolumes a claim of their class may take.
func TestK59_FreeVolumes(t *testing.T) {
	t.Parallel()
	s := storageOf(storageClass("local", noProvisioner, waits), storageClass("plain", "csi.plain", waits))
	free := func() *corev1.PersistentVolume {
		v := volumeIn("pv", "kubernetes.io/hostname=n1")
		v.Spec.StorageClassName, v.Status.Phase = "local", corev1.VolumeAvailable
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
		return v
	}
	v, err := s.FreeVolume(free())
	if err != nil || v == nil || v.Size != 2<<30 || fmt.Sprint(v.Modes) != "[ReadOnlyMany ReadWriteMany]" ||
		len(v.Places) != 1 {
		t.Errorf("%+v, error %v", v, err)
	}
	for what, spoil := range map[string]func(*corev1.PersistentVolume){
		"bound":             func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound },
		"kept for a claim":  func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = &corev1.ObjectReference{Name: "x"} },
		"on its way out":    func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} },
		"of no class":       func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "" },
		"of one that makes": func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "plain" },
	} {
		volume := free()
		if spoil(volume); func() bool { v, _ := s.FreeVolume(volume); return v != nil }() {
			t.Errorf("a volume that is %s is free", what)
		}
	}
}

// K-58: a driver's remaining storage, and where it is.
func TestK58_WhatDriversHaveLeft(t *testing.T) {
	t.Parallel()
	s := storageOf(storageClass("fast", "csi.fast", waits), storageClass("plain", "csi.plain", waits))
	s.Drivers = map[string]*storagev1.CSIDriver{"csi.fast": csiDriver("csi.fast", true, false)}
	left, most := resource.MustParse("10Gi"), resource.MustParse("1Gi")
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "c"},
		StorageClassName: "fast", Capacity: &left, NodeTopology: &metav1.LabelSelector{
			MatchLabels: map[string]string{"topology.ebs.csi.aws.com/zone": "a"},
		}}
	got, err := s.Capacity(c)
	if err != nil || got == nil || got.Name != "kube-system/c" || got.Capacity != 10<<30 || got.Most != -1 ||
		got.Nodes.String() != zone+"=a" {
		t.Errorf("%+v, error %v", got, err)
	}
	c.MaximumVolumeSize, c.Capacity, c.NodeTopology = &most, nil, nil
	if got, err := s.Capacity(c); err != nil || got.Capacity != -1 || got.Most != 1<<30 || got.Nodes.Enabled {
		t.Errorf("%+v, error %v; want one that no node reaches", got, err)
	}
	c.NodeTopology = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "x", Operator: "Like"},
	}}
	if got, err := s.Capacity(c); err == nil || !strings.Contains(err.Error(), "kube-system/c: nodeTopology") ||
		got.Nodes.Enabled {
		t.Errorf("%+v, error %v; want the field, and no node", got, err)
	}
	c.StorageClassName = "plain"
	if got, _ := s.Capacity(c); got != nil {
		t.Errorf("%+v of a driver that does not count", got)
	}
}

// K-59: a DaemonSet's volumes take a place each on every node, whether they have a claim of their own or share one.
func TestK59_VolumesOfDaemonSets(t *testing.T) {
	t.Parallel()
	s := storageOf(storageClass("disk", ebs, waits), volumeClaim("models", "pv", ""), volumeIn("pv"))
	s.Classes["disk"].Annotations = map[string]string{defaultClass: "true"}
	spec := usingClaims("models", "models", "gone").Spec
	class := "disk"
	for i, name := range []*string{&class, nil} {
		spec.Volumes = append(spec.Volumes,
			corev1.Volume{Name: fmt.Sprint("own-", i), VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
					Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: name}}}}})
	}
	s.Limited = []string{ebs}
	space := resources.NewSpace()
	pod, _ := Pod(space, waitingPod(), metav1.Now().Time)
	if err := AddDaemonVolumes(space, pod.Shape, "shop", &spec, s); err != nil {
		t.Fatal(err)
	}
	if got := pod.Shape.Requests.At(space.Index(AttachResource(ebs))); got != 3 {
		t.Errorf("%d volumes; want the shared one once and two of its own", got)
	}
}

// K-59: the type's limit counts as long as CSINode does not name the driver, even on an initialized node.
func TestK59_StatedLimitsCountUntilTheDriverIsThere(t *testing.T) {
	t.Parallel()
	claim := claimOf("Launched", "Registered", "Initialized")
	claim.Status.Allocatable = requests("cpu", "1", AttachResource(ebs), "9", CapacityResource("csi.fast"),
		"5Gi").Requests
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{karpenterv1.NodeInitializedLabelKey: "true"}},
	}
	three := int32(3)
	for want, csi := range map[int64]*storagev1.CSINode{
		9:                nil,
		UnlimitedVolumes: {Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: ebs}}}},
		3: {Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: ebs,
			Allocatable: &storagev1.VolumeNodeResources{Count: &three}}}}},
	} {
		space := resources.NewSpace()
		n := Node(space, NodeSource{Node: node, Claim: claim, CSI: csi, Limited: []string{ebs},
			Stated: []string{"csi.fast", "other"}, Needed: []string{ebs}})
		if got := n.Allocatable.At(space.Index(AttachResource(ebs))); got != want ||
			(len(n.Drivers) == 1) != (csi != nil) {
			t.Errorf("room for %d volumes, drivers %v; want %d", got, n.Drivers, want)
		}
		fast, other := n.Allocatable.At(space.Index(CapacityResource("csi.fast"))),
			n.Allocatable.At(space.Index(CapacityResource("other")))
		if fast != 5<<30 || other != UnlimitedStorage {
			t.Errorf("storage of %d and %d", fast, other)
		}
	}
}

// K-58: the claim names the drivers that its pods wait for, and requests no storage from its provider.
func TestK58_ClaimsSayWhichDriversTheyNeed(t *testing.T) {
	t.Parallel()
	space := resources.NewSpace()
	launch := plan.Launch{Pool: "default", Drivers: []string{"a", "b"},
		Requests: space.Vector(resources.Amounts{"cpu": 1000, CapacityResource("a"): 3})}
	claim := NodeClaimFor(&karpenterv1.NodePool{}, space.Names(), launch, "x")
	if _, asks := claim.Spec.Resources.Requests[corev1.ResourceName(CapacityResource("a"))]; asks {
		t.Error("the claim asks for storage")
	}
	has := func(names ...string) *storagev1.CSINode {
		node := &storagev1.CSINode{}
		for _, name := range names {
			node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: name})
		}
		return node
	}
	for want, node := range map[string]*storagev1.CSINode{"a": nil, "b": has("a", "x"), "": has("b", "a")} {
		if got := MissingDriver(claim, node); got != want {
			t.Errorf("%v lacks %q; want %q", node, got, want)
		}
	}
}

// K-59, X-09: a label that is neither true nor false counts as missing, and is reported.
func TestK59_TheLabelOfPoolsWithLocalVolumes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"true": true, "false": false, "yes": false} {
		pool := &karpenterv1.NodePool{}
		pool.Labels = map[string]string{karpenterv1.LocalVolumesLabelKey: text}
		got, err := LocalVolumes(pool)
		if got != want || (err != nil) != (text == "yes") {
			t.Errorf("%s: %t, error %v", text, got, err)
		}
		if text == "yes" &&
			err.Error() != `label joiner.sh/local-volumes is "yes": want true or false; it counts as false` {
			t.Error(err)
		}
	}
}
