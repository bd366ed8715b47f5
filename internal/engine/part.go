package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Part returns which marked nodes of a consolidation may still go when some of its replacements did not come, in the
// order of nodes. Their pods have places with the replacements that came, and their removal saves as much as a
// replacement has to (D-10). part is nil when no part of the command saves that much. known is false while there may
// be such a part and a machine is not launched yet: then nobody knows what it will be.
func Part(s *cluster.Snapshot, terms Terms, nodes, replacements []*cluster.Node) (part []*cluster.Node, known bool) {
	if len(replacements) == 0 || s.Cost(nodes...) == resources.Unpriced {
		return nil, true
	}
	s = arrived(s, replacements)
	d := beginFrom(s, s, terms)
	var gone []*cluster.Node // part as it is in the future
	for _, node := range d.byWaste(nodes) {
		if all := append(slices.Clone(gone), d.now(node)); fitsAll(d.future.Without(all...)) {
			part, gone = append(part, node), all
		}
	}
	if len(part) == 0 {
		return nil, true
	}
	after := d.cost(replacements...)
	unlaunched := func(n *cluster.Node) bool { return !n.Launched }
	if after == resources.Unpriced || slices.ContainsFunc(replacements, unlaunched) {
		return nil, false
	}
	before := d.cost(part...)
	if saving := before - after; saving < d.minSaving(before, len(part)) || !d.worthIt(part, saving) {
		return nil, true
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *cluster.Node) bool { return !slices.Contains(part, n) }),
		true
}

func fitsAll(s *cluster.Snapshot) bool {
	_, fits := pack.Fit(s, s.Pending)
	return fits
}

// arrived returns the cluster as it will be when these nodes, which are on their way, are there.
func arrived(s *cluster.Snapshot, coming []*cluster.Node) *cluster.Snapshot {
	parts := *s
	parts.Nodes = slices.Clone(s.Nodes)
	for i, node := range parts.Nodes {
		if !slices.Contains(coming, node) {
			continue
		}
		own := *node
		own.Initialized, own.Registered, own.NotReady = true, true, false
		if own.Name == "" {
			own.Name = own.Claim
		}
		parts.Nodes[i] = &own
	}
	return cluster.New(parts)
}
