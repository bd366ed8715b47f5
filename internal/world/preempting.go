package world

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file is about pods that kube-scheduler has nominated to a node by preemption (P-01). Such a pod does not wait
// for a node of ours, since others are ending for it. That changes once one of these is stuck and no other is ending:
// nobody says when it will go.

// linkPreempting notes to which node kube-scheduler has nominated the pod by preemption, if to any.
func (s *Store) linkPreempting(key podKey, e *podEntry, node string) {
	before := e.preempts
	if of := s.preempting[before]; of != nil {
		if delete(of, key); len(of) == 0 {
			delete(s.preempting, before)
		}
	}
	if e.preempts = node; node != "" {
		if s.preempting[node] == nil {
			s.preempting[node] = map[podKey]*podEntry{}
		}
		s.preempting[node][key] = e
	}
	s.reviseUsed(before)
	s.reviseUsed(node)
}

// waits reports whether the pod needs a node that we may launch. preempts is where kube-scheduler has nominated it by
// preemption.
func (s *Store) waits(pod *corev1.Pod, value *cluster.Pod, preempts string) bool {
	if preempts != "" {
		return s.victimStuck(value, preempts)
	}
	return translate.Provisionable(pod)
}

// victimStuck reports whether a pod that the other one preempts on a node is stuck, and all that are ending there are.
func (s *Store) victimStuck(pod *cluster.Pod, node string) bool {
	stuck := false
	for _, victim := range s.loadOf(node).pods {
		if !isVictim(victim, pod.Priority) {
			continue
		}
		if !victim.Fixed {
			return false
		}
		stuck = true
	}
	return stuck
}

// withKept adds to what is used on a node the room that kube-scheduler keeps there for pods that preempt others: it
// gives this room to no pod of the same or a lower priority. A pod that preempts in vain is pending. If there is room
// for it after all, it is about to be bound there, and counts on it itself.
func (s *Store) withKept(node *cluster.Node, used resources.Vector) resources.Vector {
	if len(s.preempting[node.Name]) == 0 { // nearly always
		return used
	}
	waiting := slices.SortedFunc(maps.Values(s.preempting[node.Name]), func(a, b *podEntry) int {
		return comparePods(a.value, b.value)
	})
	left := *node
	left.Used = used
	var come []*podEntry
	for _, e := range waiting {
		switch {
		case !e.waiting:
			come = append(come, e)
		case !left.HasRoom(e.value.Shape.Requests):
			left.Used = left.Used.Plus(e.value.Shape.Requests)
		}
	}
	if len(come) == 0 {
		return left.Used
	}
	return left.Used.Plus(s.keptBeside(&left, come))
}

// keptBeside returns how much of the free room of a node is kept for pods that come when others have ended there: what
// they need beyond the room of these.
func (s *Store) keptBeside(node *cluster.Node, come []*podEntry) resources.Vector {
	var kept resources.Vector
	lowest := int32(math.MaxInt32)
	for _, e := range come {
		kept = kept.Plus(e.value.Shape.Requests)
		lowest = min(lowest, e.value.Priority)
	}
	for _, victim := range s.loadOf(node.Name).pods {
		if isVictim(victim, lowest) && !victim.Fixed {
			kept = kept.Minus(victim.Shape.Requests)
		}
	}
	free := node.Allocatable.Minus(node.Used)
	for i := range kept {
		kept[i] = max(0, min(kept[i], free.At(i)))
	}
	return kept
}

// isVictim reports whether a pod ends, and may do so for one with this priority.
func isVictim(pod *cluster.Pod, priority int32) bool {
	return pod.Terminating && pod.Daemon == "" && pod.Priority < priority
}

// revisePreempting decides anew which pods that preempt others on a node wait for one of ours. Call it before the node
// gets what is used on it.
func (s *Store) revisePreempting(node string) {
	for _, e := range s.preempting[node] {
		if waits := s.victimStuck(e.value, node); waits != e.waiting {
			e.waiting = waits
			s.queuePod(e)
			s.listPending(e)
		}
	}
}

// PreemptsInVain reports whether a pod that kube-scheduler has nominated by preemption is pending all the same: a pod
// that should end for it is stuck.
func (s *Store) PreemptsInVain(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[podKey{pod.Namespace, pod.Name}]
	return e != nil && e.uid == pod.UID && e.preempts != "" && e.waiting
}

// HasPreempting reports whether some pod waits for others that it has preempted. Time alone may make it pending.
func (s *Store) HasPreempting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.preempting) > 0
}
