package world

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file makes pods pending before kube-scheduler has tried them, once it finds no room for others of the same
// queue (P-01, ADR 0034). It tries pods one after the other, at most a hundred a second. The plan can tell the result
// for the rest: it has the same nodes, and launches nothing for a pod that has room on them.

// queue identifies pods of one scheduler with the same priority: none of them can preempt another.
type queue struct {
	scheduler string
	priority  int32
}

// likeness is what pods of a queue share if the scheduler treats them alike.
type likeness struct {
	queue queue
	shape *cluster.Shape // interned
}

// queued are the pods without a node of one queue.
type queued struct {
	passed  int // how many the scheduler has found no room for
	untried map[*podEntry]struct{}
}

// untried are the pods without a node. Queues and likenesses without any are left out.
type untried struct {
	queues map[queue]*queued
	passed map[likeness]int
}

func newUntried() untried { return untried{queues: map[queue]*queued{}, passed: map[likeness]int{}} }

// standing is the place of a pod without a node in its queue.
type standing struct {
	like            likeness
	passed, untried bool // neither: nowhere
}

// queuePod moves the entry to its place. Pods that this makes pending, or no longer pending, are listed anew.
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

// requeue adds the entry to its place (by is 1), or takes it out (-1).
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

// plannedUntried reports whether the pod is planned for although the scheduler has not tried it: another one of its
// queue was passed over, or it has a nomination already.
func (s *Store) plannedUntried(e *podEntry) bool {
	if !e.untried || e.value == nil {
		return false
	}
	q := s.untried.queues[e.stands.like.queue]
	return e.value.Promised != "" || q != nil && q.passed > 0
}

// Untried reports, for a pod that kube-scheduler has not tried yet, whether it is pending anyway (P-01), and whether a
// pod like it was passed over, so that it will be too (P-25).
func (s *Store) Untried(pod *corev1.Pod) (planned, alike bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[podKey{pod.Namespace, pod.Name}]
	if e == nil || e.uid != pod.UID || !translate.Untried(pod) {
		return false, false
	}
	return s.plannedUntried(e), s.untried.passed[e.stands.like] > 0
}
