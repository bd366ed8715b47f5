package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// brakeRule: for a while, a pool launches nothing for pods for which it has launched in vain (P-35).
type brakeRule struct {
	anyNode
	anyOffer
	untied
}

// reads: what the shape asks for as a whole (Shape.Ask).
func (brakeRule) reads() []string { return nil }

func (brakeRule) opens(s *solver, p *pool, info *shape, ways []way) []way {
	if s.held(p, info.Shape) != "" {
		return nil
	}
	return ways
}

func (brakeRule) explains(s *solver, e *explainer) bool {
	if why := s.held(e.pool, e.shape); why != "" {
		return e.stop(plan.ByBrake, cause.LaunchesInVain, "", why)
	}
	return true
}

// held says why a pool launches nothing for pods of the shape at present; "" when it may.
func (s *solver) held(p *pool, c *cluster.Shape) string {
	if len(s.snapshot.Held) == 0 {
		return ""
	}
	return s.snapshot.Held[cluster.Hold{Pool: p.Name, Ask: c.Ask()}]
}

// Braked says why no node of the pool is launched at present for an ask (see cluster.Hold); "" when some may be.
func Braked(s *cluster.Snapshot, pool *cluster.Pool, ask string) string {
	return s.Held[cluster.Hold{Pool: pool.Name, Ask: ask}]
}

// heldFor is held for nodes on which volumes of a class would be made, when their capacity for it is unknown (K-58).
func (s *solver) heldFor(p *pool, class string) string {
	if len(s.snapshot.Held) == 0 {
		return ""
	}
	return s.snapshot.Held[cluster.Hold{Pool: p.Name, Ask: cluster.StorageAsk(class)}]
}
