package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// volumeIn is a PersistentVolume of the EBS driver with node affinity to these terms: key=value|value,key=value.
func volumeIn(name string, terms ...string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + name}
	if len(terms) == 0 {
		return volume
	}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
	for _, text := range terms {
		var term corev1.NodeSelectorTerm
		for _, demand := range strings.Split(text, ",") {
			key, values, _ := strings.Cut(demand, "=")
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(values, "|"),
			})
		}
		volume.Spec.NodeAffinity.Required.NodeSelectorTerms =
			append(volume.Spec.NodeAffinity.Required.NodeSelectorTerms, term)
	}
	return volume
}

// volumeClaim is a PersistentVolumeClaim in the namespace shop, bound when volume is not empty.
func volumeClaim(name, volume, class string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{}},
	}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	if volume != "" {
		claim.Spec.VolumeName = volume
		claim.Annotations[annotationBindCompleted] = "yes"
		claim.Status.Phase = corev1.ClaimBound
	}
	return claim
}

func storageClass(name, provisioner string, mode storagev1.VolumeBindingMode,
	zones ...string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: &mode}
	if len(zones) > 0 {
		class.AllowedTopologies = []corev1.TopologySelectorTerm{
			{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: "topology.ebs.csi.aws.com/zone", Values: zones},
			}}}
	}
	return class
}

func storageOf(objects ...metav1.Object) Storage {
	s := Storage{Claims: map[string]*corev1.PersistentVolumeClaim{}, Volumes: map[string]*corev1.PersistentVolume{},
		Classes: map[string]*storagev1.StorageClass{}}
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.PersistentVolumeClaim:
			s.Claims[object.Namespace+"/"+object.Name] = object
		case *corev1.PersistentVolume:
			s.Volumes[object.Name] = object
		case *storagev1.StorageClass:
			s.Classes[object.Name] = object
		}
	}
	return s
}

func usingClaims(names ...string) *corev1.Pod {
	pod := waitingPod()
	for i, name := range names {
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
	}
	return pod
}

// withVolumes translates the pod; ways prints its alternatives.
func withVolumes(pod *corev1.Pod, s Storage) (shape *cluster.Shape, ways, requests string, err error) {
	space := resources.NewSpace()
	result, err := Pod(space, pod, time.Now())
	if err != nil {
		return nil, "", "", err
	}
	err = AddVolumes(space, result, pod, s)
	for _, way := range result.Shape.Alternatives {
		ways += "[" + way.Labels.String()
		if !way.Names.IsAny() {
			ways += " @" + way.Names.String()
		}
		ways += "]"
	}
	return result.Shape, ways, space.Names().Format(result.Shape.Requests), err
}

const (
	waits  = storagev1.VolumeBindingWaitForFirstConsumer
	atOnce = storagev1.VolumeBindingImmediate
	ebs    = "ebs.csi.aws.com"
	zone   = "topology.kubernetes.io/zone"
)

