package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file notices that the pods of a DaemonSet request different amounts on different nodes (K-33): a vertical
// autoscaler sets them, somebody resizes them in place, or a webhook looks at the node. Then the newest pod does not
// show what comes on a node of another kind. Everything is read from live pods, so nothing is lost with the process.
//
// Usually all pods of a set request the same. The Store counts the pods of each amount as they come and go. Of sets
// with more than one amount it keeps all pods by place and age, and a snapshot looks at those that changed.

// lastPods is how many pods of a DaemonSet count on nodes of one kind. The newest count, since amounts change with
// time.
const lastPods = 20

// countSize counts the entry's pod by its requests, among the pods of its DaemonSet. pod is nil if it no longer
// counts. A change must be followed by reviseSample.
func (s *Store) countSize(e *podEntry, set string, pod *corev1.Pod) {
	size := ""
	if pod != nil {
		size = sizeOf(translate.Requests(s.space, pod))
	}
	if size == e.size {
		return
	}
	sizes := s.admission.sizes[set]
	if sizes == nil {
		sizes = map[string]int{}
		s.admission.sizes[set] = sizes
	}
	if e.size != "" {
		if sizes[e.size]--; sizes[e.size] == 0 {
			delete(sizes, e.size)
		}
	}
	if e.size = size; size != "" {
		sizes[size]++
	}
	if len(sizes) == 0 {
		delete(s.admission.sizes, set)
	}
}

// sizeOf returns a pod's requests as a text.
func sizeOf(v resources.Vector) string {
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return fmt.Sprint([]int64(v))
}

// lookAtSizes makes the next snapshot examine a set again, if its pods differ or did before.
func (s *Store) lookAtSizes(name string) {
	e := s.daemons[name]
	if e == nil || e.stale {
		return
	}
	if len(s.admission.sizes[name]) < 2 && e.value.Seen == nil {
		e.samples = nil
		return
	}
	e.stale = true
	s.daemonsChanged()
}

// sizesMoved notes that a node has come, gone, or changed its pool or type. Either may be nil.
func (s *Store) sizesMoved(old, fresh *cluster.Node) {
	if old != nil && fresh != nil && old.Pool == fresh.Pool && old.InstanceType == fresh.InstanceType {
		return
	}
	node := cmp.Or(fresh, old).Name
	for name := range s.admission.sizes {
		e := s.daemons[name]
		if e == nil || e.samples == nil {
			continue
		}
		for _, pod := range e.samples.byNode[node] {
			s.reviseSample(name, pod)
		}
	}
}

// Learn stores what a DaemonSet was found to request on new nodes of a pool (K-34), nil to forget it. It holds until
// the template changes.
func (s *Store) Learn(daemon, pool string, requests resources.Vector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.daemons[daemon]
	if e == nil {
		return
	}
	list := slices.DeleteFunc(slices.Clone(e.value.Learnt), func(l cluster.Seen) bool { return l.Pool == pool })
	if requests != nil {
		list = append(list, cluster.Seen{Pool: pool, Requests: requests})
	}
	slices.SortFunc(list, func(a, b cluster.Seen) int { return strings.Compare(a.Pool, b.Pool) })
	e.value.Learnt = list
	s.daemonsChanged()
}

// place is where pods of a DaemonSet are: anywhere, on nodes of a pool, or on nodes of one of its instance types.
type place struct{ pool, instanceType string }

// sample is a pod of a DaemonSet, as far as it shows what new pods request.
type sample struct {
	name    string
	created time.Time
	want    resources.Vector
	size    string
	node    string
	at      []place
}

func newestFirst(a, b *sample) int {
	return cmp.Or(b.created.Compare(a.created), strings.Compare(b.name, a.name))
}

// samples are the pods of a DaemonSet whose pods differ. In a roll-out of nodes they change with each node, so a
// change must not cost a look at all of them.
type samples struct {
	changed map[string]struct{} // names of pods that must be looked at again
	byName  map[string]*sample
	byNode  index // names of pods
	at      map[place][]*sample
	sizes   map[string]int             // how many ask for each amount
	asked   map[place]resources.Vector // what the newest at a place request; a missing one must be found anew
}

