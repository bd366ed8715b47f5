package world

import (
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// volumes is what is known of storage, and which pods it concerns (P-07). A change reaches exactly those pods: a claim
// the pods that name it, a volume those of the claim bound to it, a class those of claims that still wait for a volume.
type volumes struct {
	known translate.Storage
	seen  map[string]*sighting // by kind, namespace and name
	// podsByClaim holds names of pods, which are in the claim's namespace; the others hold namespace/name of claims.
	podsByClaim, claimsByVolume, claimsByClass index

	nodes map[string]*storagev1.CSINode // by name
	// limiting counts the nodes and node classes that state a limit of a CSI driver.
	limiting  map[string]int
	attaching attaching

	attachments       map[string]attachment // by name of the VolumeAttachment
	attachmentsByNode index
}

func newVolumes() volumes {
	return volumes{
		known: translate.Storage{
			Claims: map[string]*corev1.PersistentVolumeClaim{}, Volumes: map[string]*corev1.PersistentVolume{}, Classes: map[string]*storagev1.StorageClass{},
		},
		seen: map[string]*sighting{}, podsByClaim: index{}, claimsByVolume: index{}, claimsByClass: index{},
		nodes: map[string]*storagev1.CSINode{}, limiting: map[string]int{}, attaching: attaching{remembered: map[string]rememberedMost{}},
		attachments: map[string]attachment{}, attachmentsByNode: index{},
	}
}

// stored decides on a new state of an object that belongs to storage; kind tells apart equal names.
func (s *Store) stored(kind string, obj client.Object) bool {
	key, fresh := kind+" "+objectKey(obj), sight(obj)
	if accepted, _ := s.accept(s.volumes.seen[key], fresh); !accepted {
		return false
	}
	s.volumes.seen[key] = &fresh
	return true
}

// discarded decides on a deletion.
func (s *Store) discarded(kind string, obj client.Object) bool {
	key := kind + " " + objectKey(obj)
	if !s.ends(s.volumes.seen[key], sight(obj)) {
		return false
	}
	delete(s.volumes.seen, key)
	return true
}

func objectKey(obj client.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// The kinds, as stored and discarded know them.
const (
	kindVolumeClaim = "PersistentVolumeClaim"
	kindVolume      = "PersistentVolume"
	kindClass       = "StorageClass"
	kindCSINode     = "CSINode"
	kindAttachment  = "VolumeAttachment"
	kindPDB         = "PodDisruptionBudget"
)

// putVolumeClaim takes in a claim's state, nil when it is gone.
func (s *Store) putVolumeClaim(key string, claim *corev1.PersistentVolumeClaim) {
	v := &s.volumes
	if old := v.known.Claims[key]; old != nil {
		v.claimsByVolume.remove(old.Spec.VolumeName, key)
		v.claimsByClass.remove(translate.VolumeClass(old), key)
		delete(v.known.Claims, key)
	}
	if claim != nil {
		v.known.Claims[key] = claim
		v.claimsByVolume.add(claim.Spec.VolumeName, key)
		if !translate.VolumeBound(claim) {
			v.claimsByClass.add(translate.VolumeClass(claim), key)
		}
	}
	s.reviseClaims([]string{key})
}

func (s *Store) putVolume(name string, volume *corev1.PersistentVolume) {
	if volume == nil {
		delete(s.volumes.known.Volumes, name)
	} else {
		s.volumes.known.Volumes[name] = volume
	}
	s.reviseClaims(s.volumes.claimsByVolume[name])
}

func (s *Store) putClass(name string, class *storagev1.StorageClass) {
	if class == nil {
		delete(s.volumes.known.Classes, name)
	} else {
		s.volumes.known.Classes[name] = class
	}
	s.reviseClaims(s.volumes.claimsByClass[name])
}

// putCSINode takes in what a node says of its volumes, nil when it is gone.
func (s *Store) putCSINode(name string, node *storagev1.CSINode) {
	old := slices.Sorted(maps.Keys(translate.AttachLimits(s.volumes.nodes[name])))
	fresh := slices.Sorted(maps.Keys(translate.AttachLimits(node)))
	if node == nil {
		delete(s.volumes.nodes, name)
	} else {
		s.volumes.nodes[name] = node
	}
	s.reviseAttaching()
	if s.limit(old, fresh) {
		s.limitsChanged()
		return
	}
	t := newTouched()
	s.touchNode(name, t)
	s.refresh(t)
}

// limit replaces what one object says of the drivers that are limited, and reports whether that makes a driver one of
// them or takes the last limit of one away.
func (s *Store) limit(old, fresh []string) bool {
	counts := s.volumes.limiting
	for _, driver := range fresh {
		counts[driver]++
	}
	for _, driver := range old {
		if counts[driver]--; counts[driver] == 0 {
			delete(counts, driver)
		}
	}
	limited := slices.Sorted(maps.Keys(counts))
	changed := !slices.Equal(limited, s.volumes.known.Limited)
	s.volumes.known.Limited = limited
	return changed
}

// limitsChanged carries a new set of limited drivers to everything: volumes of a driver count on all machines or on none.
// That happens when the first node with the driver comes.
func (s *Store) limitsChanged() {
	fresh := map[*offer]*offer{}
	for class, o := range s.offers {
		if fresh[o] == nil {
			fresh[o] = s.compile(o.catalog)
		}
		s.offers[class] = fresh[o]
	}
	for name := range s.pools {
		s.poolChanged(name)
	}
	t := newTouched()
	for name := range s.nodes {
		s.touchNode(name, t)
	}
	for name := range s.claims {
		s.touchClaim(name, t)
	}
	s.refresh(t)
	for _, e := range s.pods {
		if e.object != nil {
			s.revisePod(e)
		}
	}
}

// compile makes an offer of a catalogue. A type that says nothing of a limited driver has no limit of it.
func (s *Store) compile(c catalog.Catalog) *offer {
	x := catalog.NewIndex(c, s.space)
	stated := map[string]resources.Amounts{}
	for _, t := range c.Types {
		stated[t.Name] = t.Capacity
	}
	for _, driver := range s.volumes.known.Limited {
		name := translate.AttachResource(driver)
		for i := range x.Types {
			if _, limited := stated[x.Types[i].Name][name]; !limited {
				x.Types[i].Allocatable = x.Types[i].Allocatable.With(s.space.Index(name), translate.UnlimitedVolumes)
			}
		}
	}
	if len(s.volumes.known.Limited) > 0 {
		x.Room = catalog.NewThresholds(len(x.Offers), func(i int) resources.Vector { return x.Types[x.Offers[i].Type].Allocatable })
	}
	return &offer{catalog: c, index: x, prospects: map[string]*translate.Prospect{}, limited: limitedBy(c)}
}

// limitedBy returns the CSI drivers of which the types of a catalogue state limits, sorted.
func limitedBy(c catalog.Catalog) []string {
	drivers := map[string]bool{}
	for _, t := range c.Types {
		for _, driver := range translate.AttachLimited(t.Capacity) {
			drivers[driver] = true
		}
	}
	return slices.Sorted(maps.Keys(drivers))
}

// linkPod keeps the object of a pod with volumes, or of one that default constraints may spread, to be looked at again
// when those change; nil when the pod is gone.
func (s *Store) linkPod(e *podEntry, pod *corev1.Pod) {
	old := e.object
	defer func() { s.linkWorkload(e, old, pod) }()
	if old != nil {
		for _, key := range translate.VolumeClaims(old) {
			s.volumes.podsByClaim.remove(key, old.Name)
		}
		e.object = nil
	}
	if pod == nil {
		return
	}
	for _, key := range translate.VolumeClaims(pod) {
		s.volumes.podsByClaim.add(key, pod.Name)
		e.object = pod
	}
}

// reviseClaims looks again at the pods that use any of the claims.
func (s *Store) reviseClaims(keys []string) {
	for _, key := range keys {
		namespace, _, _ := strings.Cut(key, "/")
		for _, name := range s.volumes.podsByClaim[key] {
			if e := s.pods[podKey{namespace, name}]; e != nil && e.object != nil {
				s.revisePod(e)
			}
		}
	}
}

// revisePod gives a pod the shape that its volumes make it have now.
func (s *Store) revisePod(e *podEntry) {
	fresh, _ := s.translatePod(e.object) // the error was reported when the pod came
	s.derivePod(e, func(pod *cluster.Pod) { pod.Shape = fresh.Shape })
	s.reviseUsed(e.value.Node) // which volumes it has may be another matter now, although they are as many
}

// addRivals looks whether a pod wants a claim that another one has, of which only one pod at a time may have it: of pods
// that wait for it the first by name is planned for.
func (s *Store) addRivals(value *cluster.Pod, pod *corev1.Pod) {
	for _, key := range translate.VolumeClaims(pod) {
		if !translate.Exclusive(s.volumes.known.Claims[key]) {
			continue
		}
		holder := pod.Name
		for _, name := range s.volumes.podsByClaim[key] { // by name
			e := s.pods[podKey{pod.Namespace, name}]
			if e == nil || e.object == nil {
				continue
			}
			if e.object.Spec.NodeName != "" {
				holder = name
				break
			}
			holder = min(holder, name)
		}
		if holder != pod.Name && pod.Spec.NodeName == "" && value.Shape.Blocked == "" {
			translate.AddRival(value.Shape, key, pod.Namespace+"/"+holder)
		}
	}
}

// reviseRivals looks again at the pods that want a claim of the pod which only one of them may have.
func (s *Store) reviseRivals(pod *corev1.Pod) {
	for _, key := range translate.VolumeClaims(pod) {
		if translate.Exclusive(s.volumes.known.Claims[key]) {
			s.reviseClaims([]string{key})
		}
	}
}

// translatePod converts a pod as far as it can be without its promise. The shape is not interned yet.
func (s *Store) translatePod(pod *corev1.Pod) (*cluster.Pod, error) {
	value, err := translate.Pod(s.space, pod, s.config.Now())
	if s.config.Devices {
		translate.ResolveDevices(value, pod)
	}
	err = errors.Join(err, translate.AddVolumes(s.space, value, pod, s.volumes.known))
	s.addRivals(value, pod)
	translate.AddDefaultSpread(value.Shape, pod, s.config.DefaultSpread, s.workloads.known)
	if s.config.IgnorePreferences {
		value.Shape = value.Shape.WithoutWishes()
	}
	return value, err
}
