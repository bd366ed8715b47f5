package engine

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// A static pool runs as many nodes as its replicas say, whatever pods there are (D-12). So its nodes are replaced one for one,
// and nobody asks whether the pods fit: what a node of the pool is like is for its template to say. What replaces a node is
// there first. When the replicas are as many as the node limit allows, hard or soft, there is no room for that, and a node
// goes first (L-31).

// rollStatic replaces nodes of a static pool, oldest first, as far as its slots and budgets go.
func (d *disruption) rollStatic(pool *cluster.Pool, nodes []*cluster.Node, reason plan.DisruptionReason) {
	if len(nodes) == 0 || pool.Blocked != "" || pool.Dormant {
		return
	}
	if TerminatesFirst(pool) {
		// A node that is still to come counts as disrupted, or nodes would go faster than others take their place.
		spare := Allowed(d.terms.Budgets[pool.Name], reason) - Lacking(d.origin, pool)
		_, hard := pool.Limits.Nodes()
		why := fmt.Sprintf("replicas are at the %s limit, so it goes before its replacement comes", limit.Kind(hard))
		for _, node := range nodes[:max(0, min(spare, len(nodes)))] {
			d.choose(command{nodes: []*cluster.Node{node}, reason: reason, why: why})
		}
		return
	}
	for i, l := range pack.Surge(d.origin, pool, len(nodes)) {
		group := nodes[i : i+1]
		l.Replaces, l.Together = names(group), 1
		d.choose(command{nodes: group, launches: []plan.Launch{l}, reason: reason})
	}
}

// TerminatesFirst reports whether a node of the pool has to go before what replaces it can come: a static pool whose
// replicas are as many as its node limit allows, or more.
func TerminatesFirst(pool *cluster.Pool) bool {
	most, _ := pool.Limits.Nodes()
	return pool.Static && most != limit.None && most <= pool.Replicas
}

// Lacking returns how many nodes a static pool lacks of those that it is to run, leaving out what is not ready, or going.
func Lacking(s *cluster.Snapshot, pool *cluster.Pool) int {
	target, _ := pool.Limits.Target(pool.Replicas)
	for _, node := range s.Nodes {
		if node.Pool == pool.Name && node.Claim != "" && node.Initialized && !node.NotReady && !node.Deleting && !node.Disrupting {
			target--
		}
	}
	return int(max(0, target))
}
