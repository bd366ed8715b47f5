package world

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// event is what a watch says of an object: its state, or that it is gone.
type event struct {
	object client.Object
	gone   bool
}

func (e event) tell(s *Store) {
	if e.gone {
		s.Remove(e.object)
		return
	}
	_ = s.Apply(e.object)
}

// history is the life of a small cluster: every event in the order in which it happened, and what is left at the end.
type history struct {
	events  []event
	alive   map[string]client.Object
	version int
	born    int
}

// drawHistory lets objects under a few names come, change, go and come again with new UIDs. Provider IDs and node
// names repeat, so that nodes and claims join, part and compete.
func drawHistory(t *rapid.T) *history {
	h := &history{alive: map[string]client.Object{}}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		h.version++
		kind := rapid.SampledFrom([]string{"pod", "pod", "pod", "node", "node", "claim", "claim", "pool", "pool",
			"overlay", "overlay", "daemon", "daemon", "namespace", "volumeclaim", "volumeclaim", "volume", "service",
			"replicaset", "class", "limitrange", "runtimeclass", "csinode", "attachment", "pdb", "pdb"}).Draw(t, "kind")
		name := kind + rapid.SampledFrom([]string{"-0", "-1", "-2"}).Draw(t, "name")
		old := h.alive[name]
		if old != nil && rapid.IntRange(0, 3).Draw(t, "end") == 0 {
			final := old.DeepCopyObject().(client.Object)
			final.SetResourceVersion(strconv.Itoa(h.version))
			h.events = append(h.events, event{object: final, gone: true})
			delete(h.alive, name)
			continue
		}
		uid := ""
		if old != nil {
			uid = string(old.GetUID())
		} else {
			h.born++
			uid = fmt.Sprintf("uid-%d", h.born)
		}
		object := drawObject(t, kind, name, uid, h.version)
		h.events = append(h.events, event{object: object})
		h.alive[name] = object
	}
	return h
}

// drawPod draws a pod, with what its place and its volumes depend on.
func drawPod(t *rapid.T, name, uid string, version int) *corev1.Pod {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	pod := testPod(name, uid, version, pick("on", "", "node-0", "node-1", "node-2"))
	pod.Labels["app"] = pick("app", "web", "web", "other")
	pod.Spec.Containers[0].Resources.Requests = quantities("cpu", pick("cpu", "1", "2"))
	pod.Status.Phase = corev1.PodPhase(pick("phase", "Pending", "Running", "Running", "Succeeded"))
	if pick("owner", "ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet") != "ReplicaSet" {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: pick("kind of owner", "StatefulSet", "DaemonSet"),
				Name: pick("name of owner", "o", "daemon-0", "daemon-1")},
		}
		pod.CreationTimestamp = metav1.NewTime(newClock().now.Add(time.Duration(version) * time.Second))
		pod.Labels["pod-template-generation"] = pick("of generation", "1", "2")
	} else {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: pick("replica set", "replicaset-0", "replicaset-1"),
				Controller: new(true)},
		}
	}
	if pod.Spec.NodeName == "" {
		pod.Status.NominatedNodeName = pick("chosen", "", "", "node-0", "node-1")
		pod.Status.Conditions = pod.Status.Conditions[:rapid.IntRange(0, 1).Draw(t, "tried")]
	}
	pod.Spec.Priority = new(rapid.Int32Range(0, 1).Draw(t, "priority"))
	if pick("protected", "", "", "true") != "" {
		pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	}
	for range rapid.IntRange(0, 2).Draw(t, "volumes") {
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			testMount(pick("mounts", "volumeclaim-0", "volumeclaim-1", "volumeclaim-2")))
	}
	return pod
}

