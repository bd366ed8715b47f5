package world

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file has pods planned for that kube-scheduler has not tried yet, once it finds no room for others of its queue (P-01, ADR
// 0034). It tries them one after the other, a hundred a second or less. What it will say of the rest the plan knows as well: it has
// the same nodes, and launches nothing for a pod that has room on them.

// queue is where a scheduler takes pods from that are alike in rank: none of them makes room for another one by preemption.
type queue struct {
	scheduler string
	priority  int32
}

// likeness is what pods of a queue have in common for which the scheduler's word is the same.
type likeness struct {
	queue queue
	shape *cluster.Shape // interned
}

// queued are the pods without a node of one queue.
type queued struct {
	passed  int // for how many the scheduler has found no room
	untried map[*podEntry]struct{}
}

// untried are the pods without a node. Queues and likenesses without any are left out.
type untried struct {
	queues map[queue]*queued
	passed map[likeness]int
}

func newUntried() untried { return untried{queues: map[queue]*queued{}, passed: map[likeness]int{}} }

// standing is where a pod without a node stands.
type standing struct {
	like            likeness
	passed, untried bool // neither: nowhere
}

// queuePod puts the entry where it belongs now. The pods that are planned for by this, or not any more, are listed anew.
func (s *Store) queuePod(e *podEntry) {
	var want standing
	if v := e.value; v != nil && (e.waiting || e.untried) {
		want = standing{likeness{queue{e.scheduler, v.Priority}, v.Shape}, e.waiting, e.untried}
	}
	if was := e.stands; want != was {
		e.stands = want
		s.requeue(was, e, -1)
		s.requeue(want, e, 1)
	}
}

// requeue adds the entry to where it stands, or takes it out.
func (s *Store) requeue(at standing, e *podEntry, by int) {
	if !at.passed && !at.untried {
		return
	}
	q := s.untried.queues[at.like.queue]
	if q == nil {
		q = &queued{untried: map[*podEntry]struct{}{}}
		s.untried.queues[at.like.queue] = q
	}
	switch {
	case at.passed:
		before := q.passed
		q.passed += by
		if s.untried.passed[at.like] += by; s.untried.passed[at.like] == 0 {
			delete(s.untried.passed, at.like)
		}
		if (before == 0) != (q.passed == 0) {
			for other := range q.untried {
				s.listPending(other)
			}
		}
	case by > 0:
		q.untried[e] = struct{}{}
	default:
		delete(q.untried, e)
	}
	if q.passed == 0 && len(q.untried) == 0 {
		delete(s.untried.queues, at.like.queue)
	}
}

// plannedUntried reports whether the pod is planned for before it was tried: another one of its queue was passed over, or a node
// was launched for it already.
func (s *Store) plannedUntried(e *podEntry) bool {
	if !e.untried || e.value == nil {
		return false
	}
	q := s.untried.queues[e.stands.like.queue]
	return e.value.Promised != "" || q != nil && q.passed > 0
}

// Untried reports of a pod that kube-scheduler has not tried yet whether it is among the pending ones all the same (P-01), and
// whether one that is like it was passed over, so that this one will be (P-25).
func (s *Store) Untried(pod *corev1.Pod) (planned, alike bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[podKey{pod.Namespace, pod.Name}]
	if e == nil || e.uid != pod.UID || !translate.Untried(pod) {
		return false, false
	}
	return s.plannedUntried(e), s.untried.passed[e.stands.like] > 0
}
