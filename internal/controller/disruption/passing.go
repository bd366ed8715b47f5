package disruption

import (
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file notices that a workload shrinks, or rolls: pods end on nodes that stay (D-15, B-11). Nobody has to tell
// which workload, nor how far it has got: as long as pods end one after the other, more may follow, and what replaces
// the nodes of those that are left now may be for nothing. Pods that end on nodes which go are ours, and do not count.

const (
	// calmAfter is how long after the last such pod was seen a pool is calm again. Controllers delete pods in batches, and many
	// pods end within a second, so that there are gaps.
	calmAfter = 5 * time.Second
	// passesWithin is how long a pool may wait for calm. Where pods end all the time, for instance because they are
	// short-lived, or where one never ends, nothing passes, and nodes are replaced as ever.
	passesWithin = 2 * time.Minute
)

// passage is when pods of a pool began to end, and when one was seen last.
type passage struct {
	since, last time.Time
}

// holds reports whether the pool is waited for.
func (p passage) holds(now time.Time) bool {
	return now.Sub(p.last) < calmAfter && now.Sub(p.since) < passesWithin
}

// passingIn notes in which pools of s pods are ending, and returns those that are to be waited for; nil for none.
func (m *memory) passingIn(s *cluster.Snapshot, now time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range s.Nodes {
		if node.Claim == "" || node.Deleting || node.Disrupting || !slices.ContainsFunc(node.Pods, isEnding) {
			continue
		}
		p := m.passing[node.Pool]
		if now.Sub(p.last) >= calmAfter {
			p.since = now
		}
		p.last = now
		m.passing[node.Pool] = p
	}
	var held map[string]bool
	for pool, p := range m.passing {
		switch {
		case p.holds(now):
			if held == nil {
				held = map[string]bool{}
			}
			held[pool] = true
		case now.Sub(p.last) >= calmAfter:
			delete(m.passing, pool)
		}
	}
	return held
}

func isEnding(pod *cluster.Pod) bool { return pod.Terminating && !pod.Fixed }

// passingEnds returns when the next pool is waited for no more, if nothing else happens there; zero when none is.
func (m *memory) passingEnds(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var next time.Time
	for _, p := range m.passing {
		at := p.last.Add(calmAfter)
		if most := p.since.Add(passesWithin); most.Before(at) {
			at = most
		}
		if p.holds(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
