package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// planned is a node of a pool that this round plans. It has no instance type yet, only what it may still become.
type planned struct {
	bin
	outlook
	used    resources.Vector // what its pods request
	labels  requirement.Set  // demands of the pods, for the claim
	held    resources.Vector // what the plan counts for it against resource limits
	unknown []string         // classes of volumes made on it whose capacity there is unknown
	slot    int
	scratch catalog.Bits // for the next narrowing
	// commitment is the number of the commitment that pays for it, 0 for none. drawn is what it takes of that.
	commitment int
	drawn      cluster.Amount
}

// open plans a new node for the pod, in the first pool that can have one (P-10).
func (s *solver) open(pod *cluster.Pod, info *shape) bool {
	for _, later := range info.sweeps() {
		for i, p := range s.pools {
			if len(info.ways[i]) > 0 && p.mayGrow() && info.isLater(p) == later && s.openIn(p, pod, info) {
				return true
			}
		}
	}
	return false
}

// openIn plans a new node of a pool for the pod, if one can be had.
func (s *solver) openIn(p *pool, pod *cluster.Pod, info *shape) bool {
	if p.even != nil && s.openOf(p.even, p, pod, info) {
		return true
	}
	return s.openOf(p.offers, p, pod, info)
}

// openOf is openIn for a node with one of these offers.
func (s *solver) openOf(offers catalog.Bits, p *pool, pod *cluster.Pod, info *shape) bool {
	if !s.fitsAlone(p, info) {
		return false
	}
	b, index := s.addPlanned(p, offers)
	if s.tryPlanned(index, s.askOne(pod, info)) != topology.Yes {
		s.dropPlanned()
		return false
	}
	s.opened(b)
	return true
}

// addPlanned adds a node of a pool with one of these offers, and returns it with the index of its bin.
func (s *solver) addPlanned(p *pool, offers catalog.Bits) (*planned, int) {
	b := &planned{outlook: outlook{pool: p, offers: offers, custom: p.custom}, slot: plan.NoSlot}
	s.planned = append(s.planned, b)
	if s.topology.Constrained() {
		s.topology.AddBin(b.labelValue, s.counts(&b.outlook))
	}
	return b, s.bins() - 1
}

// dropPlanned takes back the node just added, on which nothing was placed.
func (s *solver) dropPlanned() {
	s.planned = s.planned[:len(s.planned)-1]
	if s.topology.Constrained() {
		s.topology.DropBin()
	}
}

// opened counts a planned node that has got its first pods.
func (s *solver) opened(b *planned) {
	b.pool.used.Nodes++
	*b.pool.ceiling = b.pool.ceiling.Plus(1)
	if len(b.pool.slots) > 0 {
		b.slot, b.pool.slots = b.pool.slots[0], b.pool.slots[1:]
	}
}