func drawObject(t *rapid.T, kind, name, uid string, version int) client.Object {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	deleted := func(object client.Object) client.Object {
		if rapid.IntRange(0, 4).Draw(t, "terminating") == 0 {
			object.SetDeletionTimestamp(&metav1.Time{Time: newClock().now})
		}
		return object
	}
	switch kind {
	case "pod":
		return deleted(drawPod(t, name, uid, version))
	case "node":
		node := testNode(name, uid, version, pick("provider of node", "", "p0", "p1", "p2"))
		node.Labels["extra"] = pick("extra", "a", "b")
		node.Labels[corev1.LabelInstanceTypeStable] = pick("type of node", "small", "large")
		if pool := pick("pool of node", "", "pool-0", "pool-1"); pool != "" {
			node.Labels[karpenterv1.NodePoolLabelKey] = pool
		}
		return deleted(node)
	case "claim":
		conditions := [][]string{nil, {"Launched"}, {"Launched", "Registered", "Initialized"}}[rapid.IntRange(0,
			2).Draw(t, "conditions")]
		claim := testClaim(name, uid, version, pick("pool of claim", "pool-0", "pool-1", ""),
			pick("provider of claim", "", "p0", "p1", "p2"), conditions...)
		claim.Status.NodeName = pick("node of claim", "", "node-0", "node-1", "node-2")
		claim.Spec.NodeClassRef.Kind = pick("class of claim", testClass().Kind, testClass().Kind, "OtherNodeClass")
		return deleted(claim)
	case "pool":
		pool := testPool(name, version)
		pool.UID = (&corev1.Pod{ObjectMeta: meta("", "", uid, 0)}).UID
		pool.Spec.Weight = new(int32(rapid.IntRange(1, 2).Draw(t, "weight")))
		pool.Spec.Template.Spec.NodeClassRef.Kind = pick("class of pool", testClass().Kind, testClass().Kind,
			"OtherNodeClass")
		if pick("hard", "no", "yes") == "yes" {
			pool.Spec.HardLimits = karpenterv1.Limits(quantities("nodes", "3"))
		}
		if pick("quiet", "30s", "Never") == "Never" {
			pool.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{}
		}
		return deleted(pool)
	case "overlay":
		return testOverlay(name, uid, version, pick("overlaid price", "", "1", "2"),
			pick("overlaid amount", "", "1", "2"), pick("overlaid", "small", "large", "pool-0"))
	case "daemon":
		set := testDaemon(name, version)
		set.Namespace = "shop" // where the pods are
		set.Annotations = map[string]string{"deprecated.daemonset.template.generation": pick("generation", "1", "2",
			"")}
		if pick("class of runtime", "", "runtimeclass-0") != "" {
			set.Spec.Template.Spec.RuntimeClassName = new("runtimeclass-0")
		}
		set.UID = (&corev1.Pod{ObjectMeta: meta("", "", uid, 0)}).UID
		set.Spec.Template.Spec.Containers[0].Resources.Requests = quantities("cpu", pick("daemon cpu", "1", "2"))
		return set
	case "limitrange":
		return testLimitRange(name, uid, version, pick("given memory", "1Gi", "2Gi"))
	case "runtimeclass":
		return testRuntimeClass(name, uid, version, pick("overhead", "1", "2"))
	case "volumeclaim":
		claim := testVolumeClaim(name, uid, version, pick("volume of claim", "", "volume-0", "volume-1"),
			pick("class of claim", "class-0", "class-1"))
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{
			corev1.PersistentVolumeAccessMode(pick("mode", "ReadWriteOnce", "ReadWriteOncePod")),
		}
		return claim
	case "service":
		return &corev1.Service{ObjectMeta: meta("shop", name, uid, version),
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": pick("served", "web", "other")}}}
	case "replicaset":
		return &appsv1.ReplicaSet{ObjectMeta: meta("shop", name, uid, version), Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"app": "web", "hash": pick("hash", "a", "b")},
			},
		}}
	case "volume":
		volume := testVolume(name, uid, version, pick("zone of volume", "a", "b"), pick("driver", "ebs", "nfs"))
		volume.Spec.StorageClassName = pick("class of volume", "class-0", "class-1")
		if claim := pick("volume for", "", "volumeclaim-0", "volumeclaim-1"); claim != "" {
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim}
		}
		return volume
	case "class":
		return testClassOfVolumes(name, uid, version, pick("zone of class", "a", "b"),
			pick("provisioner", "ebs", "nfs"))
	case "pdb":
		pdb := testPDB(name, version, rapid.Int32Range(0, 1).Draw(t, "allowed"), pick("guarded", "web", "other"))
		pdb.UID = (&corev1.Pod{ObjectMeta: meta("", "", uid, 0)}).UID
		pdb.Status.CurrentHealthy = rapid.Int32Range(0, 1).Draw(t, "healthy")
		return pdb
	case "attachment":
		return testAttachment(name, uid, version, pick("attached to", "node-0", "node-1"),
			pick("attached volume", "volume-0", "volume-1"), pick("attacher", "ebs", "nfs"))
	case "csinode":
		return testCSINode(strings.Replace(name, "csinode", "node", 1), uid, version,
			pick("limited", "ebs", "nfs", ""), rapid.Int32Range(0, 2).Draw(t, "limit"))
	}
	namespace := &corev1.Namespace{ObjectMeta: meta("", name, uid, version)}
	namespace.Labels = map[string]string{"team": pick("team", "a", "b")}
	return namespace
}

func told(c *clock, events []event) *Store {
	s := New(Config{Now: c.Now, PromiseTTL: time.Minute, VolumeMemory: -1, Fleet: byKind{},
		DefaultSpread: []corev1.TopologySpreadConstraint{
			{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule},
		}})
	_ = s.SetCatalog(testClass(), testCatalog(10))
	for _, e := range events {
		e.tell(s)
	}
	return s
}

