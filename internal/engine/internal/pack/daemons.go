package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// repelledAfar reports whether an anti-affinity over more than the node stands between the shape and some daemon. Where
// daemons will run in the end is not followed that far: such a pod waits, and says so.
func (s *solver) repelledAfar(c *cluster.Shape) bool {
	return slices.ContainsFunc(s.snapshot.Daemons, func(d cluster.Daemon) bool { return s.topology.RepelAfar(c, d.Shape) })
}

// besideDaemons takes the offers out of ways on whose nodes a daemon will run that must not stand beside the shape, by a host
// port that both want or by anti-affinity on either side: whatever label the term is about, a node shares it with itself.
func (s *solver) besideDaemons(p *pool, c *cluster.Shape, ways []way) []way {
	for _, r := range p.residents {
		if !s.topology.Repel(c, r.shape) && !portsConflict(c.HostPorts, r.shape.HostPorts) {
			continue
		}
		var left []way
		for _, w := range ways {
			w.offers = w.offers.Minus(r.on)
			if !w.offers.Empty() {
				left = append(left, w)
			}
		}
		ways = left
	}
	return ways
}

// held says why a pool launches nothing for pods of the shape at present (P-35); "" when it does.
func (s *solver) held(p *pool, c *cluster.Shape) string {
	if len(s.snapshot.Held) == 0 {
		return ""
	}
	return s.snapshot.Held[cluster.Hold{Pool: p.Name, Ask: c.Ask()}]
}

func portsConflict(a, b []cluster.HostPort) bool {
	return slices.ContainsFunc(a, func(port cluster.HostPort) bool { return slices.ContainsFunc(b, port.Conflicts) })
}

// keptOut says which daemons leave the shape no place in a pool.
func (s *solver) keptOut(p *pool, c *cluster.Shape) (by plan.Demand, detail string) {
	repelled := s.repelledAfar(c) || slices.ContainsFunc(p.residents, func(r resident) bool { return s.topology.Repel(c, r.shape) })
	if repelled {
		return plan.ByTopology, "anti-affinity to a daemon that runs on every node"
	}
	return plan.ByPod, "host ports are taken by daemons"
}
