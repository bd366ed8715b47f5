package world

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file keeps what decides on volumes that do not exist yet (K-58, K-59): what drivers say of themselves, what
// capacity they have left, and which volumes are free.

// storage holds what this file keeps.
type storage struct {
	capacities map[string]*storagev1.CSIStorageCapacity // by namespace/name
	needed     []string                                 // CSI drivers without which pods are not bound, sorted
	// until when nodes are expected to publish more, by name
	fresh map[string]time.Time
	// What goes into snapshots; stale when a class or driver has changed, so that all of it must be rebuilt.
	stale bool
	left  *keyed[cluster.StorageCapacity]
	free  *keyed[cluster.FreeVolume]
}

func newStorage() storage {
	return storage{capacities: map[string]*storagev1.CSIStorageCapacity{}, fresh: map[string]time.Time{},
		left: newKeyed[cluster.StorageCapacity](), free: newKeyed[cluster.FreeVolume]()}
}

// putDriver stores a CSIDriver, nil when it is gone.
func (s *Store) putDriver(name string, driver *storagev1.CSIDriver) {
	old := s.volumes.known.Drivers[name]
	if driver == nil {
		delete(s.volumes.known.Drivers, name)
	} else {
		s.volumes.known.Drivers[name] = driver
	}
	if translate.Counts(old) == translate.Counts(driver) && translate.Needed(old) == translate.Needed(driver) {
		return
	}
	s.storageChanged()
	s.storage.needed = nil
	for _, each := range slices.Sorted(maps.Keys(s.volumes.known.Drivers)) {
		if translate.Needed(s.volumes.known.Drivers[each]) {
			s.storage.needed = append(s.storage.needed, each)
		}
	}
	t := newTouched()
	for node := range s.nodes {
		s.touchNode(node, t)
	}
	s.refresh(t)
	for _, e := range s.pods {
		if e.object != nil {
			s.revisePod(e)
		}
	}
}

// putCapacity stores what a driver has left, nil when the object is gone.
func (s *Store) putCapacity(key string, capacity *storagev1.CSIStorageCapacity) {
	if capacity == nil {
		delete(s.storage.capacities, key)
	} else {
		s.storage.capacities[key] = capacity
	}
	s.listCapacity(key)
}

// listCapacity brings one capacity in the list for snapshots up to date. It leaves out those that planning does not
// need.
func (s *Store) listCapacity(key string) {
	if s.storage.stale {
		return
	}
	var value *cluster.StorageCapacity
	if c := s.storage.capacities[key]; c != nil {
		value, _ = s.volumes.known.Capacity(c) // an error means that no node reaches it
	}
	if s.storage.left.put(key, value) {
		s.changed()
	}
}

// listFree brings one volume in the list for snapshots up to date. It leaves out those that are not free.
func (s *Store) listFree(name string) {
	if s.storage.stale {
		return
	}
	var value *cluster.FreeVolume
	if v := s.volumes.known.Volumes[name]; v != nil {
		value, _ = s.volumes.known.FreeVolume(v) // an error means that no node reaches it
	}
	if s.storage.free.put(name, value) {
		s.changed()
	}
}

// storageChanged notes that the storage lists of snapshots must be rebuilt.
func (s *Store) storageChanged() {
	s.storage.stale = true
	s.changed()
}

// rebuildStorage rebuilds the storage lists of snapshots, if a class or driver has changed.
func (s *Store) rebuildStorage() {
	if !s.storage.stale {
		return
	}
	s.storage.stale = false
	s.storage.left, s.storage.free = newKeyed[cluster.StorageCapacity](), newKeyed[cluster.FreeVolume]()
	for key := range s.storage.capacities {
		s.listCapacity(key)
	}
	for name := range s.volumes.known.Volumes {
		s.listFree(name)
	}
}

// reserve notes which claim a volume names, and returns the claims without a volume for which that may matter. old or
// fresh is nil if the volume was not there before, or is gone.
func (s *Store) reserve(old, fresh *corev1.PersistentVolume) (claims []string) {
	was, is, known := claimNamedBy(old), claimNamedBy(fresh), index(s.volumes.known.Reserved)
	if was != is && was != "" {
		known.remove(was, old.Name)
	}
	if was != is && is != "" {
		known.add(is, fresh.Name)
	}
	for _, key := range []string{was, is} {
		claim := s.volumes.known.Claims[key]
		if claim != nil && !translate.VolumeBound(claim) && !slices.Contains(claims, key) {
			claims = append(claims, key)
		}
	}
	return claims
}

// claimNamedBy returns the namespace/name of the claim that a volume names, whichever claim of that name it means; ""
// for none. volume may be nil.
func claimNamedBy(volume *corev1.PersistentVolume) string {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
}

// shared reports whether other pods than this one use a claim.
func (s *Store) shared(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(s.volumes.podsByClaim[claim], func(name string) bool { return name != pod.Name })
}

// elsewhere reports whether a node other than the pod's has a volume already.
func (s *Store) elsewhere(pod *corev1.Pod, volume translate.AttachedVolume) bool {
	return slices.ContainsFunc(s.volumes.attachmentsByVolume[volume.Name()], func(name string) bool {
		return s.volumes.attachments[name].node != pod.Spec.NodeName
	})
}

// joinedOrAlone revises the pods of a claim when it gets a second user or only one is left: whether a volume is shared
// decides how it counts. before is how many pods had the claim.
func (s *Store) joinedOrAlone(claim string, before int) {
	names := s.volumes.podsByClaim[claim]
	if before == len(names) || min(before, len(names)) > 1 || len(names) == 0 {
		return
	}
	namespace, _, _ := strings.Cut(claim, "/")
	for _, name := range names {
		// otherwise it is being linked now
		if e := s.pods[podKey{namespace, name}]; e != nil && e.object != nil && e.value != nil {
			s.revisePod(e)
		}
	}
}

// decides reports whether snapshots show capacities or free volumes of a class.
func (s *Store) decides(class *storagev1.StorageClass) bool {
	return class != nil && (translate.MakesNone(class) || translate.Counts(s.volumes.known.Drivers[class.Provisioner]))
}

// storageMatters reports whether planning needs to know the storage of nodes.
func (s *Store) storageMatters() bool {
	for _, driver := range s.volumes.known.Drivers {
		if translate.Counts(driver) {
			return true
		}
	}
	for _, e := range s.pools {
		if e.base != nil && e.base.LocalVolumes {
			return true
		}
	}
	return false
}

// refreshen notes on a node whether it is expected to publish more storage, and schedules the end of that.
func (s *Store) refreshen(value *cluster.Node, claim *claimEntry) {
	delete(s.storage.fresh, value.Name)
	if claim == nil || claim.object == nil || !value.Initialized || !s.storageMatters() {
		return
	}
	if until := translate.FreshUntil(claim.object); s.config.Now().Before(until) {
		value.Fresh = true
		s.storage.fresh[value.Name] = until
		s.wakeAt(until)
	}
}

// expireFresh refreshes nodes whose time to publish their storage has passed.
func (s *Store) expireFresh(now time.Time) {
	t := newTouched()
	for _, name := range slices.Sorted(maps.Keys(s.storage.fresh)) {
		if until := s.storage.fresh[name]; now.Before(until) {
			s.wakeAt(until)
			continue
		}
		delete(s.storage.fresh, name)
		s.touchNode(name, t)
	}
	s.refresh(t)
}
