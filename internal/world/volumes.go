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

// volumes is what is known of storage, and which pods depend on it (P-07). A change of a claim reaches the pods that
// name it. One of a volume reaches the pods of the claim bound to it. One of a class reaches the pods of claims that
// still wait for a volume.
type volumes struct {
	known translate.Storage
	seen  map[string]*sighting // by kind, namespace and name
	// podsByClaim has names of pods in the claim's namespace; the others have claims as namespace/name.
	podsByClaim, claimsByVolume, claimsByClass index

	nodes map[string]*storagev1.CSINode // by name
	// limiting counts the nodes and node classes that state a limit of a CSI driver.
	limiting  map[string]int
	attaching attaching

	attachments       map[string]attachment // by name of the VolumeAttachment
	attachmentsByNode index
	// attachmentsByVolume holds names by translate.AttachedVolume.Name.
	attachmentsByVolume index
}

func newVolumes() volumes {
	return volumes{
		known: translate.Storage{
			Claims: map[string]*corev1.PersistentVolumeClaim{}, Volumes: map[string]*corev1.PersistentVolume{},
			Classes: map[string]*storagev1.StorageClass{},
			Drivers: map[string]*storagev1.CSIDriver{}, Reserved: map[string][]string{},
		},
		seen: map[string]*sighting{}, podsByClaim: index{}, claimsByVolume: index{}, claimsByClass: index{},
		nodes: map[string]*storagev1.CSINode{}, limiting: map[string]int{},
		attaching:   newAttaching(),
		attachments: map[string]attachment{}, attachmentsByNode: index{}, attachmentsByVolume: index{},
	}
}

// stored decides on a new state of a storage object. kind distinguishes equal names.
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
	kindCSIDriver   = "CSIDriver"
	kindCapacity    = "CSIStorageCapacity"
	kindPDB         = "PodDisruptionBudget"
)

// putVolumeClaim stores a claim's state, nil when it is gone.
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
	s.reviseDaemonsOf(func(own []string) bool { return slices.Contains(own, key) })
}

func (s *Store) putVolume(name string, volume *corev1.PersistentVolume) {
	old := s.volumes.known.Volumes[name]
	reserved := s.reserve(old, volume)
	if volume == nil {
		delete(s.volumes.known.Volumes, name)
	} else {
		s.volumes.known.Volumes[name] = volume
	}
	s.listFree(name)
	s.reviseClaims(s.volumes.claimsByVolume[name])
	s.reviseClaims(reserved)
	bound := s.volumes.claimsByVolume[name]
	s.reviseDaemonsOf(func(own []string) bool {
		return slices.ContainsFunc(own, func(claim string) bool {
			return slices.Contains(bound, claim) ||
				slices.Contains(reserved, claim)
		})
	})
}

func (s *Store) putClass(name string, class *storagev1.StorageClass) {
	if s.decides(s.volumes.known.Classes[name]) || s.decides(class) {
		s.storageChanged()
	}
	if class == nil {
		delete(s.volumes.known.Classes, name)
	} else {
		s.volumes.known.Classes[name] = class
	}
	s.reviseClaims(s.volumes.claimsByClass[name])
	s.reviseDaemonsOf(func([]string) bool { return true })
}

// putCSINode stores a node's CSINode, nil when it is gone.
func (s *Store) putCSINode(name string, node *storagev1.CSINode) {
	old, fresh := attachResources(s.volumes.nodes[name]), attachResources(node)
	if node == nil {
		delete(s.volumes.nodes, name)
	} else {
		s.volumes.nodes[name] = node
	}
	s.reviseAttaching(name)
	if s.limit(old, fresh) {
		s.limitsChanged()
		return
	}
	t := newTouched()
	s.touchNode(name, t)
	s.refresh(t)
}

// limit replaces the volume resources that one object limits (translate.AttachResource, translate.CapacityResource).
// It reports whether the set of limited resources changes by that.
func (s *Store) limit(old, fresh []string) bool {
	counts := s.volumes.limiting
	before := len(counts)
	changed := false
	for _, resource := range fresh {
		changed = changed || counts[resource] == 0
		counts[resource]++
	}
	for _, resource := range old {
		if counts[resource]--; counts[resource] == 0 {
			delete(counts, resource)
		}
	}
	if !changed && len(counts) == before {
		return false
	}
	known := &s.volumes.known
	was := slices.Concat(known.Limited, []string{""}, known.Stated)
	known.Limited, known.Stated = nil, nil
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		if driver := translate.DriverOf(resource, translate.AttachResource); driver != "" {
			known.Limited = append(known.Limited, driver)
		}
		if driver := translate.DriverOf(resource, translate.CapacityResource); driver != "" {
			known.Stated = append(known.Stated, driver)
		}
	}
	return !slices.Equal(was, slices.Concat(known.Limited, []string{""}, known.Stated))
}

