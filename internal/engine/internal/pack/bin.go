package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// bin is something that pods are placed in: a node that exists or is on its way, or one that is planned.
type bin struct {
	node *cluster.Node // nil for a planned one
	used resources.Vector
	// ports are taken; of a planned one those of daemons are not among them: besideDaemons keeps pods away from these.
	ports []cluster.HostPort
	pods  []*cluster.Pod // placed in this round

	// Of an existing node.
	free     resources.Vector // what is left for pods, daemons still to come taken off; set by settle
	awaiting []*cluster.Shape // daemons still to come
	settled  bool
	closed   bool // it goes: nothing is placed on it
	staying  int  // pods of a closed node that have not left yet

	// Of a planned one.
	pool    *pool
	offers  catalog.Bits     // every offering that still fits
	custom  requirement.Set  // labels that the provider does not decide
	labels  requirement.Set  // demands of the pods, for the claim
	held    resources.Vector // what the plan counts for it against resource limits
	slot    int
	scratch catalog.Bits // for the next narrowing
}

// settle computes what an existing node has left, when it is first looked at: daemons that will run on it and have not
// come yet keep their place (P-06).
func (b *bin) settle(daemons []cluster.Daemon) {
	if b.settled {
		return
	}
	b.settled = true
	b.free = b.node.Allocatable.Minus(b.node.Used)
	b.ports = slices.Clone(b.node.Ports)
	for _, daemon := range daemons {
		_, bad := cluster.Untolerated(b.node.Taints, daemon.Shape.Tolerations)
		if bad || !b.node.MightAdmit(daemon.Shape) || b.runs(daemon.Name) {
			continue
		}
		b.free = b.free.Minus(daemon.Shape.Requests)
		b.ports = append(b.ports, daemon.Shape.HostPorts...)
		b.awaiting = append(b.awaiting, daemon.Shape)
	}
}

func (b *bin) runs(daemon string) bool {
	return slices.ContainsFunc(b.node.Pods, func(p *cluster.Pod) bool { return p.Daemon == daemon })
}

// portsFree reports whether no taken port conflicts with those wanted.
func (b *bin) portsFree(wanted []cluster.HostPort) bool {
	for _, port := range wanted {
		if slices.ContainsFunc(b.ports, port.Conflicts) {
			return false
		}
	}
	return true
}

// labelValue returns what is known of the bin's label: its value and whether it is decided ("" and decided: the node
// will not have it).
func (b *bin) labelValue(key string) (string, bool) {
	k := requirement.Key(key)
	switch {
	case b.node != nil:
		value, present := b.node.Labels[key]
		return value, present || !b.node.Open.Holds(k)
	case b.pool.Catalog.Known(k):
		return decided(b.pool.Catalog.Values(k, b.offers), b.pool.Catalog.Lacking(k, b.offers))
	}
	allowed := b.custom.Get(k)
	if !b.custom.Holds(k) {
		return "", true
	}
	if value, single := allowed.Single(); single {
		return value, true
	}
	return "", !allowed.AllowsPresent()
}

// decided says what values and the lack of a value leave of a label.
func decided(values []string, lacking bool) (string, bool) {
	switch {
	case len(values) == 0:
		return "", true
	case len(values) == 1 && !lacking:
		return values[0], true
	}
	return "", false
}

// candidates returns the values that an open label of a planned bin may still get given the offers that would be left,
// the value of the cheapest offer first.
func (b *bin) candidates(key string, offers catalog.Bits) []string {
	k := requirement.Key(key)
	if !b.pool.Catalog.Known(k) {
		if values, finite := b.custom.Get(k).Values(); finite {
			return values
		}
		if value, some := b.custom.Get(k).Example(); some {
			return []string{value}
		}
		return nil
	}
	values := b.pool.Catalog.Values(k, offers)
	first := offers.First()
	if first < 0 {
		return nil
	}
	if cheapest, single := b.pool.Catalog.Offers[first].Labels.Get(k).Single(); single {
		values = slices.DeleteFunc(values, func(v string) bool { return v == cheapest })
		values = append([]string{cheapest}, values...)
	}
	return values
}