// samplesOf returns samples that have to look at all these pods.
func samplesOf(pods map[string]*corev1.Pod) *samples {
	x := &samples{changed: map[string]struct{}{}, byName: map[string]*sample{}, byNode: index{},
		at: map[place][]*sample{}, sizes: map[string]int{}, asked: map[place]resources.Vector{}}
	for name := range pods {
		x.changed[name] = struct{}{}
	}
	return x
}

func (x *samples) add(one *sample) {
	x.byName[one.name] = one
	x.byNode.add(one.node, one.name)
	x.sizes[one.size]++
	for _, at := range one.at {
		i, _ := slices.BinarySearchFunc(x.at[at], one, newestFirst)
		x.at[at] = slices.Insert(x.at[at], i, one)
		delete(x.asked, at)
	}
}

func (x *samples) remove(name string) {
	one := x.byName[name]
	if one == nil {
		return
	}
	delete(x.byName, name)
	x.byNode.remove(one.node, name)
	if x.sizes[one.size]--; x.sizes[one.size] == 0 {
		delete(x.sizes, one.size)
	}
	for _, at := range one.at {
		i, _ := slices.BinarySearchFunc(x.at[at], one, newestFirst)
		if x.at[at] = slices.Delete(x.at[at], i, i+1); len(x.at[at]) == 0 {
			delete(x.at, at)
		}
		delete(x.asked, at)
	}
}

// reviseSample makes the next snapshot look again at one pod of a set.
func (s *Store) reviseSample(set, pod string) {
	if e := s.daemons[set]; e != nil && e.samples != nil {
		e.samples.changed[pod] = struct{}{}
	}
	s.lookAtSizes(set)
}

// sameSample reports whether two states of a pod that request the same count in the same places.
func sameSample(a, b *corev1.Pod) bool {
	return translate.DaemonNode(a) == translate.DaemonNode(b) && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, func(a, b metav1.OwnerReference) bool {
			return a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
		})
}

// sampleOf returns a pod as a sample of its set; nil if it does not count. Pods of an older template do not: new pods
// come from the current one.
func (s *Store) sampleOf(set *appsv1.DaemonSet, pod *corev1.Pod) *sample {
	if pod == nil || !ownedBySet(pod, set) || !translate.OfTemplate(set, pod) {
		return nil
	}
	want := translate.Requests(s.space, pod)
	one := &sample{name: pod.Name, created: pod.CreationTimestamp.Time, want: want, size: sizeOf(want),
		node: translate.DaemonNode(pod), at: []place{{}}}
	if node := s.nodes[one.node]; node != nil && node.value != nil && node.value.Pool != "" {
		one.at = append(one.at, place{pool: node.value.Pool})
		if node.value.InstanceType != "" {
			one.at = append(one.at, place{node.value.Pool, node.value.InstanceType})
		}
	}
	return one
}

// seenOf returns what the pods of a set request on nodes of each pool and instance type, nil when all request the
// same.
func (s *Store) seenOf(e *daemonEntry) []cluster.Seen {
	name := e.object.Namespace + "/" + e.object.Name
	if len(s.admission.sizes[name]) < 2 {
		e.samples = nil
		return nil
	}
	if e.samples == nil {
		e.samples = samplesOf(s.admission.pods[name])
	}
	x := e.samples
	var fresh []*sample
	for pod := range x.changed {
		x.remove(pod)
		if one := s.sampleOf(e.object, s.admission.pods[name][pod]); one != nil {
			fresh = append(fresh, one)
		}
	}
	clear(x.changed)
	slices.SortFunc(fresh, newestFirst) // so that the first look at all adds each at the end
	for _, one := range fresh {
		x.add(one)
	}
	if len(x.sizes) < 2 {
		return nil
	}
	return x.list()
}

// list returns what the newest pods request at each place.
func (x *samples) list() []cluster.Seen {
	for at, pods := range x.at {
		if x.asked[at] != nil {
			continue
		}
		var want resources.Vector
		for _, one := range pods[:min(len(pods), lastPods)] {
			want = want.Max(one.want)
		}
		x.asked[at] = want
	}
	var list []cluster.Seen
	for at, want := range x.asked {
		if at.instanceType != "" && want.Equal(x.asked[place{pool: at.pool}]) {
			continue // said of the pool
		}
		list = append(list, cluster.Seen{Pool: at.pool, Type: at.instanceType, Requests: want})
	}
	slices.SortFunc(list, func(a, b cluster.Seen) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Type, b.Type))
	})
	return list
}
