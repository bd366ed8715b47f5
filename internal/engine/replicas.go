package engine

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Replicas plans the nodes that static pools lack (D-12, L-17): spec.replicas or a lower limit, less the nodes that
// exist, even if these go. Each launch is the cheapest that the pool admits, for no pod. The nodes of static pools
// always have slots, so two replicas of the controller cannot make them twice.
func Replicas(s *cluster.Snapshot) plan.Plan { return pack.Replicas(s) }

// Launches plans what static pools lack and then, as if those nodes were there, what pending pods want. A controller
// does that in two rounds. Pods that go onto a launched node of a static pool stand in its launch.
func Launches(s *cluster.Snapshot) plan.Plan {
	static := Replicas(s)
	if len(static.Launches) == 0 {
		return Provision(s)
	}
	p := Provision(s.With(virtuals(s, static.Launches, newLast)))
	for i := range static.Launches {
		for _, n := range p.NominationsOf(newLast.of(i)) {
			static.Launches[i].Pods = append(static.Launches[i].Pods, n.Pod)
		}
	}
	static.Launches, p.Buffers.Places = taken(static.Launches, p.Buffers.Places, newLast)
	p.Nominations = slices.DeleteFunc(p.Nominations,
		func(n plan.Nominate) bool { return strings.HasPrefix(n.Node, string(newLast)) })
	p.Launches = append(static.Launches, p.Launches...)
	return p
}