func TestWhereVolumesLetAPodRun(t *testing.T) { // P-07
	t.Parallel()
	labelled := volumeIn("old")
	labelled.Labels = map[string]string{"failure-domain.beta.kubernetes.io/zone": "a__b", "team": "x"}
	chosen := volumeClaim("data", "", "slow")
	chosen.Annotations[annotationSelectedNode] = "n7"
	two := storageClass("slow", ebs, waits, "a")
	two.AllowedTopologies = append(two.AllowedTopologies, storageClass("", ebs, waits, "b").AllowedTopologies[0],
		corev1.TopologySelectorTerm{})
	for name, row := range map[string]struct {
		own     string // node selector on the zone
		claims  []string
		storage Storage
		want    string
	}{
		"volume anywhere": {"", []string{"data"},
			storageOf(volumeClaim("data", "pv", ""), volumeIn("pv")), ""},
		"volume in a zone": {"", []string{"data"},
			storageOf(volumeClaim("data", "pv", ""), volumeIn("pv", zone+"=b")), "[topology.kubernetes.io/zone=b]"},
		"the driver's name for the zone": {"", []string{"data"}, storageOf(volumeClaim("data", "pv", ""),
			volumeIn("pv", "topology.ebs.csi.aws.com/zone=b")), "[topology.kubernetes.io/zone=b]"},
		"local volume": {"", []string{"data"}, storageOf(volumeClaim("data", "pv", ""),
			volumeIn("pv", "kubernetes.io/hostname=n1")), "[kubernetes.io/hostname=n1]"},
		"labels of the volume": {"", []string{"data"}, storageOf(volumeClaim("data", "old", ""), labelled),
			"[topology.kubernetes.io/zone=a|b]"},
		"with the pod's own selection": {"a", []string{"data"},
			storageOf(volumeClaim("data", "pv", ""), volumeIn("pv", zone+"=a|b")), "[topology.kubernetes.io/zone=a]"},
		"two volumes multiply": {"", []string{"data", "log"},
			storageOf(volumeClaim("data", "pv", ""), volumeClaim("log", "pw", ""),
				volumeIn("pv", zone+"=a", zone+"=b"), volumeIn("pw", "x=1", zone+"=a,x=2")),
			"[topology.kubernetes.io/zone=a x=1][topology.kubernetes.io/zone=a x=2][topology.kubernetes.io/zone=b x=1]"},
		"the same way twice counts once": {"", []string{"data"}, storageOf(volumeClaim("data", "pv", ""),
			volumeIn("pv", zone+"=a", zone+"=a")), "[topology.kubernetes.io/zone=a]"},
		"first consumer, anywhere": {"", []string{"data"},
			storageOf(volumeClaim("data", "", "slow"), storageClass("slow", ebs, waits)), ""},
		"first consumer, allowed zones": {"", []string{"data"}, storageOf(volumeClaim("data", "", "slow"),
			storageClass("slow", ebs, waits, "b", "c")), "[topology.kubernetes.io/zone=b|c]"},
		"first consumer, OR of topologies": {"", []string{"data"}, storageOf(volumeClaim("data", "", "slow"), two),
			"[topology.kubernetes.io/zone=a][topology.kubernetes.io/zone=b][kubernetes.io/hostname: nothing]"},
		"being made for a node": {"", []string{"data"},
			storageOf(chosen, storageClass("slow", ebs, waits, "b")),
			"[topology.kubernetes.io/zone=b @metadata.name=n7]"},
	} {
		pod := usingClaims(row.claims...)
		if row.own != "" {
			pod.Spec.NodeSelector = map[string]string{zone: row.own}
		}
		shape, ways, _, err := withVolumes(pod, row.storage)
		possible := strings.ReplaceAll(row.want, "[kubernetes.io/hostname: nothing]", "")
		if err != nil || shape.Blocked != "" ||
			strings.ReplaceAll(ways, "[kubernetes.io/hostname: nothing]", "") != possible {
			t.Errorf("%s: ways %s, blocked %q, error %v; want %s", name, ways, shape.Blocked, err, possible)
		}
		if own := len(shape.Selecting().Alternatives); own != min(1, len(row.own)) {
			t.Errorf("%s: spread constraints go by %d ways; want those of the pod itself", name, own)
		}
	}
}

func TestPodsWhoseVolumesAreNotThereYet(t *testing.T) { // P-07, P-12
	t.Parallel()
	early := volumeClaim("data", "", "slow")
	early.Spec.VolumeName = "pv"
	lost := volumeClaim("data", "pv", "")
	lost.Status.Phase = corev1.ClaimLost
	leaving := volumeClaim("data", "pv", "")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	nowhere := storageClass("slow", ebs, waits)
	nowhere.AllowedTopologies = []corev1.TopologySelectorTerm{{}}
	for want, s := range map[string]Storage{
		"shop/data does not exist":                           storageOf(),
		"shop/data is being deleted":                         storageOf(leaving, volumeIn("pv")),
		"shop/data has lost its PersistentVolume pv":         storageOf(lost),
		"bound to PersistentVolume pv, which does not exist": storageOf(volumeClaim("data", "pv", "")),
		"is not bound to PersistentVolume pv yet": storageOf(early, volumeIn("pv"),
			storageClass("slow", ebs, waits)),
		"is not bound and has no StorageClass": storageOf(volumeClaim("data", "", "")),
		"its StorageClass slow does not exist": storageOf(volumeClaim("data", "", "slow")),
		"which its StorageClass slow wants before pods": storageOf(volumeClaim("data", "", "slow"),
			storageClass("slow", ebs, atOnce)),
		"its StorageClass slow makes no volumes": storageOf(volumeClaim("data", "", "slow"),
			storageClass("slow", "", waits)),
		"can be used on no node only": storageOf(volumeClaim("data", "", "slow"),
			nowhere),
		"can be used on topology.kubernetes.io/zone=a or x=1 only": storageOf(volumeClaim("data", "pv", ""),
			volumeIn("pv", zone+"=a", "x=1")),
	} {
		pod := usingClaims("data")
		if strings.Contains(want, "zone=a") {
			pod.Spec.NodeSelector = map[string]string{zone: "b", "x": "2"}
		}
		shape, _, _, err := withVolumes(pod, s)
		if err != nil || !strings.Contains(shape.Blocked, want) {
			t.Errorf("blocked %q, error %v; want %q", shape.Blocked, err, want)
		}
		if (&cluster.Node{Name: "n", Labels: map[string]string{"kubernetes.io/hostname": "n", zone: "b",
			"x": "2"}}).Admits(shape) {
			t.Errorf("%s: a node would do", want)
		}
	}
}

