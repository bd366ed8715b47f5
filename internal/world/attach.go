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
	used = l.used
	if len(s.volumes.known.Limited) > 0 {
		used, attached = s.withAttached(node, l)
	}
	return s.withKept(node, used), attached
}

// withAttached returns what the pods of a node use, with its volumes in place of what each pod asks for, and these
// volumes.
func (s *Store) withAttached(node *cluster.Node, l *load) (used resources.Vector, attached []string) {
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
	used = slices.Clone(l.used)
	for _, driver := range s.volumes.known.Limited {
		if component := s.space.Index(translate.AttachResource(driver)); used.At(component) != counts[driver] {
			used = used.With(component, counts[driver])
		}
	}
	return used, attached
}

// reviseUsed updates a node after a change of its attached volumes, or of the pods that kube-scheduler has chosen it
// for.
func (s *Store) reviseUsed(node string) {
	e := s.nodes[node]
	if e == nil || e.value == nil {
		return
	}
	used, attached := s.usedOn(e.value, s.loadOf(node))
	coming := s.comingTo(node)
	if used.Equal(e.value.Used) && slices.Equal(attached, e.value.Attached) && slices.Equal(coming, e.value.Coming) {
		return
	}
	value := *e.value
	value.Used, value.Attached, value.Coming = used, attached, coming
	s.machines.replace(e.value, &value)
	e.value = &value
	s.changed()
}

// attaching is how many volumes of each CSI driver nodes take, for drivers of which only nodes say so (P-07). It
// covers drivers that a node with a NodeClaim names: nodes of other programs may be machines of another kind, or
// attach none at all.
type attaching struct {
	// stated is what each node adds to counts and ours, by name of the node: one that changes costs only itself
	stated map[string]statement
	// counts is how many nodes state a number, and ours how many with a NodeClaim name a driver
	counts map[attachKey]map[int64]int
	ours   map[string]int
	// of the existing nodes: the highest number in counts, for drivers in ours
	present    map[attachKey]int64
	remembered map[attachKey]rememberedMost
	// byType is what both say of instance types. stale means that catalogues were not yet rebuilt with it.
	byType map[attachKey]int64
	stale  bool
}

func newAttaching() attaching {
	return attaching{stated: map[string]statement{}, counts: map[attachKey]map[int64]int{}, ours: map[string]int{},
		present: map[attachKey]int64{}, remembered: map[attachKey]rememberedMost{}}
}

// attachKey is a driver on nodes of an instance type, "" for those of all types.
type attachKey struct{ driver, instanceType string }

// statement is what a node says: how many volumes it takes of each driver that it names, translate.UnlimitedVolumes
// where it states no limit.
type statement struct {
	limits       map[string]int64
	ours         bool   // it has a NodeClaim
	instanceType string // of one that has
}

func (a statement) equal(b statement) bool {
	return a.ours == b.ours && a.instanceType == b.instanceType && maps.Equal(a.limits, b.limits)
}

// keys returns what the node counts for with a driver.
func (a statement) keys(driver string) []attachKey {
	if !a.ours {
		return []attachKey{{driver: driver}}
	}
	return []attachKey{{driver: driver}, {driver, a.instanceType}}
}

// statementOf returns what a node says now; nothing if there is no CSINode.
func (s *Store) statementOf(name string) (says statement) {
	object := s.volumes.nodes[name]
	if object == nil || len(object.Spec.Drivers) == 0 {
		return statement{}
	}
	if e := s.nodes[name]; e != nil && launched(e.value) {
		says.ours, says.instanceType = true, e.value.InstanceType
	}
	says.limits = translate.AttachLimits(object)
	for _, driver := range object.Spec.Drivers {
		if _, stated := says.limits[driver.Name]; !stated {
			says.limits[driver.Name] = translate.UnlimitedVolumes
		}
	}
	return says
}

// count adds a node's statement to the counts (by is 1) or takes it out (-1), and notes what it concerns.
func (a *attaching) count(says statement, by int, concerns map[attachKey]bool) {
	for driver, limit := range says.limits {
		if says.ours {
			if a.ours[driver] += by; a.ours[driver] == 0 {
				delete(a.ours, driver)
			}
		}
		for _, key := range says.keys(driver) {
			concerns[key] = true
			of := a.counts[key]
			if of == nil {
				of = map[int64]int{}
				a.counts[key] = of
			}
			if of[limit] += by; of[limit] == 0 {
				delete(of, limit)
			}
			if len(of) == 0 {
				delete(a.counts, key)
			}
		}
	}
}

// most returns the highest number that nodes state; false if none of ours names the driver.
func (a *attaching) most(key attachKey) (most int64, stated bool) {
	if a.ours[key.driver] == 0 || len(a.counts[key]) == 0 {
		return 0, false
	}
	return slices.Max(slices.Collect(maps.Keys(a.counts[key]))), true
}

// rememberedMost is what a node stated, and when it was gone.
type rememberedMost struct {
	count int64
	gone  time.Time
}

// reviseAttaching updates attaching after a change of a node or its CSINode.
func (s *Store) reviseAttaching(node string) {
	a := &s.volumes.attaching
	was, is := a.stated[node], s.statementOf(node)
	if was.equal(is) { // nearly always
		return
	}
	if a.stated[node] = is; len(is.limits) == 0 {
		delete(a.stated, node)
	}
	concerns := map[attachKey]bool{}
	a.count(was, -1, concerns)
	a.count(is, 1, concerns)
	now, changes := s.config.Now(), false
	for key := range concerns {
		before, known := a.present[key]
		states, stated := a.most(key)
		if known == stated && before == states {
			continue
		}
		changes = true
		if a.present[key] = states; !stated {
			delete(a.present, key)
		}
		if known && (!stated || states < before) && s.config.VolumeMemory > 0 {
			a.remembered[key] = rememberedMost{count: before, gone: now}
			s.changed() // a snapshot that is out says for how long it holds
		}
	}
	if changes {
		s.forgetAttaching(now)
		s.setAttaching()
	}
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
