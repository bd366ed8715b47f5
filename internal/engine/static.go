package engine

import (
	"fmt"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// A static pool runs as many nodes as its replicas say, whatever pods there are (D-12). So its nodes are replaced one
// for one, and nobody asks whether the pods fit: only its template says what its nodes are like. The replacement comes
// first. If the replicas are as many as the node limit allows, hard or soft, there is no room for that. Then a node
// goes first (L-31), if its replacement can be launched after that. So does a node that holds the reservation which
// its replacement needs. Neither does where the gate TerminateFirstDrift is off (K-48).
//
// A node stays when its drain would never end: a PodDisruptionBudget lets its pods go one after another, and one that
// leaves would find no place beside the others. That would take a pod from its users, and gain nothing (D-09).

// rollStatic replaces nodes of a static pool in this order, as far as its slots and budgets go.
func (d *disruption) rollStatic(pool *cluster.Pool, nodes []*cluster.Node, reason plan.DisruptionReason) {
	if len(nodes) == 0 || pool.Blocked != "" || pool.Dormant {
		return
	}
	left, first := d.left(pool.Name, reason), terminatesFirst(pool)
	var launches []plan.Launch
	if !first {
		launches = pack.Surge(d.origin.Undraws(nodes...), pool, min(left, len(nodes)))
		first = len(launches) == 0 && d.surgesNowhere(pool)
	}
	// a node that is still to come counts as disrupted, or nodes would go faster than others take their place
	if first {
		left = min(left, Allowed(d.terms.Budgets[pool.Name], reason)-lackingIn(d.origin, pool))
	} else {
		left = len(launches)
	}
	tries := 0
	for _, node := range nodes {
		if left <= 0 || tries == maxTries {
			return
		}
		var because plan.First
		why := ""
		if first {
			if because, why = d.whyStaticFirst(pool, node); because == "" {
				continue
			}
		}
		group, coming := []*cluster.Node{node}, []plan.Launch(nil)
		if !first {
			l := launches[len(launches)-left]
			l.Replaces, l.Together = names(group), 1
			coming = []plan.Launch{l}
		}
		now := d.now(node)
		if lead, lacking := d.stuck(now, coming); lead != "" {
			d.stay(node, lead, lacking)
			tries++
			continue
		}
		if len(d.origin.Guards) > 0 { // the next nodes are asked about without this one
			d.future = d.future.Without(now).With(d.arriving(coming))
		}
		d.choose(command{nodes: group, launches: coming, reason: reason, why: why, first: because})
		left--
	}
}

// whyStaticFirst says why a node of a static pool goes before its replacement; "" when it does not.
func (d *disruption) whyStaticFirst(pool *cluster.Pool, node *cluster.Node) (plan.First, string) {
	_, hard := pool.Limits.Nodes()
	freed := d.origin.Without(d.origin.Node(node)).Vacated(node)
	switch {
	case pool.NoneFirst || d.origin.ClaimsUnknown != "" || !pack.Admits(freed, freed.Pool(pool.Name)):
		// nothing would come for it
		return "", ""
	case terminatesFirst(pool):
		return plan.FirstAtStaticLimit, fmt.Sprintf(
			"replicas are at the %s limit, so it goes before its replacement comes", limit.Kind(hard))
	case d.vacates(pool, node):
		return plan.FirstForReservation, whyVacates
	}
	return "", ""
}

// surgesNowhere reports whether a static pool has a slot for a replacement and nothing to launch in it, even if no
// launch had failed.
func (d *disruption) surgesNowhere(pool *cluster.Pool) bool {
	full := d.origin.Restocked(pool.Name)
	return len(pool.SurgeSlots) > 0 && !pack.Admits(full, full.Pool(pool.Name))
}

// arriving returns the nodes of launches, with other names than those of the launches that were chosen.
func (d *disruption) arriving(launches []plan.Launch) []*cluster.Node {
	before := len(d.launched())
	var nodes []*cluster.Node
	for i, l := range launches {
		nodes = append(nodes, virtual(d.future.Pool(l.Pool), l, newLast.of(before+i)))
	}
	return nodes
}

// stuck says why the drain of a node would not end even with these launches, and which pod would find no place; ""
// when it would end. Only pods that leave one after another can hold it up: others are evicted, wherever they start
// anew. As many as may leave at once need no place: they are the last to leave. Where pods differ, one without a place
// may be the first, and then the others may not leave.
func (d *disruption) stuck(node *cluster.Node, launches []plan.Launch) (lead string, homeless plan.Unplaced) {
	list := successions(d.origin.Guards, node)
	if len(list) == 0 {
		return "", plan.Unplaced{}
	}
	s := d.future.Without(node).With(d.arriving(launches)).WithoutBuffers()
	unplaced := pack.Solve(s, s.Pending).Unplaced
	for _, own := range list {
		lacking := slices.DeleteFunc(slices.Clone(unplaced),
			func(u plan.Unplaced) bool { return !own.pods[u.Pod.UID] })
		if n := len(lacking); n > own.guard.AtOnce || n > 0 && !own.alike {
			return fmt.Sprintf("PodDisruptionBudget %s/%s lets its pods go one after another, and ",
				own.guard.Namespace, own.guard.Name), lacking[0]
		}
	}
	return "", plan.Unplaced{}
}

// stuck says why the drain of a node of a static pool would not end as things are, "" when it would (D-09).
func (h *hearing) stuck(node *cluster.Node) string {
	if len(successions(h.s.Guards, node)) == 0 { // so it is mostly
		return ""
	}
	d := h.bare()
	lead, lacking := d.stuck(d.now(node), nil)
	if lead == "" {
		return ""
	}
	return lead + homeless(lacking)
}

// succession is a set of pods of a node that a PodDisruptionBudget does not let leave all at once.
type succession struct {
	guard cluster.Guard
	pods  map[string]bool // by UID
	alike bool            // they have one shape
}

// successions returns the successions of a node, ordered as the budgets are. A pod belongs to the first budget that
// selects it.
func successions(guards []cluster.Guard, node *cluster.Node) []succession {
	var list []succession
	taken := map[string]bool{}
	for _, guard := range guards {
		own := succession{guard: guard, pods: map[string]bool{}, alike: true}
		var shape *cluster.Shape
		for _, pod := range node.Pods {
			if pod.Fixed || pod.Terminating || taken[pod.UID] || pod.Namespace != guard.Namespace ||
				!guard.Pods.Matches(pod.Shape.Labels) {
				continue
			}
			own.alike = own.alike && (shape == nil || shape == pod.Shape)
			own.pods[pod.UID], taken[pod.UID], shape = true, true, pod.Shape
		}
		if len(own.pods) > guard.AtOnce {
			list = append(list, own)
		}
	}
	return list
}

// terminatesFirst reports whether a node of the pool has to go before its replacement can come: a static pool with at
// least as many replicas as its node limit allows.
func terminatesFirst(pool *cluster.Pool) bool {
	most, _ := pool.Limits.Nodes()
	return pool.Static && most != limit.None && most <= pool.Replicas
}

// lackingIn returns how many nodes a static pool lacks. Nodes that are not ready or going do not count.
func lackingIn(s *cluster.Snapshot, pool *cluster.Pool) int {
	target, _ := pool.Limits.Target(pool.Replicas)
	for _, node := range s.Nodes {
		if node.Pool == pool.Name && node.Claim != "" && node.Initialized && !node.NotReady && !node.Deleting &&
			!node.Disrupting {
			target--
		}
	}
	return int(max(0, target))
}
