package world

import (
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file notes where kube-scheduler passes a pod over (P-23). A pod is expected on a node that is ready, and is not bound there
// for a while, although other pods are bound: then the plan was wrong, whatever the reason. The pod is not expected there any
// more for some time, which grows when that comes again.

const (
	passedAfter = time.Minute
	passedFor   = 5 * time.Minute
	passedMost  = 4 * time.Hour
)

// expectation is a node that is ready, and since when a pod has been expected on it.
type expectation struct {
	node  string
	since time.Time
}

// passing is where a pod was passed over.
type passing struct {
	nodes []string
	until time.Time
	times int // how often in all
}

// isReady reports whether pods can be bound to the node of this name, or to that of the claim of this name, and returns the
// name of the node.
func (s *Store) isReady(target string) (string, bool) {
	if e := s.claims[target]; e != nil {
		target = s.nodeOf(e.object)
	}
	e := s.nodes[target]
	if e == nil || e.value == nil {
		return "", false
	}
	return target, e.value.Initialized && !e.value.NotReady && !e.value.Deleting && !e.value.Disrupting
}

// passedOver reports whether the pod was passed over where it is to be nominated once more, and notes it then.
func (s *Store) passedOver(n nomination, e *podEntry) bool {
	node, ready := s.isReady(n.target)
	if !ready || n.from != "" || e.untried { // the minute begins when the scheduler has tried it
		e.expected = expectation{}
		return false
	}
	now := s.config.Now()
	if e.expected.node != node {
		e.expected = expectation{node, now}
	}
	if now.Sub(e.expected.since) < passedAfter || !s.lastBound.After(e.expected.since) {
		return false
	}
	s.passOver(e, node, now)
	return true
}

// passOver notes that the pod was passed over on a node.
func (s *Store) passOver(e *podEntry, node string, now time.Time) {
	p := e.passed
	if p == nil {
		p = &passing{}
		e.passed = p
	}
	p.times++
	p.until = now.Add(min(passedMost, passedFor<<min(p.times-1, 8)))
	if !slices.Contains(p.nodes, node) {
		p.nodes = append(p.nodes, node)
		slices.Sort(p.nodes)
	}
	s.passing[e] = struct{}{}
	e.expected = expectation{}
	s.wakeAt(p.until)
	s.nominations.drop(e.uid)
	s.derivePod(e, func(pod *cluster.Pod) { pod.Promised = "" })
}

// text is how snapshots show it.
func (p *passing) text() string {
	if p == nil {
		return ""
	}
	return strings.Join(p.nodes, ",")
}

// heardOfBinding notes that kube-scheduler binds pods, and forgets where it has passed this one over.
func (s *Store) heardOfBinding(e *podEntry, value *cluster.Pod) {
	if e.value == nil || e.value.Node != "" || value.Node == "" {
		return
	}
	s.lastBound = s.config.Now()
	e.passed = nil
	delete(s.passing, e)
}

// expirePassing lets pods be expected again where they were passed over long ago.
func (s *Store) expirePassing(now time.Time) {
	for e := range s.passing {
		if now.Before(e.passed.until) {
			s.wakeAt(e.passed.until)
			continue
		}
		delete(s.passing, e)
		e.passed.nodes = nil
		if e.value != nil {
			s.derivePod(e, func(*cluster.Pod) {})
		}
	}
}
