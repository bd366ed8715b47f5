package sim

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file simulates the number of disks that a node attaches (P-07, K-59). A node joins without the CSI driver. A
// while later its CSINode names the driver, and how many disks the node attaches. Before that, the provider may state
// a number for its machines, which may differ. The simulated scheduler counts disks like kube-scheduler, once the
// driver is there. Attaching and detaching disks takes time. Nodes of other programs attach none. Scripts without a
// line `attach` have no such limits.

const (
	verbAttach = "attach"
	diskDriver = "disk.example.com"
	// forceAfter is how long volumes stay attached after their machine is gone.
	forceAfter = 6 * time.Minute
)

// attachVerbs returns the script lines about attachments.
func attachVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbAttach: (*World).setAttach}
}

// mostDisks is the highest number in script lines: there is a catalogue for each number.
const mostDisks = 8

// setAttach sets how many disks nodes attach that join from now on: attach most=N [stated=N]. Only the first line sets
// what the provider states.
func (w *World) setAttach(a arguments) error {
	for _, key := range []string{"most", "stated"} {
		if text, stated := a.value(key); stated && (a.number(key, -1) < 0 || a.number(key, -1) > mostDisks) ||
			!stated && key == "most" {
			return fmt.Errorf("%s is %q: want a number from 0 to %d", key, text, mostDisks)
		}
	}
	w.cluster.most = int(a.number("most", 0))
	return nil
}

// attaches reports whether the script limits attached disks.
func (s *Script) attaches() bool { return s.hasVerb(verbAttach) }

// statedDisks returns the number of disks that the provider states for its machines, -1 for none.
func (s *Script) statedDisks() int {
	for _, action := range s.Actions {
		if n := arguments(action.Args).number("stated", -1); action.Verb == verbAttach {
			return int(min(n, mostDisks))
		}
	}
	return -1
}

// heardJoin creates the CSINode of a joining node, and registers the driver there a while later.
func (c *cluster) heardJoin(e apiserver.Event, node *corev1.Node) {
	if !c.world.script.attaches() {
		return
	}
	key := client.ObjectKey{Name: node.Name}
	switch e.Type {
	case apiserver.Added:
		d, most := newDice(c.world.script.Seed, verbAttach, node.Name), c.most
		if strings.HasPrefix(node.Name, foreignPrefix) {
			most = 0
		}
		c.world.after(d.between(0, 200*time.Millisecond), func() {
			if c.world.server.Peek(&corev1.Node{}, key) != nil {
				c.must(c.world.server.Create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}))
			}
		})
		c.world.after(d.between(time.Second, 10*time.Second), func() {
			change(c.world, &storagev1.CSINode{}, key, apiserver.Main, func(n *storagev1.CSINode) {
				n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: diskDriver, NodeID: node.Name,
					Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(most))}}}
			})
		})
	case apiserver.Deleted:
		c.world.after(time.Second, func() {
			if c.world.server.Peek(&corev1.Node{}, key) == nil {
				c.must(c.world.server.Delete(&storagev1.CSINode{}, key, apiserver.DeleteOptions{}))
			}
		})
	}
}

// limitOf returns how many disks a node attaches; false while that is unknown.
func (c *cluster) limitOf(node string) (most int, known bool) {
	found, _ := c.world.server.Peek(&storagev1.CSINode{}, client.ObjectKey{Name: node}).(*storagev1.CSINode)
	if found == nil {
		return 0, false
	}
	for _, driver := range found.Spec.Drivers {
		if driver.Name == diskDriver && driver.Allocatable != nil && driver.Allocatable.Count != nil {
			return int(*driver.Allocatable.Count), true
		}
	}
	return 0, false
}

// attached adds the attached disks of nodes to their rooms.
func (c *cluster) attached(byName map[string]*room) {
	if !c.world.script.attaches() {
		return
	}
	c.world.server.All(&storagev1.VolumeAttachment{}, func(o client.Object) {
		a := o.(*storagev1.VolumeAttachment)
		if r := byName[a.Spec.NodeName]; r != nil {
			r.disk(strings.TrimPrefix(*a.Spec.Source.PersistentVolumeName, diskPrefix))
		}
	})
	for name, r := range byName {
		if most, known := c.limitOf(name); known {
			r.most = most
		}
	}
}

// disk notes that a node has a disk, by the name of the disk's claim.
func (r *room) disk(claim string) {
	if r.disks == nil {
		r.disks = map[string]bool{}
	}
	r.disks[claim] = true
}

// diskName returns the claim of a pod's disk, "" for none.
func diskName(pod *corev1.Pod) string {
	if len(pod.Spec.Volumes) == 0 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil {
		return ""
	}
	return pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
}

