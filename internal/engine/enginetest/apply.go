package enginetest

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest/waves"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Applied returns the cluster as it stands once the plan has been carried out and every pod runs where it was planned:
// each launch became a node of the given choice among its instance types (0: the cheapest), in the cheapest offering.
func Applied(s *cluster.Snapshot, p plan.Plan, choice int) *cluster.Snapshot {
	next := *s
	next.Pending = nil
	pods := map[string]*cluster.Pod{}
	for _, pod := range s.Pending {
		pods[pod.UID] = pod
	}
	target := map[string][]*cluster.Pod{}
	for _, n := range p.Nominations {
		target[n.Node] = append(target[n.Node], pods[n.Pod.UID])
	}
	next.Nodes = nil
	for _, node := range s.Nodes {
		next.Nodes = append(next.Nodes, with(node, target[node.ID()]))
	}
	used := map[string]int64{}
	for i, l := range p.Launches {
		node := launched(s.Pool(l.Pool), l, i, choice)
		var placed []*cluster.Pod
		for _, pod := range l.Pods {
			placed = append(placed, pods[pod.UID])
		}
		used[l.Pool]++
		next.Nodes = append(next.Nodes, with(node, placed))
	}
	for _, u := range p.Unplaced {
		next.Pending = append(next.Pending, pods[u.Pod.UID])
	}
	next.Repelling = nil
	for _, node := range next.Nodes {
		for _, pod := range node.Pods {
			if len(pod.Shape.AntiAffinity) > 0 {
				next.Repelling = append(next.Repelling, pod)
			}
		}
	}
	next.Claims += int64(len(p.Launches))
	next.Pools = grown(s.Pools, next.Nodes, used)
	return cluster.New(next)
}

// with returns the node with more pods bound to it.
func with(node *cluster.Node, placed []*cluster.Pod) *cluster.Node {
	own := *node
	own.Pods = slices.Clone(node.Pods)
	own.Ports = slices.Clone(node.Ports)
	for _, pod := range placed {
		bound := *pod
		bound.Node, bound.Promised = own.ID(), ""
		own.Pods = append(own.Pods, &bound)
		own.Used = own.Used.Plus(pod.Shape.Requests)
		own.Ports = append(own.Ports, pod.Shape.HostPorts...)
	}
	return &own
}

func launched(pool *cluster.Pool, l plan.Launch, number, choice int) *cluster.Node {
	return waves.NodeOf(pool, l, choice, l.Pool+"-new-"+string(rune('a'+number%26))+string(rune('a'+number/26%26)))
}

// grown returns the pools with what the new nodes use.
func grown(pools []*cluster.Pool, nodes []*cluster.Node, added map[string]int64) []*cluster.Pool {
	var list []*cluster.Pool
	for _, pool := range pools {
		own := *pool
		if n := added[pool.Name]; n > 0 {
			var capacity resources.Vector
			for _, node := range nodes[len(nodes)-int(total(added)):] {
				if node.Pool == pool.Name {
					capacity = capacity.Plus(capacityOf(pool, node))
				}
			}
			own.Used = own.Used.Plus(n, capacity)
			own.FreeSlots = own.FreeSlots[min(int(n), len(own.FreeSlots)):]
		}
		list = append(list, &own)
	}
	return list
}

func total(added map[string]int64) int64 {
	var sum int64
	for _, n := range added {
		sum += n
	}
	return sum
}

func capacityOf(pool *cluster.Pool, node *cluster.Node) resources.Vector {
	for _, t := range pool.Catalog.Types {
		if t.Name == node.InstanceType {
			return t.Capacity
		}
	}
	return nil
}
