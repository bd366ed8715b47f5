package e2e

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file draws cases for TestK58_ThePodsWithVolumesThatAreExpectedAreBound. In each, the number of pods that find a
// place does not depend on which node kube-scheduler prefers: the pods are equal, or each may run on one node only.

// volumeCase is a case: what storage some nodes have, and pods with claims.
type volumeCase struct {
	kind    string
	name    string
	nodes   []string
	objects []client.Object // before the pods
	pods    []*corev1.Pod   // the highest priority first
	// left has the capacities from which the test's provisioner takes, by name.
	left map[string]*storagev1.CSIStorageCapacity
	// count is set if any of the equal pods may come first, so only their number counts: two that are provisioned for
	// at once may be one too many.
	count bool
}

// volumeDrawing is the memory while a case is drawn.
type volumeDrawing struct {
	*rand.Rand
	c *volumeCase
}

// drawVolumeCase draws a case for these nodes, which are those of a pool.
func drawVolumeCase(random *rand.Rand, number int, pool string, nodes []string) *volumeCase {
	d := volumeDrawing{random, &volumeCase{name: fmt.Sprintf("case-%d", number), nodes: nodes,
		left: map[string]*storagev1.CSIStorageCapacity{}}}
	kinds := []string{"local", "capacity", "attach", "local-pinned", "shared"}
	d.c.kind = kinds[number%len(kinds)]
	many := 2 + d.IntN(mostPods-1)
	switch d.c.kind {
	case "local", "local-pinned":
		d.local(many)
	case "capacity":
		d.capacity(many)
	case "attach":
		d.attach(many, 1+d.IntN(2), false)
	case "shared":
		d.attach(many, d.IntN(2), true)
	}
	for i, pod := range d.c.pods {
		pod.Spec.PriorityClassName = fmt.Sprintf("order-%d", i)
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": pool}
		}
	}
	return d.c
}

func (d *volumeDrawing) add(o client.Object) { d.c.objects = append(d.c.objects, o) }

func (d *volumeDrawing) driver() string { return d.c.name + ".example.com" }

// class makes the StorageClass of the case.
func (d *volumeDrawing) class(provisioner string) {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	d.add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: d.c.name}, Provisioner: provisioner,
		VolumeBindingMode: &mode})
}

func gibibytes(n int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(fmt.Sprintf("%dGi", n))}
}

// claim makes a claim of the class of the case.
func (d *volumeDrawing) claim(size int, change func(*corev1.PersistentVolumeClaimSpec)) string {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named(fmt.Sprintf("%s-%d", d.c.name, len(d.c.objects))),
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &d.c.name,
			AccessModes: []corev1.PersistentVolumeAccessMode{
				corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: gibibytes(size)}}}
	if change != nil {
		change(&claim.Spec)
	}
	d.add(claim)
	return claim.Name
}

// pod makes a pod with these claims.
func (d *volumeDrawing) pod(claims ...string) *corev1.Pod {
	second := int64(1)
	pod := &corev1.Pod{ObjectMeta: named(fmt.Sprintf("%s-pod-%d", d.c.name, len(d.c.pods))), Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &second,
		Containers: []corev1.Container{{Name: "main", Image: "example.invalid/main",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
			}}}}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	d.c.pods = append(d.c.pods, pod)
	return pod
}

// onNode returns the affinity of a volume for one node.
func onNode(node string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: []string{node}}}}}}}
}

// local draws volumes that already exist on nodes, and pods with one or two claims for them.
func (d *volumeDrawing) local(many int) {
	d.class("kubernetes.io/no-provisioner")
	for i, node := range d.c.nodes {
		for j := range d.IntN(4) {
			d.add(d.volume(fmt.Sprintf("%s-on-%d-%d", d.c.name, i, j), node))
		}
	}
	size, each, isBlock, hot := 1+d.IntN(2), 1+d.IntN(5)/4, d.IntN(8) == 0, d.IntN(4) == 0
	for range many {
		var claims []string
		for range each {
			claims = append(claims, d.claim(size, func(spec *corev1.PersistentVolumeClaimSpec) {
				if isBlock {
					spec.VolumeMode = mode(corev1.PersistentVolumeBlock)
				}
				if hot {
					spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"temperature": "hot"}}
				}
			}))
		}
		pod := d.pod(claims...)
		if d.c.kind == "local-pinned" {
			pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: d.c.nodes[d.IntN(len(d.c.nodes))]}
		}
	}
}

func mode(m corev1.PersistentVolumeMode) *corev1.PersistentVolumeMode { return &m }

// volume draws a volume on a node.
func (d *volumeDrawing) volume(name, node string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: gibibytes(1 + d.IntN(3)), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: d.c.name, NodeAffinity: onNode(node),
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			Local: &corev1.LocalVolumeSource{Path: "/mnt/" + name},
		}}}
	if d.IntN(5) == 0 {
		v.Spec.VolumeMode = mode(corev1.PersistentVolumeBlock)
	}
	if d.IntN(2) == 0 {
		v.Labels = map[string]string{"temperature": "hot"}
	}
	return v
}

// capacity draws what a driver has left on nodes, and pods with a claim for a volume there.
func (d *volumeDrawing) capacity(many int) {
	yes, no := true, false
	d.c.count = true
	d.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: d.driver()},
		Spec: storagev1.CSIDriverSpec{AttachRequired: &no, StorageCapacity: &yes}})
	d.class(d.driver())
	size := 1 + d.IntN(3)
	for i, node := range d.c.nodes {
		if d.IntN(5) == 0 {
			continue // nobody says what it has
		}
		left := resource.MustParse(fmt.Sprintf("%dGi", d.IntN(3)*size+d.IntN(size)))
		c := &storagev1.CSIStorageCapacity{ObjectMeta: named(fmt.Sprintf("%s-on-%d", d.c.name, i)),
			StorageClassName: d.c.name, Capacity: &left, NodeTopology: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelHostname: node},
			}}
		if d.IntN(4) == 0 { // no larger than what is left
			most := left.DeepCopy()
			if small := resource.MustParse(fmt.Sprintf("%dGi", 1+d.IntN(3))); small.Cmp(most) < 0 {
				most = small
			}
			c.MaximumVolumeSize = &most
		}
		d.c.left[node] = c
		d.add(c)
	}
	for range many {
		d.pod(d.claim(size, nil))
	}
}

// attach draws how many volumes nodes attach, and pods that bring each volumes and, if shared, one that all pods use.
func (d *volumeDrawing) attach(many, each int, shared bool) {
	no := false
	d.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: d.driver()}, Spec: storagev1.CSIDriverSpec{
		AttachRequired: &no,
	}})
	d.class(d.driver())
	for _, node := range d.c.nodes {
		most := int32(d.IntN(4))
		d.add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: d.driver(), NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &most}}}}})
	}
	common := ""
	d.c.count = shared // two that select a node for the common claim at once hinder each other
	if shared {
		common = d.claim(1, func(spec *corev1.PersistentVolumeClaimSpec) {
			spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		})
	}
	for range many {
		var claims []string
		if shared {
			claims = append(claims, common)
		}
		for range each {
			claims = append(claims, d.claim(1, nil))
		}
		d.pod(claims...)
	}
}
