package topology

import "github.com/joiner-autoscaler/joiner/internal/engine/cluster"

// This file lets pods leave bins, and bins go: a node that is drained counts until its pods have left it.

// Shrink tells the tracker that pods may leave, so that no refusal by anti-affinity is final.
func (t *Tracker) Shrink() { t.shrinks = true }

func (t *Tracker) never() Verdict {
	if t.shrinks {
		return Now
	}
	return Never
}

// Leave takes a pod that Place counted in a bin out of the count.
func (t *Tracker) Leave(shape *cluster.Shape, bin int, standing Standing) {
	t.count(t.Rules(shape), bin, standing, -1)
}

// Retract takes back the placement of a pod in a bin. Placements must be taken back in reverse order.
func (t *Tracker) Retract(shape *cluster.Shape, bin int) {
	t.Leave(shape, bin, Placed)
	for _, s := range t.Rules(shape).spreads {
		s.landed = s.landed[:len(s.landed)-1]
	}
}

// Vanish takes an occupied bin out of the count once all pods have left it. Its domain ends, unless other bins keep
// it. Occupy makes it count again.
func (t *Tracker) Vanish(bin int) {
	if t.vanished == nil {
		t.vanished = map[int]bool{}
	}
	t.vanished[bin] = true
	for _, s := range t.spreads {
		if domain := t.bins[s.key][bin]; domain >= 0 && s.counting[bin] != Not {
			s.vacate(domain, t.others(s, bin, domain))
		}
	}
}

// others returns how surely a constraint counts some other bin of a domain; Not when there is none. A bin that is Open
// may be in the domain, so it counts Maybe at most.
func (t *Tracker) others(s *spread, bin int, domain int32) Counting {
	most := Not
	if t.Hostname(s.key) {
		return most
	}
	for other, at := range t.bins[s.key] {
		switch {
		case at != domain && at != Open, other == bin, t.vanished[other]:
		case at == domain:
			most = max(most, s.counting[other])
		default:
			most = max(most, min(Maybe, s.counting[other]))
		}
		if most == Surely { // which it nearly always is after a few bins
			break
		}
	}
	return most
}

// vacate notes that a bin has left a domain. left says how surely another bin there counts.
func (s *spread) vacate(domain int32, left Counting) {
	if int(domain) >= len(s.inSet) {
		return
	}
	if s.inUse[domain] && left != Surely {
		s.inUse[domain] = false
		s.used--
	}
	if s.inSet[domain] && left == Not && !s.offered[domain] {
		s.inSet[domain] = false
		s.level(s.counts.at(domain), -1)
		s.settle()
	}
}