// attachResources returns the volume resources that a node limits.
func attachResources(node *storagev1.CSINode) []string {
	var list []string
	for driver := range translate.AttachLimits(node) {
		list = append(list, translate.AttachResource(driver))
	}
	return list
}

// limitsChanged updates everything after a change of the limited drivers: volumes of a driver count on all machines or
// on none. This happens when the first node with the driver comes.
func (s *Store) limitsChanged() {
	s.compileAll()
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
	s.reviseDaemonsOf(func([]string) bool { return true })
}

// compileAll rebuilds all offers, and marks all pools as changed.
func (s *Store) compileAll() {
	s.volumes.attaching.stale = false
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
}

// compile makes an offer of a catalogue. A type that does not state a limited driver attaches as many volumes as nodes
// of that type do, or without limit.
func (s *Store) compile(c catalog.Catalog) *offer {
	x := catalog.NewIndex(c, s.space)
	stated := map[string]resources.Amounts{}
	for _, t := range c.Types {
		stated[t.Name] = t.Capacity
	}
	for _, name := range slices.Sorted(maps.Keys(s.volumes.limiting)) {
		for i := range x.Types {
			if _, limited := stated[x.Types[i].Name][name]; !limited {
				x.Types[i].Allocatable = x.Types[i].Allocatable.With(s.space.Index(name),
					s.roomFor(name, x.Types[i].Name))
			}
		}
	}
	if len(s.volumes.limiting) > 0 {
		x.Room = catalog.NewThresholds(len(x.Offers), func(i int) resources.Vector {
			return x.Types[x.Offers[i].Type].Allocatable
		})
	}
	return &offer{catalog: c, index: x, prospects: map[string]*translate.Prospect{}, limited: limitedBy(c)}
}

// limitedBy returns the resources in which the types of a catalogue state limits for volumes, sorted.
func limitedBy(c catalog.Catalog) []string {
	limited := map[string]bool{}
	for _, t := range c.Types {
		for _, resource := range translate.VolumeResources(t.Capacity) {
			limited[resource] = true
		}
	}
	return slices.Sorted(maps.Keys(limited))
}

// linkPod keeps the object of a pod with volumes, or of one that default constraints may spread, so that it can be
// revised when those change. pod is nil when it is gone.
func (s *Store) linkPod(e *podEntry, pod *corev1.Pod) {
	old := e.object
	defer func() { s.linkWorkload(e, old, pod) }()
	had := map[string]int{}
	note := func(claim string) {
		if _, noted := had[claim]; !noted {
			had[claim] = len(s.volumes.podsByClaim[claim])
		}
	}
	defer func() {
		for _, claim := range slices.Sorted(maps.Keys(had)) {
			s.joinedOrAlone(claim, had[claim])
		}
	}()
	if old != nil {
		for _, key := range translate.VolumeClaims(old) {
			note(key)
			s.volumes.podsByClaim.remove(key, old.Name)
		}
		e.object = nil
	}
	if pod == nil {
		return
	}
	for _, key := range translate.VolumeClaims(pod) {
		note(key)
		s.volumes.podsByClaim.add(key, pod.Name)
		e.object = pod
	}
}

// reviseClaims revises the pods that use any of the claims.
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

// revisePod gives a pod the shape that follows from its volumes and other objects now.
func (s *Store) revisePod(e *podEntry) {
	fresh, _ := s.translatePod(e.object) // the error was reported when the pod came
	s.derivePod(e, func(pod *cluster.Pod) { pod.Shape = fresh.Shape })
	s.reviseUsed(e.value.Node) // its volumes may be others now, although their number is the same
}

// addRivals blocks a pod that wants a claim which only one pod at a time may have, if another pod has it. Among pods
// that wait for such a claim, the first by name is planned for.
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

// reviseRivals revises the pods that share a claim with this pod, if only one pod may have that claim.
func (s *Store) reviseRivals(pod *corev1.Pod) {
	for _, key := range translate.VolumeClaims(pod) {
		if translate.Exclusive(s.volumes.known.Claims[key]) {
			s.reviseClaims([]string{key})
		}
	}
}

// translatePod converts a pod, without its promise. The shape is not interned yet.
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