func TestEphemeralVolumesBelongToTheirPod(t *testing.T) { // P-07
	t.Parallel()
	pod := waitingPod()
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	if got := VolumeClaims(pod); len(got) != 1 || got[0] != "shop/web-tmp" {
		t.Fatalf("claims %v; want shop/web-tmp", got)
	}
	claim := volumeClaim("web-tmp", "pv", "")
	s := storageOf(claim, volumeIn("pv", zone+"=b"))
	if shape, _, _, _ := withVolumes(pod, s); !strings.Contains(shape.Blocked, "was not made for this pod") {
		t.Errorf("somebody else's claim of the name: blocked %q", shape.Blocked)
	}
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web", UID: pod.UID, Controller: new(true)}}
	if shape, ways, _, _ := withVolumes(pod, s); shape.Blocked != "" || ways != "[topology.kubernetes.io/zone=b]" {
		t.Errorf("its own claim: blocked %q, ways %s", shape.Blocked, ways)
	}
}

// P-07: the successor of a running pod gets a new ephemeral volume, wherever its class allows one. So such a volume
// ties no pod to a zone or node, unless its driver reports where there is room.
func TestEphemeralVolumesGoWithTheirPod(t *testing.T) {
	t.Parallel()
	waits, immediate := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for name, c := range map[string]struct {
		node, class string
		mode        storagev1.VolumeBindingMode
		reports     bool
		want        string
	}{
		"it waits":          {"", "fast", waits, false, "[" + zone + "=b]"},
		"it runs":           {"n1", "fast", waits, false, "[" + zone + "=a|b]"},
		"bound at once":     {"n1", "fast", immediate, false, "[" + zone + "=b]"},
		"capacities":        {"n1", "fast", waits, true, "[" + zone + "=b]"},
		"its class is gone": {"n1", "gone", waits, false, "[" + zone + "=b]"},
		"it has no class":   {"n1", "", waits, false, "[" + zone + "=b]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := waitingPod()
			pod.Spec.NodeName = c.node
			pod.Spec.Volumes = []corev1.Volume{
				{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			}
			claim := volumeClaim("web-tmp", "pv", c.class)
			claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web", UID: pod.UID,
				Controller: new(true)}}
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "csi.example.com",
				VolumeBindingMode: &c.mode,
				AllowedTopologies: []corev1.TopologySelectorTerm{{
					MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
						{Key: zone, Values: []string{"a", "b"}}}}}}
			s := storageOf(claim, class, volumeIn("pv", zone+"=b"))
			s.Drivers = map[string]*storagev1.CSIDriver{"csi.example.com": {
				Spec: storagev1.CSIDriverSpec{StorageCapacity: &c.reports}}}
			if shape, ways, _, err := withVolumes(pod, s); shape.Blocked != "" || ways != c.want || err != nil {
				t.Errorf("blocked %q, ways %s, %v; want %s", shape.Blocked, ways, err, c.want)
			}
		})
	}
}

func TestTooManyWaysLeaveTheOthersOut(t *testing.T) { // P-07
	t.Parallel()
	var terms, others []string
	for i := range 10 {
		terms, others = append(terms, fmt.Sprint("x=", i)), append(others, fmt.Sprint("y=", i))
	}
	pod := usingClaims("data", "log")
	shape, _, _, err := withVolumes(pod, storageOf(volumeClaim("data", "pv", ""), volumeClaim("log", "pw", ""),
		volumeIn("pv", terms...), volumeIn("pw", others...)))
	if len(shape.Alternatives) != maxAlternatives || err == nil ||
		!strings.Contains(err.Error(), "pod shop/web: PersistentVolumeClaim shop/log") {
		t.Errorf("%d ways, error %v; want the first %d and an error that names the pod", len(shape.Alternatives), err,
			maxAlternatives)
	}
	for _, way := range shape.Alternatives {
		if !way.Labels.Holds("x") || !way.Labels.Holds("y") {
			t.Errorf("way %s forgets a volume", way.Labels)
		}
	}
}

func TestVolumesThatAreNotUnderstood(t *testing.T) { // P-07
	t.Parallel()
	volume := volumeIn("pv", zone+"=a")
	volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Resembles"
	s := storageOf(volumeClaim("data", "pv", ""), volume)
	if shape, _, _, err := withVolumes(usingClaims("data"), s); err == nil ||
		!strings.Contains(err.Error(), "PersistentVolume pv: node affinity") || shape.Blocked == "" {
		t.Errorf("blocked %q, error %v", shape.Blocked, err)
	}
	pod := usingClaims("data")
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
		},
	}}
	if shape, ways, _,
		_ := withVolumes(pod, storageOf(volumeClaim("data", "pv", ""), volumeIn("pv", zone+"=a"))); !strings.HasPrefix(
		ways, "[kubernetes.io/hostname: nothing") || shape.Blocked != "" {
		t.Errorf("a pod that fits nowhere by itself: ways %s, blocked %q", ways, shape.Blocked)
	}
}

