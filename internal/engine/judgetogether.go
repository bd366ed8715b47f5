package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file looks for room for many moves at once. Hundreds of nodes may be due at the same time. If each had its own
// look, and another one beside all that go before it, a large cluster would be judged for minutes (B-19).

// begun returns a round in which the pending pods have their places. It is made once.
func (j *judging) begun() *disruption {
	if j.first == nil {
		j.first = beginFrom(j.s, j.s, Terms{})
	}
	return j.first
}

// safeOf returns moves whose pods have places on existing nodes when all of them go together: so they have when some
// of them go. That is true of pods that no other pod is in the way of, so the others are left out. It tries all that
// could be deleted now, then half as many after each failure and twice as many after a success. A move that finds no
// room beside those before it is left out, too.
func (j *judging) safeOf(moves []*move) map[*move]bool {
	moves = slices.DeleteFunc(slices.Clone(moves), func(m *move) bool {
		return !m.tainted() || m.waits() || slices.ContainsFunc(m.intents, func(i Intent) bool {
			return slices.ContainsFunc(i.Node.Pods, tied)
		})
	})
	if len(moves) < 2 {
		return nil
	}
	safe, going := map[*move]bool{}, []*cluster.Node(nil)
	for size := len(moves); len(moves) > 0; {
		group := moves[:min(size, len(moves))]
		all := slices.Clip(going)
		for _, m := range group {
			all = append(all, m.nodes()...)
		}
		switch {
		case j.hasRoom(all):
			for _, m := range group {
				safe[m] = true
			}
			going, moves, size = all, moves[len(group):], 2*len(group)
		case len(group) > 1:
			size = len(group) / 2
		default:
			moves = moves[1:]
		}
	}
	return safe
}

// tied reports whether constraints relate the pod to others.
func tied(pod *cluster.Pod) bool {
	return len(pod.Shape.Spread)+len(pod.Shape.Affinity)+len(pod.Shape.AntiAffinity) > 0
}
