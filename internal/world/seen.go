package world

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file notices that the pods of a DaemonSet request different amounts on different nodes (K-33): a vertical
// autoscaler sets them, somebody resizes them in place, or a webhook looks at the node. Then the newest pod does not
// show what comes on a node of another kind. Everything is read from live pods, so nothing is lost with the process.
//
// Usually all pods of a set request the same. The Store counts the pods of each amount as they come and go. Only sets
// with more than one amount are examined fully, once for each snapshot in which they changed.

// lastPods is how many pods of a DaemonSet count on nodes of one kind. The newest count, since amounts change with
// time.
const lastPods = 20

// countSize counts the entry's pod by its requests, among the pods of its DaemonSet. pod is nil if it no longer
// counts.
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
	s.lookAtSizes(set)
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
	if e == nil || e.stale || len(s.admission.sizes[name]) < 2 && e.value.Seen == nil {
		return
	}
	e.stale = true
	s.daemonsChanged()
}

// sizesMoved notes that a node has come, gone, or changed its pool or type. Either may be nil.
func (s *Store) sizesMoved(old, fresh *cluster.Node) {
	if old == nil || fresh == nil || old.Pool != fresh.Pool || old.InstanceType != fresh.InstanceType {
		for name := range s.admission.sizes {
			s.lookAtSizes(name)
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

// seenOf returns what the pods of a set request on nodes of each pool and instance type, nil when all request the
// same. Pods of an older template do not count: new pods come from the current one.
func (s *Store) seenOf(e *daemonEntry) []cluster.Seen {
	name := e.object.Namespace + "/" + e.object.Name
	if len(s.admission.sizes[name]) < 2 {
		return nil
	}
	var pods []*corev1.Pod
	for _, pod := range s.admission.pods[name] {
		if ownedBySet(pod, e.object) && translate.OfTemplate(e.object, pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	type place struct{ pool, instanceType string }
	found, counted, differ := map[place]resources.Vector{}, map[place]int{}, false
	first := resources.Vector(nil)
	for i, pod := range pods {
		want := translate.Requests(s.space, pod)
		if i == 0 {
			first = want
		}
		differ = differ || !want.Equal(first)
		places := []place{{}}
		if node := s.nodes[translate.DaemonNode(pod)]; node != nil && node.value != nil && node.value.Pool != "" {
			places = append(places, place{pool: node.value.Pool})
			if node.value.InstanceType != "" {
				places = append(places, place{node.value.Pool, node.value.InstanceType})
			}
		}
		for _, at := range places {
			if counted[at]++; counted[at] <= lastPods {
				found[at] = found[at].Max(want)
			}
		}
	}
	if !differ {
		return nil
	}
	var list []cluster.Seen
	for at, want := range found {
		if at.instanceType != "" && want.Equal(found[place{pool: at.pool}]) {
			continue // said of the pool
		}
		list = append(list, cluster.Seen{Pool: at.pool, Type: at.instanceType, Requests: want})
	}
	slices.SortFunc(list, func(a, b cluster.Seen) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Type, b.Type))
	})
	return list
}
