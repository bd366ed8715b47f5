package world

import (
	"maps"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// DefaultVolumeMemory is longer than a node lives that could not attach the volumes of the pod it was launched for.
// Without this memory the next such node would be launched as soon as the first is gone.
const DefaultVolumeMemory = time.Hour

// volumeMemories is how many times longer than VolumeMemory the Store remembers an instance type that has no node,
// while nodes of other types have the driver. Once it forgets the type, consolidation tries it again and moves pods in
// vain. If no node has the driver, nothing can be moved, and waiting pods should not wait longer.
const volumeMemories = 24

// applyAttachment notes that a volume is attached to a node or will be, or with gone that it no longer is. The volume
// counts there whether a pod uses it or not: kube-scheduler counts it too.
func (s *Store) applyAttachment(object *storagev1.VolumeAttachment, gone bool) {
	known := s.volumes.attachments[object.Name]
	if gone && !s.discarded(kindAttachment, object) || !gone && !s.stored(kindAttachment, object) {
		return
	}
	delete(s.volumes.attachments, object.Name)
	s.volumes.attachmentsByNode.remove(known.node, object.Name)
	s.volumes.attachmentsByVolume.remove(known.volume.Name(), object.Name)
	fresh := attachment{}
	if source := object.Spec.Source.PersistentVolumeName; !gone && source != nil {
		fresh = attachment{node: object.Spec.NodeName, volume: translate.AttachedVolume{Driver: object.Spec.Attacher,
			Volume: *source}}
		s.volumes.attachments[object.Name] = fresh
		s.volumes.attachmentsByNode.add(fresh.node, object.Name)
		s.volumes.attachmentsByVolume.add(fresh.volume.Name(), object.Name)
	}
	for _, node := range []string{known.node, fresh.node} {
		s.reviseUsed(node)
	}
	for _, volume := range []translate.AttachedVolume{known.volume, fresh.volume} {
		if slices.Contains(s.volumes.known.Limited, volume.Driver) {
			s.reviseClaims(s.volumes.claimsByVolume[volume.Volume])
		}
	}
}

// attachment is what a VolumeAttachment says.
type attachment struct {
	node   string
	volume translate.AttachedVolume
}

// usedOn returns the resources that the pods of a node use or kube-scheduler keeps for others, and its volumes of
// limited drivers, sorted. A volume counts once, however many pods use it. While it is attached, it counts even if no
// pod uses it.
func (s *Store) usedOn(node *cluster.Node, l *load) (used resources.Vector, attached []string) {
	if used = s.withKept(node, l.used); len(s.volumes.known.Limited) == 0 {
		return used, nil
	}
	volumes := map[translate.AttachedVolume]bool{}
	for _, pod := range l.pods {
		if e := s.pods[podKey{pod.Namespace, pod.Name}]; e != nil && e.object != nil {
			for _, v := range s.volumes.known.AttachedBy(e.object) {
				volumes[v] = true
			}
		}
	}
	for _, name := range s.volumes.attachmentsByNode[node.Name] {
		volumes[s.volumes.attachments[name].volume] = true
	}
	counts := map[string]int64{}
	for v := range volumes {
		counts[v.Driver]++
		if slices.Contains(s.volumes.known.Limited, v.Driver) {
			attached = append(attached, v.Name())
		}
	}
	slices.Sort(attached)
	used = slices.Clone(used)
	for _, driver := range s.volumes.known.Limited {
		if component := s.space.Index(translate.AttachResource(driver)); used.At(component) != counts[driver] {
			used = used.With(component, counts[driver])
		}
	}
	return used, attached
}

// reviseUsed updates a node after a change of its attached volumes.
func (s *Store) reviseUsed(node string) {
	e := s.nodes[node]
	if e == nil || e.value == nil {
		return
	}
	used, attached := s.usedOn(e.value, s.loadOf(node))
	if used.Equal(e.value.Used) && slices.Equal(attached, e.value.Attached) {
		return
	}
	value := *e.value
	value.Used, value.Attached = used, attached
	s.machines.replace(e.value, &value)
	e.value = &value
	s.changed()
}

// attaching is how many volumes of each CSI driver nodes take, for drivers of which only nodes say so (P-07). It
// covers drivers that a node with a NodeClaim names: nodes of other programs may be machines of another kind, or
// attach none at all.
type attaching struct {
	// of the existing nodes; translate.UnlimitedVolumes where one states no limit
	present    map[attachKey]int64
	remembered map[attachKey]rememberedMost
	// byType is what both say of instance types. stale means that catalogues were not yet rebuilt with it.
	byType map[attachKey]int64
	stale  bool
}

// attachKey is a driver on nodes of an instance type, "" for those of all types.
type attachKey struct{ driver, instanceType string }

// rememberedMost is what a node stated, and when it was gone.
type rememberedMost struct {
	count int64
	gone  time.Time
}

// reviseAttaching recomputes attaching after a node's CSINode has changed.
func (s *Store) reviseAttaching() {
	a := &s.volumes.attaching
	present, ours := map[attachKey]int64{}, map[string]bool{}
	for name, node := range s.volumes.nodes {
		e := s.nodes[name]
		limits := translate.AttachLimits(node)
		for _, driver := range node.Spec.Drivers {
			limit, stated := limits[driver.Name]
			if !stated {
				limit = translate.UnlimitedVolumes
			}
			keys := []attachKey{{driver: driver.Name}}
			if e != nil && launched(e.value) {
				ours[driver.Name] = true
				keys = append(keys, attachKey{driver.Name, e.value.InstanceType})
			}
			for _, key := range keys {
				present[key] = max(present[key], limit)
			}
		}
	}
	maps.DeleteFunc(present, func(key attachKey, _ int64) bool { return !ours[key.driver] })
	now := s.config.Now()
	if s.config.VolumeMemory > 0 {
		for key, count := range a.present {
			if states, known := present[key]; !known || states < count {
				a.remembered[key] = rememberedMost{count: count, gone: now}
				s.changed() // a snapshot that is out says for how long it holds
			}
		}
	}
	a.present = present
	s.forgetAttaching(now)
	s.setAttaching()
}

// launched reports whether a node has a NodeClaim of ours.
func launched(node *cluster.Node) bool { return node != nil && node.Claim != "" }

// setAttaching updates what the Store knows of attaching, and the pods with volumes if that changes. Drivers whose
// limits a provider states are left out: they need no guess.
func (s *Store) setAttaching() {
	a := &s.volumes.attaching
	all := map[attachKey]int64{}
	maps.Copy(all, a.present)
	for key, r := range a.remembered {
		all[key] = max(all[key], r.count)
	}
	for _, o := range s.offers {
		for _, resource := range o.limited {
			stated := translate.DriverOf(resource, translate.AttachResource)
			maps.DeleteFunc(all, func(key attachKey, _ int64) bool { return key.driver == stated })
		}
	}
	most, byType := map[string]int64{}, map[attachKey]int64{}
	for key, count := range all {
		if key.instanceType == "" {
			most[key.driver] = count
		} else {
			byType[key] = count
		}
	}
	if !maps.Equal(byType, a.byType) {
		a.byType, a.stale = byType, true
		s.changed()
	}
	if maps.Equal(most, s.volumes.known.Most) {
		return
	}
	s.volumes.known.Most = most
	for _, e := range s.pods {
		if e.object != nil {
			s.revisePod(e)
		}
	}
}

// rebuildOffers rebuilds the catalogues when more is known of what instance types attach: new nodes of a type attach
// as many volumes as others of that type. Without it, if the provider says nothing, pods would be planned again and
// again onto fewer nodes than their volumes need.
func (s *Store) rebuildOffers() {
	if !s.volumes.attaching.stale {
		return
	}
	s.compileAll()
	t := newTouched()
	for name := range s.claims { // and its node, which may wait for its driver
		s.touchClaim(name, t)
	}
	s.refresh(t)
}

// attachesOf returns how many volumes nodes of a type take, by driver; nil where nothing is known.
func (s *Store) attachesOf(instanceType string) map[string]int64 {
	var all map[string]int64
	for key, most := range s.volumes.attaching.byType {
		if key.instanceType == instanceType {
			if all == nil {
				all = map[string]int64{}
			}
			all[key.driver] = most
		}
	}
	return all
}

// roomFor returns the room for volumes of a type that does not state this resource.
func (s *Store) roomFor(resource, instanceType string) int64 {
	// "" for another kind of room, of which the Store learns nothing
	driver := translate.DriverOf(resource, translate.AttachResource)
	if most, known := s.volumes.attaching.byType[attachKey{driver, instanceType}]; known {
		return most
	}
	return translate.UnlimitedOf(resource)
}

// forgetAttaching drops memories that have run out, and notes when the next one does.
func (s *Store) forgetAttaching(now time.Time) {
	a := &s.volumes.attaching
	for key, r := range a.remembered {
		until := r.gone.Add(s.config.VolumeMemory)
		_, stated := a.present[key]
		if _, inUse := a.present[attachKey{driver: key.driver}]; inUse && !stated {
			until = r.gone.Add(volumeMemories * s.config.VolumeMemory)
		}
		if now.Before(until) {
			s.wakeAt(until)
			continue
		}
		delete(a.remembered, key)
		s.setAttaching()
	}
}
