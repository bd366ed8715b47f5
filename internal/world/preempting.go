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

// This file is about pods for which kube-scheduler has chosen a node, and that are not bound yet (P-01). Either others
// end there for the pod, which preempts them. Or nothing else is in the way: it is about to be bound, and since
// Kubernetes 1.35 its status names the node while a volume or a device is still to come. It does not wait for a node
// of ours then, and keeps the one that was chosen. For a pod that preempts, that changes once one of the others is
// stuck and no other is ending: nobody says when it will go. No other bound is needed: kube-scheduler withdraws its
// choice when it tries the pod in vain, or its binding fails, which takes ten minutes at most by default.

// linkChosen notes which node kube-scheduler has chosen for the pod, if any.
func (s *Store) linkChosen(key podKey, e *podEntry, node string) {
	before := e.chosen
	if of := s.chosen[before]; of != nil {
		if delete(of, key); len(of) == 0 {
			delete(s.chosen, before)
		}
	}
	if e.chosen = node; node != "" {
		if s.chosen[node] == nil {
			s.chosen[node] = map[podKey]*podEntry{}
		}
		s.chosen[node][key] = e
	}
	s.reviseUsed(before)
	s.reviseUsed(node)
}

// waits reports whether the pod needs a node that we may launch.
func (s *Store) waits(pod *corev1.Pod, value *cluster.Pod) bool {
	if translate.Preempting(pod) {
		return s.victimStuck(value, translate.Chosen(pod))
	}
	return translate.Provisionable(pod)
}

// comingTo returns the pods that kube-scheduler is about to bind to a node, or that come when others have ended there,
// in their order. A pod that preempts in vain does not come: it is pending.
func (s *Store) comingTo(node string) []*cluster.Pod {
	var come []*cluster.Pod
	for _, e := range s.chosen[node] {
		if !e.waiting {
			come = append(come, e.value)
		}
	}
	slices.SortFunc(come, comparePods)
	return come
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
	if len(s.chosen[node.Name]) == 0 { // nearly always
		return used
	}
	waiting := slices.SortedFunc(maps.Values(s.chosen[node.Name]), func(a, b *podEntry) int {
		return comparePods(a.value, b.value)
	})
	left := *node
	left.Used = used
	for _, e := range waiting {
		if e.waiting && !left.HasRoom(e.value.Shape.Requests) {
			left.Used = left.Used.Plus(e.value.Shape.Requests)
		}
	}
	come := s.comingTo(node.Name)
	if len(come) == 0 {
		return left.Used
	}
	return left.Used.Plus(s.keptBeside(&left, come))
}

// keptBeside returns how much of the free room of a node is kept for pods that come when others have ended there: what
// they need beyond the room of these.
func (s *Store) keptBeside(node *cluster.Node, come []*cluster.Pod) resources.Vector {
	var kept resources.Vector
	lowest := int32(math.MaxInt32)
	for _, pod := range come {
		kept = kept.Plus(pod.Shape.Requests)
		lowest = min(lowest, pod.Priority)
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

// reviseChosen decides anew which pods that preempt others on a node wait for one of ours. Call it before the node
// gets what is used on it.
func (s *Store) reviseChosen(node string) {
	for _, e := range s.chosen[node] {
		if waits := e.preempts && s.victimStuck(e.value, node); waits != e.waiting {
			e.waiting = waits
			s.queuePod(e)
			s.listPending(e)
		}
	}
}

// PreemptsInVain reports whether a pod that preempts others is pending all the same: one that should end for it is
// stuck.
func (s *Store) PreemptsInVain(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[podKey{pod.Namespace, pod.Name}]
	return e != nil && e.uid == pod.UID && e.chosen != "" && e.waiting
}

// HasVictims reports whether pods are ending for another one, on the node that kube-scheduler has chosen for it.
func (s *Store) HasVictims(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[podKey{pod.Namespace, pod.Name}]
	return e != nil && e.uid == pod.UID && e.value != nil &&
		slices.ContainsFunc(s.loadOf(pod.Status.NominatedNodeName).pods, func(other *cluster.Pod) bool {
			return isVictim(other, e.value.Priority)
		})
}

// HasPreempting reports whether some pod waits for others that it has preempted. Time alone may make it pending.
func (s *Store) HasPreempting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.chosen {
		for _, e := range of {
			if e.preempts {
				return true
			}
		}
	}
	return false
}