func TestVolumesAreCountedWhereADriverIsLimited(t *testing.T) { // P-07
	t.Parallel()
	inTree := volumeIn("tree")
	inTree.Spec.CSI, inTree.Spec.AWSElasticBlockStore = nil, &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol"}
	s := storageOf(volumeClaim("data", "pv", ""), volumeIn("pv"), volumeClaim("old", "tree", ""), inTree,
		volumeClaim("new", "", "slow"), storageClass("slow", "kubernetes.io/aws-ebs", waits))
	pod := usingClaims("data", "data", "old", "new")
	if _, _, requests, err := withVolumes(pod, s); requests != "pods=1" || err != nil {
		t.Errorf("without limits: requests %s, error %v", requests, err)
	}
	s.Limited = []string{ebs, "other"}
	if _, _, requests, err := withVolumes(pod, s); requests != "pods=1 attachable-volumes-csi-ebs.csi.aws.com=3" ||
		err != nil {
		t.Errorf("requests %s, error %v; want the claim that is used twice once", requests, err)
	}
}

func TestRoomForVolumes(t *testing.T) { // P-07
	t.Parallel()
	csi := func(count *int32) *storagev1.CSINode {
		return &storagev1.CSINode{
			Spec: storagev1.CSINodeSpec{
				Drivers: []storagev1.CSINodeDriver{
					{Name: ebs, Allocatable: &storagev1.VolumeNodeResources{Count: count}}, {Name: "bare"},
				},
			},
		}
	}
	stated := claimOf("Launched", "Registered")
	stated.Status.Allocatable = requests("cpu", "1", "attachable-volumes-csi-ebs.csi.aws.com", "9").Requests
	node := &corev1.Node{}
	for name, row := range map[string]struct {
		from NodeSource
		want int64
	}{
		"CSINode says":                {NodeSource{Node: node, CSI: csi(new(int32(25)))}, 25},
		"CSINode says none":           {NodeSource{Node: node, CSI: csi(new(int32(0)))}, 0},
		"CSINode says no limit":       {NodeSource{Node: node, CSI: csi(nil)}, UnlimitedVolumes},
		"no CSINode":                  {NodeSource{Node: node}, UnlimitedVolumes},
		"the provider has stated it":  {NodeSource{Node: node, Claim: stated}, 9},
		"CSINode knows better":        {NodeSource{Node: node, Claim: stated, CSI: csi(new(int32(7)))}, 7},
		"a claim without an instance": {NodeSource{Claim: claimOf()}, UnlimitedVolumes},
		"a prospect that says nothing": {
			NodeSource{Claim: claimOf(), Prospect: &Prospect{Allocatable: resources.Vector{1000}}}, UnlimitedVolumes,
		},
	} {
		space := resources.NewSpace()
		row.from.Limited = []string{ebs}
		if got := Node(space, row.from).Allocatable.At(space.Index(AttachResource(ebs))); got != row.want {
			t.Errorf("%s: room for %d volumes; want %d", name, got, row.want)
		}
		row.from.Limited = nil
		if got := len(Node(space, row.from).Allocatable); got > space.Index(AttachResource(ebs)) &&
			row.from.Claim != stated {
			t.Errorf("%s: volumes are counted although no node limits them", name)
		}
	}
}

func TestClaimsDoNotAskForVolumes(t *testing.T) { // P-07, P-30
	t.Parallel()
	space := resources.NewSpace()
	launch := plan.Launch{
		Pool: "default", Requests: space.Vector(resources.Amounts{"cpu": 1000, AttachResource(ebs): 3}),
	}
	claim := NodeClaimFor(&karpenterv1.NodePool{}, space.Names(), launch, "c1")
	if list := claim.Spec.Resources.Requests; len(list) != 1 || list.Cpu().Value() != 1 {
		t.Errorf("requests %v; want cpu alone", list)
	}
}

func TestZonesByTheNamesOfDrivers(t *testing.T) { // P-07
	t.Parallel()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"topology.gke.io/zone": "a"}},
	}
	n := Node(resources.NewSpace(), NodeSource{Node: node})
	if !n.Satisfies(requirement.NewSet(requirement.OneOf(Key("topology.ebs.csi.aws.com/zone"), "a"))) {
		t.Errorf("labels %v", n.Labels)
	}
}
