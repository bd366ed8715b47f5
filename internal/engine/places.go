package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file says whose place has to be kept on a node that opens (B-16, ADR 0021). While nodes come up, kube-scheduler
// fills the open ones with pods that could go anywhere. Each pod that keeps apart from others, and finds its place
// taken, needs a further node. Keeping a place costs a request, and costs kube-scheduler time for each pod that it
// tries. So none is kept where kube-scheduler has enough nodes to choose from.

// UnderWay is for how long a claim counts as on its way to being a node, in seconds: most machines have joined by
// then.
const UnderWay = 60

// waitingPerRoom is how many times the room on open nodes waiting pods may ask for, where no place is kept. With 3,
// more nodes were launched on a real control plane than planned (ADR 0021).
const waitingPerRoom = 2

// OnItsWay reports whether pods may soon be bound to a node of ours that cannot take any yet. now is in Unix seconds.
func OnItsWay(s *cluster.Snapshot, n *cluster.Node, now int64) bool {
	return s.Pool(n.Pool) != nil && n.Claim != "" && !n.Initialized && !n.Deleting && !n.Disrupting &&
		now-n.Created < UnderWay
}

// PlacesToKeep returns, in the order of s.Pending, the pods whose place on a node of ours has to be kept when it
// opens. They keep apart from their like and were promised this node, while other nodes of the pool are on their way
// (B-16). The last node of a plan needs none: whoever is left then has no other place. claim and node are its names;
// now is in Unix seconds. opens holds the claims whose nodes open at this moment: they count as open.
func PlacesToKeep(s *cluster.Snapshot, claim, node string, opens map[string]bool, now int64) (pods []*cluster.Pod) {
	at := slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Claim == claim })
	if at < 0 || !slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
		return n.Claim != claim && n.Pool == s.Nodes[at].Pool && !opens[n.Claim] && OnItsWay(s, n, now)
	}) || roomyElsewhere(s, s.Nodes[at], opens) {
		return nil
	}
	for _, pod := range s.Pending {
		if (pod.Promised == claim || pod.Promised == node) && pod.Node == "" && len(pod.Shape.ApartTerms()) > 0 {
			pods = append(pods, pod)
		}
	}
	return pods
}

// roomyElsewhere reports whether kube-scheduler is far from filling an opening node of ours. It puts a pod where most
// is free, and the open nodes of the pool have room for a good part of all waiting pods. That is enough only if all
// nodes that the plan counts on have one size. Then each has room for its share of the pods, whichever come there.
func roomyElsewhere(s *cluster.Snapshot, opening *cluster.Node, opens map[string]bool) bool {
	var room resources.Vector
	odd := map[string]bool{} // open nodes of another size, by name and claim
	for _, n := range s.Nodes {
		if n.Pool != opening.Pool || n.Deleting || n.Disrupting {
			continue
		}
		if !oneSize(n, opening) {
			if !n.Initialized {
				return false
			}
			odd[n.Name], odd[n.Claim] = true, true
		}
		if n != opening && (opens[n.Claim] || n.Initialized && takesAsWell(n, opening)) {
			room = room.Plus(n.Allocatable.Minus(n.Used))
		}
	}
	if room.At(resources.CPU) <= 0 || room.At(resources.Memory) <= 0 {
		return false
	}
	waiting := make(resources.Vector, max(resources.CPU, resources.Memory)+1)
	for _, pod := range s.Pending {
		if pod.Node != "" {
			continue
		}
		if pod.Promised != "" && odd[pod.Promised] {
			return false
		}
		for r := range waiting {
			waiting[r] += pod.Shape.Requests.At(r)
		}
	}
	return !slices.ContainsFunc([]int{resources.CPU, resources.Memory}, func(r int) bool {
		return room.At(r)*waitingPerRoom < waiting.At(r)
	})
}

// takesAsWell reports whether a node takes what other takes, by its readiness and taints.
func takesAsWell(n, other *cluster.Node) bool {
	return !n.NotReady &&
		!slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return !slices.Contains(other.Taints, t) })
}

// oneSize reports whether two nodes have the same size, within a tenth: a machine's real size is known once it has
// joined.
func oneSize(a, b *cluster.Node) bool {
	return !slices.ContainsFunc([]int{resources.CPU, resources.Memory}, func(r int) bool {
		own, other := a.Allocatable.At(r), b.Allocatable.At(r)
		return 10*min(own, other) < 9*max(own, other)
	})
}