// The same events in any order, any of them several times, give the same picture; and it is the picture that a store
// shows to which only what is left was told. Snapshots are taken on the way, so that what they cache is tested too.
func TestOrderAndRepetitionOfEventsDoNotMatter(t *testing.T) { // P-20
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, h := newClock(), drawHistory(t)
		scratch := told(c, nil)
		for _, name := range slices.Sorted(maps.Keys(h.alive)) {
			_ = scratch.Apply(h.alive[name])
		}
		want := picture(scratch.Snapshot())

		inOrder := told(c, nil)
		for _, e := range h.events {
			e.tell(inOrder)
			checkCanonical(t, inOrder.Snapshot())
		}
		if got := picture(inOrder.Snapshot()); got != want {
			t.Fatalf("step by step\n%s\nfrom scratch\n%s", got, want)
		}
		repeated := slices.Concat(h.events, rapid.SliceOfN(rapid.SampledFrom(h.events), 0, 10).Draw(t, "again"))
		shuffled := told(c, nil)
		for i, e := range rapid.Permutation(repeated).Draw(t, "order") {
			e.tell(shuffled)
			if i%5 == 0 {
				checkCanonical(t, shuffled.Snapshot())
			}
		}
		if got := picture(shuffled.Snapshot()); got != want {
			t.Fatalf("in another order\n%s\nfrom scratch\n%s", got, want)
		}
		for _, pool := range []string{"pool-0", "pool-1"} {
			if a, b := shuffled.Usage(pool), scratch.Usage(pool); a.Nodes != b.Nodes ||
				!maps.Equal(byName(shuffled, a.Capacity), byName(scratch, b.Capacity)) {
				t.Fatalf("usage of %s is %v, from scratch %v", pool, a, b)
			}
		}
		if a, b := shuffled.shapes.Len(), scratch.shapes.Len(); a != b {
			t.Fatalf("%d shapes are in use, from scratch %d", a, b)
		}
	})
}

// byName returns the amounts of a store's vector by the name of the resource: each store has met them in its own
// order.
func byName(s *Store, v resources.Vector) map[string]int64 {
	amounts := map[string]int64{}
	for i, name := range s.space.Names() {
		if v.At(i) != 0 {
			amounts[name] = v.At(i)
		}
	}
	return amounts
}

// checkCanonical compares the snapshot with one whose lists cluster.New has sorted, and looks for claims counted
// twice.
func checkCanonical(t *rapid.T, s *cluster.Snapshot) {
	if got, want := picture(s), picture(cluster.New(*s)); got != want {
		t.Fatalf("the lists are not in order:\n%s\nwant\n%s", got, want)
	}
	claims := map[string]bool{}
	for _, n := range s.Nodes {
		if n.Claim != "" && claims[n.Claim] {
			t.Fatalf("claim %s stands for two machines:\n%s", n.Claim, picture(s))
		}
		claims[n.Claim] = true
	}
}

// When nothing is left, nothing is kept but the graves.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		s := told(newClock(), h.events)
		for _, name := range slices.Sorted(maps.Keys(h.alive)) {
			s.Remove(h.alive[name])
		}
		if got := picture(s.Snapshot()); got != "" {
			t.Fatalf("the picture of nothing is\n%s", got)
		}
		counts := []int{len(s.pods), len(s.nodes), len(s.claims), len(s.pools), len(s.others), len(s.daemons),
			len(s.loads), len(s.usage), len(s.namespaces), len(s.links.claimsByNode), len(s.links.claimsByProvider),
			len(s.links.nodesByProvider), len(s.promised),
			len(s.protected), len(s.ending), len(s.nominations.byPod), len(s.nominations.byTarget), s.shapes.Len(),
			len(s.machines.gone),
			len(s.machines.added), len(s.volumes.known.Claims), len(s.volumes.known.Volumes),
			len(s.volumes.known.Classes),
			len(s.volumes.known.Limited), len(s.volumes.known.Reserved), len(s.chosen),
			len(s.volumes.seen), len(s.volumes.podsByClaim),
			len(s.volumes.claimsByVolume), len(s.volumes.claimsByClass),
			len(s.volumes.nodes), len(s.volumes.limiting), len(s.volumes.attachments),
			len(s.volumes.attachmentsByNode),
			len(s.volumes.known.Most), len(s.volumes.attaching.present), len(s.volumes.attaching.remembered),
			len(s.volumes.attaching.byType), len(s.volumes.attaching.stated), len(s.volumes.attaching.counts),
			len(s.volumes.attaching.ours),
			len(s.overlays.known), len(s.overlays.inEffect), len(s.overlays.verdicts),
			len(s.workloads.seen), len(s.workloads.podsByOwner), len(s.workloads.known.Services),
			len(s.workloads.known.Owners),
			len(s.pdbs.byNamespace), len(s.running.shapes), len(s.running.movable),
			len(s.admission.seen), len(s.admission.limits), len(s.admission.classes), len(s.admission.pods)}
		for i, count := range counts {
			if count != 0 {
				t.Fatalf("map %d still holds %d entries", i, count)
			}
		}
	})
}
