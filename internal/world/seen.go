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

// This file notices that the pods of a DaemonSet ask for other amounts on other nodes (K-33): a vertical autoscaler sets
// them, somebody resizes them in place, or a webhook looks at the node. The newest pod then is a bad witness of what comes
// on a node of another kind. All is read from the pods that live, so nothing is lost with the process.
//
// Mostly all pods of a set ask for the same. How many ask for what is counted as pods come and go, and only sets with more
// than one amount are looked at whole, once for each snapshot that has news of them.

// lastPods is how many pods of a DaemonSet count on nodes of one kind: the last ones, since amounts change with time.
const lastPods = 20

// countSize counts the entry's pod by what it asks for among those of its DaemonSet; pod is nil for one that counts no more.
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

// sizeOf names what a pod asks for.
func sizeOf(v resources.Vector) string {
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return fmt.Sprint([]int64(v))
}

// lookAtSizes has the next snapshot look at a set anew, if its pods differ, or did so.
func (s *Store) lookAtSizes(name string) {
	e := s.daemons[name]
	if e == nil || e.stale || len(s.admission.sizes[name]) < 2 && e.value.Seen == nil {
		return
	}
	e.stale = true
	s.daemonsChanged()
}

// sizesMoved notes that a node has become one of another pool or type: either may be nil.
func (s *Store) sizesMoved(old, fresh *cluster.Node) {
	if old == nil || fresh == nil || old.Pool != fresh.Pool || old.InstanceType != fresh.InstanceType {
		for name := range s.admission.sizes {
			s.lookAtSizes(name)
		}
	}
}

// Learn takes in what a DaemonSet was found to ask for on new nodes of a pool (K-34), nil to forget that. It holds until the
// template changes.
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

// seenOf returns what the pods of a set ask for on nodes of each pool and instance type, nil when all ask for the same. Pods of
// an older template do not count: what comes is made from the one of now.
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
