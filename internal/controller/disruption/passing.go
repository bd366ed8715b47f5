package disruption

import (
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file notices when a workload shrinks or rolls: pods end on nodes that stay (D-15, B-11). It need not know which
// workload, or how far it has got. As long as pods end one after the other, more may follow. Replacements for the
// nodes of the remaining pods may then be useless. Pods that end on nodes being removed are our doing, and do not
// count.

const (
	// calmAfter is how long after the last such pod a pool counts as calm again. Controllers delete pods in batches,
	// and many pods end within a second, so there are gaps.
	calmAfter = 5 * time.Second
	// passesWithin is the longest that a pool waits for calm. If pods end all the time, for instance short-lived ones,
	// or one never ends, nodes are replaced as usual.
	passesWithin = 2 * time.Minute
)

// passage is when pods of a pool began to end, and when one was last seen ending.
type passage struct {
	since, last time.Time
	interrupted bool // none was ending when we looked last
}

// holds reports whether to wait for the pool.
func (p passage) holds(now time.Time) bool {
	return now.Sub(p.last) < calmAfter && now.Sub(p.since) < passesWithin
}

// passingIn records in which pools of s pods are ending, and returns the pools to wait for; nil for none.
func (m *memory) passingIn(s *cluster.Snapshot, now time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ending := map[string]bool{}
	for _, node := range s.Nodes {
		if node.Claim != "" && !node.Deleting && !node.Disrupting && slices.ContainsFunc(node.Pods, isEnding) {
			ending[node.Pool] = true
		}
	}
	for pool := range ending {
		p, known := m.passing[pool]
		if !known || p.interrupted && now.Sub(p.last) >= calmAfter {
			p = passage{since: now}
		}
		p.last, p.interrupted = now, false
		m.passing[pool] = p
	}
	var held map[string]bool
	for pool, p := range m.passing {
		p.interrupted = !ending[pool]
		m.passing[pool] = p
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

// passingEnds returns when the next pool need not be waited for any more, if nothing else happens there; zero for
// none.
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
