package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/ec2cloud"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file gives workloads volumes like those of a StatefulSet: each pod has a name and a disk of its own, and its
// successor has the same ones. A disk belongs to one zone. It is created when its first pod gets a node, in that
// node's zone (WaitForFirstConsumer), or existed before. From then on it pins its pods to its zone. attach.go
// simulates how many disks a node attaches, and the time that attaching and detaching takes.

// checkStranded names the check of D-04 and P-07: consolidation leaves no pod without a node that its disk can reach.
const checkStranded = "stranded"

const (
	diskClass   = "disk"
	diskPrefix  = "disk-" // of the names of volumes
	diskSize    = "1Gi"
	bindKey     = "pv.kubernetes.io/bind-completed"
	selectedKey = "volume.kubernetes.io/selected-node"
)

// diskOf parses disk=: late, or the zone in which the disks already are; "" for a workload without disks.
func diskOf(a arguments) (string, error) {
	text, stated := a.value("disk")
	if stated &&
		!slices.Contains([]string{"late", "zone-a", "zone-b", ec2cloud.Zone("zone-a"), ec2cloud.Zone("zone-b")},
			text) {
		return "", fmt.Errorf("disk is %q: want late, zone-a or zone-b", text)
	}
	return text, nil
}

// nextName returns the name of a workload's next pod; "" if every pod that it may have with a disk exists or still
// ends.
func (c *cluster) nextName(l *workload) string {
	if l.disk == "" {
		c.pods++
		return fmt.Sprintf("%s-%03d", l.name, c.pods)
	}
	for _, name := range l.ordinals() {
		if c.world.server.Peek(&corev1.Pod{}, client.ObjectKey{Namespace: metaNamespace, Name: name}) == nil {
			return name
		}
	}
	return ""
}

// ordinals returns the names of the pods with a disk.
func (l *workload) ordinals() []string {
	list := make([]string, l.replicas)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%d", l.name, i)
	}
	return list
}

// addDisk gives a pod its disk, and creates the claim for it if there is none.
func (c *cluster) addDisk(l *workload, pod *corev1.Pod) {
	if l.disk == "" {
		return
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pod.Name},
	}}}
	server := c.world.server
	if server.Peek(&storagev1.StorageClass{}, client.ObjectKey{Name: diskClass}) == nil {
		late := storagev1.VolumeBindingWaitForFirstConsumer
		c.must(server.Create(&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: diskClass}, Provisioner: diskDriver, VolumeBindingMode: &late,
		}))
	}
	key := client.ObjectKeyFromObject(pod)
	if server.Peek(&corev1.PersistentVolumeClaim{}, key) != nil {
		return
	}
	class := diskClass
	wanted := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(diskSize)}
	c.must(server.Create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: wanted},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}))
	if l.disk != "late" {
		c.bindDisk(key, l.disk)
	}
}

// bindDisk creates a disk in a zone, "" for none, and binds it to a claim.
func (c *cluster) bindDisk(claim client.ObjectKey, zone string) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: diskPrefix + claim.Name}}
	volume.Spec.StorageClassName = diskClass
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(diskSize)}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace,
		Name: claim.Name}
	volume.Status.Phase = corev1.VolumeBound
	if c.world.script.attaches() { // otherwise no driver is known, and nothing is counted
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: diskDriver, VolumeHandle: volume.Name}
	}
	if zone != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
				}},
			}}}}
	}
	c.must(c.world.server.Create(volume))
	change(c.world, &corev1.PersistentVolumeClaim{}, claim, apiserver.Main, func(p *corev1.PersistentVolumeClaim) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[bindKey] = "yes"
		p.Spec.VolumeName, p.Status.Phase = volume.Name, corev1.ClaimBound
	})
}

// claimOfDisk returns the claim of a pod's disk, or nil.
func (w *World) claimOfDisk(pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	if len(pod.Spec.Volumes) == 0 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil {
		return nil
	}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName}
	claim, _ := w.server.Peek(&corev1.PersistentVolumeClaim{}, key).(*corev1.PersistentVolumeClaim)
	return claim
}