// attaches is the scheduler's filter for the number of disks.
func (r *room) attaches(pod *corev1.Pod) bool {
	name := diskName(pod)
	return name == "" || r.most == unlimitedDisks || r.disks[name] || len(r.disks) < r.most
}

// unlimitedDisks is the limit of a node that states none.
const unlimitedDisks = -1

// attachmentOf returns the attachment of a disk, nil when it has none.
func (c *cluster) attachmentOf(claim string) *storagev1.VolumeAttachment {
	var found *storagev1.VolumeAttachment
	c.world.server.All(&storagev1.VolumeAttachment{}, func(o client.Object) {
		if a := o.(*storagev1.VolumeAttachment); *a.Spec.Source.PersistentVolumeName == diskPrefix+claim {
			found = a
		}
	})
	return found
}

// attach attaches the disk of a bound pod, as soon as the disk is attached to no other node.
func (c *cluster) attach(pod *corev1.Pod) {
	name := diskName(pod)
	if name == "" || !c.world.script.attaches() {
		return
	}
	d := newDice(c.world.script.Seed, verbAttach, pod.Name, c.world.now.String())
	c.world.after(d.between(100*time.Millisecond, 3*time.Second), func() {
		now := c.podOf(pod.Name, pod.UID)
		if now == nil || now.DeletionTimestamp != nil || !c.world.alive(now.Spec.NodeName) {
			return
		}
		switch has := c.attachmentOf(name); {
		case has == nil:
			volume := diskPrefix + name
			c.must(c.world.server.Create(&storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name + "-" + now.Spec.NodeName},
				Spec: storagev1.VolumeAttachmentSpec{Attacher: diskDriver, NodeName: now.Spec.NodeName,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
			}))
		case has.Spec.NodeName != now.Spec.NodeName:
			c.attach(now) // the disk still has to be detached elsewhere
		}
	})
}

// isAttached reports whether a pod has its disk, so that it can start.
func (c *cluster) isAttached(pod *corev1.Pod) bool {
	if diskName(pod) == "" || !c.world.script.attaches() || strings.HasPrefix(pod.Spec.NodeName, foreignPrefix) {
		return true
	}
	has := c.attachmentOf(diskName(pod))
	return has != nil && has.Spec.NodeName == pod.Spec.NodeName
}

// detach detaches the disk of a removed pod after a while, unless another pod of the node uses it by then.
func (c *cluster) detach(pod *corev1.Pod) {
	name := diskName(pod)
	if name == "" || pod.Spec.NodeName == "" || !c.world.script.attaches() {
		return
	}
	d := newDice(c.world.script.Seed, "detach", pod.Name, c.world.now.String())
	takes := d.between(0, 20*time.Second)
	if !c.world.alive(pod.Spec.NodeName) {
		takes = forceAfter
	}
	c.world.after(takes, func() {
		used := false
		c.world.server.All(&corev1.Pod{}, func(o client.Object) {
			other := o.(*corev1.Pod)
			used = used || other.Spec.NodeName == pod.Spec.NodeName && diskName(other) == name &&
				!translate.Finished(other)
		})
		if has := c.attachmentOf(name); has != nil && has.Spec.NodeName == pod.Spec.NodeName && !used {
			c.must(c.world.server.Delete(has, client.ObjectKeyFromObject(has), apiserver.DeleteOptions{}))
		}
	})
}

// attachments adds limits and a workload with disks to some scripts. It has its own dice, so that the rest of the
// scripts does not change.
func (g *generator) attachments() {
	d := newDice(g.script.Seed, "attachments")
	if !d.chance(0.25) {
		return
	}
	most := of(&d, 1, 2, 2, 3, 5)
	args := []string{fmt.Sprintf("most=%d", most)}
	if d.chance(0.5) {
		args = append(args, fmt.Sprintf("stated=%d", most))
	}
	g.add(0, verbAttach, args...)
	const name = "vol"
	args = []string{name, fmt.Sprintf("replicas=%d", d.n(7)), "cpu=" + of(&d, "100m", "500m", "1500m"), "mem=256Mi",
		"disk=" + of(&d, "late", "late", "zone-a", "zone-b"), "grace=" + of(&d, "0s", "5s")}
	if d.chance(0.2) {
		args = append(args, "unavailable=1")
	}
	at := func() time.Duration { return d.between(time.Second, g.script.Heal-time.Second) }
	g.add(at(), "workload", args...)
	for range d.n(4) {
		g.add(at(), "scale", name, fmt.Sprint(d.n(8)))
	}
}
