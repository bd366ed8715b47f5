package pack

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file chooses among existing nodes (P-23, ADR 0035): a pod goes where least stays free beside it. That keeps
// large rooms for large pods, and does not put a little on each of the nodes that could go soon. In the order of
// names, which says nothing, fewer pods find a place. kube-scheduler does the opposite, and takes pods as they come.
// [AsScheduled] asks whether a plan holds then, too.

// choice is how an existing node is chosen for a pod.
type choice uint8

const (
	leastFree choice = iota // where least stays free
	firstName               // the first one by name
	mostFree                // where the largest share stays free, pod by pod, the smallest pod first
)

const (
	// tightestNodes bounds the effort: among more nodes the first one that takes a pod gets it.
	tightestNodes = 4000
	// tightestTries is how many nodes may refuse a pod, though they have room, before it goes to the first that takes
	// it.
	tightestTries = 8
	// perMilliCore is how many bytes of memory count as much as a thousandth of a core.
	perMilliCore = resources.MemoryPerCore / 1000.0
)

// fit is an existing node with room for a pod, and what stays free there, in bytes of memory.
type fit struct {
	index int
	left  float64 // for mostFree: the sum of the shares that stay free, negated
}

func compareFits(a, b fit) int {
	return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.index, b.index))
}

// choosy reports whether nodes are chosen by what stays free.
func (s *solver) choosy() bool { return s.choice != firstName && len(s.existing) <= tightestNodes }

// fitOf returns how a pod of the shape would fit on an existing node; false without room.
func (s *solver) fitOf(index int, info *shape) (fit, bool) {
	n := s.existing[index]
	if n.closed {
		return fit{}, false
	}
	n.settle(s.snapshot.Daemons)
	if !info.Requests.Fits(n.free) {
		return fit{}, false
	}
	cores := n.free.At(resources.CPU) - info.Requests.At(resources.CPU)
	memory := n.free.At(resources.Memory) - info.Requests.At(resources.Memory)
	if s.choice == mostFree {
		return fit{index, -(shareOf(cores, n.node, resources.CPU) + shareOf(memory, n.node, resources.Memory))}, true
	}
	// rounded by itself, so that each processor has the same sum (P-20)
	weight := float64(float64(cores) * perMilliCore)
	return fit{index, weight + float64(memory)}, true
}

func shareOf(free int64, node *cluster.Node, component int) float64 {
	return float64(free) / float64(max(1, node.Allocatable.At(component)))
}

// placeTightest places the pod of an attempt on the existing node where least stays free. It gives up once
// tightestTries nodes with room have refused the pod. rest says that: some other node may still take it.
func (s *solver) placeTightest(a *attempt) (placed, rest bool) {
	last := fit{-1, math.Inf(-1)}
	for range tightestTries {
		best, found := fit{}, false
		for i := a.info.first; i < len(s.existing); i++ {
			if a.info.refused[i] {
				continue
			}
			own, fits := s.fitOf(i, a.info)
			switch {
			case !fits:
				a.info.note(i, topology.Never)
			case compareFits(own, last) > 0 && (!found || compareFits(own, best) < 0):
				best, found = own, true
			}
		}
		if !found {
			return false, false
		}
		if a.info.note(best.index, s.tryExisting(best.index, a)) {
			return true, false
		}
		last = best
	}
	return false, true
}

// inOrder lists the existing nodes in the order in which they are filled with pods of the shape. The node with least
// to spare stays the same while such pods are placed on it.
func (s *solver) inOrder(info *shape) []int {
	if !s.choosy() {
		all := make([]int, len(s.existing))
		for i := range all {
			all[i] = i
		}
		return all
	}
	s.fits = s.fits[:0]
	for i := range s.existing {
		if own, ok := s.fitOf(i, info); ok {
			s.fits = append(s.fits, own)
		}
	}
	slices.SortFunc(s.fits, compareFits)
	order := make([]int, len(s.fits))
	for i, own := range s.fits {
		order[i] = own.index
	}
	return order
}