// zoneOfDisk returns the zone that a pod's disk pins it to, "" for none.
func (w *World) zoneOfDisk(pod *corev1.Pod) string {
	claim := w.claimOfDisk(pod)
	if claim == nil || claim.Spec.VolumeName == "" {
		return ""
	}
	key := client.ObjectKey{Name: claim.Spec.VolumeName}
	volume, _ := w.server.Peek(&corev1.PersistentVolume{}, key).(*corev1.PersistentVolume)
	if volume == nil || volume.Spec.NodeAffinity == nil {
		return ""
	}
	return volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}

// reaches is the scheduler's filter for volumes: an existing disk works in its zone, a disk that is being created on
// its node.
func (c *cluster) reaches(pod *corev1.Pod, node *corev1.Node) bool {
	claim := c.world.claimOfDisk(pod)
	if claim == nil {
		return true
	}
	if claim.Spec.VolumeName == "" {
		chosen := claim.Annotations[selectedKey]
		return chosen == "" || chosen == node.Name
	}
	zone := c.world.zoneOfDisk(pod)
	return zone == "" || node.Labels[corev1.LabelTopologyZone] == zone
}

// makeDisk creates the disk of a pod that got its node, unless there is one, and returns how long that takes. It is
// created even if the pod goes meanwhile, but not if the node goes: then the claim is free for another node.
func (c *cluster) makeDisk(pod *corev1.Pod, node string) time.Duration {
	claim := c.world.claimOfDisk(pod)
	if claim == nil || claim.Spec.VolumeName != "" {
		return 0
	}
	key := client.ObjectKeyFromObject(claim)
	choose := func(node string) {
		change(c.world, &corev1.PersistentVolumeClaim{}, key, apiserver.Main, func(p *corev1.PersistentVolumeClaim) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			if p.Annotations[selectedKey] = node; node == "" {
				delete(p.Annotations, selectedKey)
			}
		})
	}
	choose(node)
	d := newDice(c.world.script.Seed, "disk", claim.Name, c.world.now.String())
	takes := d.between(300*time.Millisecond, 5*time.Second)
	c.world.after(takes, func() {
		found, _ := c.world.server.Peek(&corev1.Node{}, client.ObjectKey{Name: node}).(*corev1.Node)
		claim := c.world.claimOfDisk(pod)
		switch {
		case claim == nil || claim.Spec.VolumeName != "" || claim.Annotations[selectedKey] != node:
			// no longer wanted here
			return
		case found == nil:
			choose("")
			return
		}
		c.bindDisk(key, found.Labels[corev1.LabelTopologyZone])
	})
	return takes
}

// checkDisks is D-04 for pods with disks: when consolidation removes a node, another node remains in the zone of the
// disks used there. That node may have been removed by others in the meantime.
func (w *World) checkDisks(claim *karpenterv1.NodeClaim) {
	p := w.actor
	for _, times := range w.checks.foreign {
		if n := len(times); n > 0 && times[n-1] >= p.since-time.Minute {
			return
		}
	}
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		at, seen := p.line.replica.known.bound[pod.UID]
		zone := w.zoneOfDisk(pod)
		if pod.Spec.NodeName != claim.Status.NodeName || pod.DeletionTimestamp != nil || zone == "" || !seen ||
			at >= p.since || translate.Finished(pod) {
			return
		}
		stays := false
		w.server.All(&corev1.Node{}, func(o client.Object) {
			stays = stays || o.GetName() != pod.Spec.NodeName && o.GetDeletionTimestamp() == nil &&
				o.GetLabels()[corev1.LabelTopologyZone] == zone
		})
		if !stays {
			w.fail(checkStranded,
				"claim %s is consolidated although pod %s has its disk in %s, where no other node is", claim.Name,
				pod.Name, zone)
		}
	})
}
