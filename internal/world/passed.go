package world

import (
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file notes where kube-scheduler passes a pod over (P-23). If a pod is expected on a ready node and is not bound
// there for a while, although other pods are bound, the plan was wrong, whatever the reason. Then the pod is not
// expected on that node for some time, which grows with each repetition.

const (
	passedAfter = time.Minute
	passedFor   = 5 * time.Minute
	passedMost  = 4 * time.Hour
)

// expectation is a ready node, and since when a pod has been expected on it.
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

// isReady returns the name of the node that target names, directly or through its claim, and whether pods can be bound
// to it.
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

// passedOver reports whether the pod, which is nominated again, was passed over on that node, and notes it if so.
func (s *Store) passedOver(n nomination, e *podEntry) bool {
	node, ready := s.isReady(n.target)
	if !ready || n.from != "" || e.untried { // the minute begins when the scheduler has tried the pod
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

// text returns the nodes as snapshots show them.
func (p *passing) text() string {
	if p == nil {
		return ""
	}
	return strings.Join(p.nodes, ",")
}

// heardOfBinding notes that kube-scheduler has bound the pod, and forgets where it had passed the pod over.
func (s *Store) heardOfBinding(e *podEntry, value *cluster.Pod) {
	if e.value == nil || e.value.Node != "" || value.Node == "" {
		return
	}
	s.lastBound = s.config.Now()
	e.passed = nil
	delete(s.passing, e)
}

// expirePassing forgets where pods were passed over when that time has run out.
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
