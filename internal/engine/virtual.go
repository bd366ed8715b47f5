package engine

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// feeds reports whether a pod that a limit keeps waiting would fit on the launched nodes. It would be there before the
// pods that the launches are for, and nothing would be saved.
func (d *disruption) feeds(launches []plan.Launch) bool {
	if len(d.hungry) == 0 {
		return false
	}
	with := d.future.With(virtuals(d.future, launches, newLast))
	for _, pod := range d.hungry {
		if _, fits := pack.Fit(with.With(nil, pod), []*cluster.Pod{pod}); fits {
			return true
		}
	}
	return false
}

// fitBeside reports whether the pending pods of s fit on its nodes together with those of the launches.
func fitBeside(s *cluster.Snapshot, launches []plan.Launch) bool {
	with := s.With(virtuals(s, launches, newLast))
	_, fits := pack.Fit(with, with.Pending)
	return fits
}

// settles reports whether the pending pods of s fit on its nodes together with those of the launches, each in its
// cheapest offering. A further launch does no harm here. Pods that move do not come back in the order in which a plan
// placed them, so a plan that only works in its own order is not worth carrying out.
func settles(s *cluster.Snapshot, launches []plan.Launch) bool {
	if fitBeside(s, launches) {
		return true
	}
	with := s.With(virtuals(s, launches, newLast)).WithoutBuffers() // they wait, if there is no room for all
	return len(pack.Solve(with, with.Pending).Unplaced) == 0
}

// naming is a prefix for names of launched nodes. Their real names are not known yet, and pods are placed on the first
// node that takes them.
type naming string

const (
	newFirst naming = "!launch-"
	newLast  naming = "~launch-"
)

func (n naming) of(number int) string { return fmt.Sprintf("%s%04d", n, number) }

// virtuals returns the nodes that launches bring.
func virtuals(s *cluster.Snapshot, launches []plan.Launch, names naming) []*cluster.Node {
	var nodes []*cluster.Node
	for i, l := range launches {
		nodes = append(nodes, virtual(s.Pool(l.Pool), l, names.of(i)))
	}
	return nodes
}

// virtual returns the node that a launch brings in its cheapest offering.
func virtual(pool *cluster.Pool, l plan.Launch, name string) *cluster.Node {
	node := &cluster.Node{
		Name: name, Claim: name, Pool: pool.Name, Taints: pool.Taints, InstanceType: l.Cheapest.Type,
		Price: l.Cheapest.Listed().OfNode(), Initialized: true, Launched: true, Registered: true,
		Labels: map[string]string{cluster.LabelHostname: name, cluster.LabelPool: pool.Name},
	}
	label := func(set requirement.Set) {
		for r := range set.All() {
			if value, single := r.Single(); single {
				node.Labels[string(r.Key())] = value
			}
		}
	}
	label(l.Requirements)
	for i := range pool.Catalog.OfType(l.Cheapest.Type).All() {
		if o := pool.Catalog.Offers[i]; o.Zone == l.Cheapest.Zone && o.CapacityType == l.Cheapest.CapacityType {
			node.Allocatable = pool.Catalog.Types[o.Type].Allocatable
			label(o.Labels)
		}
	}
	node.Labels[string(catalog.LabelInstanceType)] = l.Cheapest.Type
	for key, value := range l.Labels {
		node.Labels[key] = value
	}
	return node
}
